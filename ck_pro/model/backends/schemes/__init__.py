"""The kinds of `call_target`, one module each: a new back end is one file here.

A module declares `SCHEME` (see `ck_pro.model.backends.targets`), and imports its back end on use.
May import everything that `ck_pro.model` may. Only `targets.py` imports these modules.
"""
