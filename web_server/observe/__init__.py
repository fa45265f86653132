"""What a page shows: one walk in the page, rendered as text with ids.

May import: `settle` and what stands above it.
`session`, `actions` and `operations` use `Observer`.
"""
