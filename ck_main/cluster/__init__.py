"""The runner on Ray: tasks on any number of nodes, one output.

May import: `runner`, `ui` and the rooms above them.
`cli` uses `RayRunner`.
"""
