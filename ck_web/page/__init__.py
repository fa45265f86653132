"""Read the text of a page: lines, notices, cookie banners, changes, browser state. Pure.

May import: `ck_pro` and `web_server.contract`.
All other rooms of `ck_web` use it.
"""
