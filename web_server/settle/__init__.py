"""Waiting until the effects of an action have finished: by events, never by a fixed sleep.

May import: `chromium` and what stands above it.
`session` uses `Settler` and `Activity`.
"""
