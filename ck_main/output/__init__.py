"""Output rows and the file that they are appended to.

May import: `tasks` and `ck_pro`.
The runner uses `RowFile` and `Outcome`.
"""
