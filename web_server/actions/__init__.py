"""Actions on a page, one function each.

May import: `session` and what stands above it.
`operations` uses the table `ACTIONS`.
"""
