"""Task files: reading and checking.

May import: `scoring`.
Every other room of `ck_main` uses `Task`.
"""
