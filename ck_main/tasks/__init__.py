"""Task files: reading, checking and scoring.

May import: `ck_pro`.
Every other room of `ck_main` uses `Task` and `evaluate`.
"""
