"""Which addresses browsers may reach, and the filtering proxy that enforces it.

May import: `errors`, `contract` and `view`.
`chromium` and `session` use `Policy` and `Proxy`.
"""
