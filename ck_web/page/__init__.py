"""What the text of a page says: lines, notices, cookie banners, changes and browser state. Pure.

May import: `ck_pro` and `web_server.contract`.
All other rooms of `ck_web` use it.
"""
