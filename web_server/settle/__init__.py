"""Wait until the effects of an action have finished: by events, without fixed delays.

May import: `chromium` and the rooms above it.
`session` uses `Settler` and `Activity`.
"""
