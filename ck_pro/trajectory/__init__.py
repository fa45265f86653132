"""Readers of what runs leave behind: exports for model training.

`python -m ck_pro.trajectory.export --help` is the command; `docs/trajectories.md` the guide.
"""
