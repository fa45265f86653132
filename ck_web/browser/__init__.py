"""A leased browser: its settings, the HTTP client, the server process and the files of a run.

May import: `page`, `actions`, `ck_pro` and `web_server.contract`.
`WebEnv` uses `Browser`; `WebEnvConfig` is public.
"""
