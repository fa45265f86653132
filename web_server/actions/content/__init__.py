"""The content of a page as text and data: read, find, wait_for, table, value, edit.

May import: `actions.named_elements`, `actions.fields` and what they import.
`actions` imports the modules, which registers their actions.
"""
