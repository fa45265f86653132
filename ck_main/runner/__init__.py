"""Tasks in, rows out: attempts, tries, limits, retries and folders of tasks.

May import: `tasks`, `output` and `ck_pro`.
`TaskRunner` is used by `ui`, `cluster` and `cli`.
"""
