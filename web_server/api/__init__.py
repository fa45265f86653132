"""HTTP: routes, parsing of requests, errors, logs and metrics.

May import: every room above it.
`web_server.__main__` uses it.
"""
