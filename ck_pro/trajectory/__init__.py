"""Export, compare, fork, compress and trace the journals and output rows of runs.

See `docs/trajectories.md`, and `python -m ck_pro.trajectory.export --help`.
"""
