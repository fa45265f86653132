"""What one request does to one leased browser, with recovery from crashes.

May import: every room above it.
`api` uses it.
"""
