"""Browsers on lease, with a fair queue in front.

May import: `session`, `chromium` and what stands above them.
`operations` and `api` use `Pool`.
"""
