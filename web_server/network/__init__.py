"""The policy of addresses that browsers may reach, and the proxy that enforces it.

May import: `errors`, `contract` and `view`.
`chromium` and `session` use `Policy` and `Proxy`.
"""
