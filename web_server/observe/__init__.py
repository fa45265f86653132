"""Observe pages: a walk in the page, rendered as text with ids.

May import: `settle` and the rooms above it.
`session`, `actions` and `operations` use `Observer`.
"""
