"""The runner on Ray: tasks on any number of nodes, one output.

May import: `runner`, `ui` and what stands above them.
`cli` uses `RayRunner`.
"""
