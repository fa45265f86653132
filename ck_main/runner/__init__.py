"""Tasks in, rows out: attempts, tries, limits, retries and folders of tasks.

May import: `tasks`, `output` and `ck_pro`.
`ui`, `cluster` and `cli` use `TaskRunner`.
"""
