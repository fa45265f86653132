"""Declare, validate and merge configuration: `KwargsInitializable`.

May import: `exceptions`.
Other rooms use `KwargsInitializable` and `iter_nested`.
"""

from ck_pro.config.initializable import KwargsInitializable, iter_nested

__all__ = ["KwargsInitializable", "iter_nested"]
