"""Commands that run tasks: options, settings, errors and exit codes.

May import: every room above it.
Used by `ck_main.main`, `ck_main.demo` and `ck_web.main`.
"""
