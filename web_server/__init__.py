"""The browser server: real web pages for agents, over a small JSON wire.

A process of its own: Flask routes in front, one Chromium behind, and between them one event-loop
thread on which all of Playwright lives. `python -m web_server` starts it; `docs/web_server.md`
describes the wire. `web_server.contract` holds the wire types and needs pydantic only.
"""
