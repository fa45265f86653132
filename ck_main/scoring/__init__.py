"""Scorers: each is one module here with a constant `SCORER`. See docs/analysis.md.

May import: `ck_pro`.
Other rooms use `Scoring`, which scores a run's answer, `scorers` and `em`.
"""
