"""Share one run: a web page in one file, an animated picture of its browser steps, a summary.

It reads runs with `viewer.runs`, and writes only the files that the user names. May import: all of
`ck_pro`, `ck_web`, and the rooms before it. Used by `ck_main.share`.
"""
