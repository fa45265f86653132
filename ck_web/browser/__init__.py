"""A leased browser: settings, HTTP client, server process, files of a run.

May import: `page`, `actions`, `ck_pro` and `web_server.contract`.
`WebEnv` uses `Browser`; `WebEnvConfig` is public.
"""
