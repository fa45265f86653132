"""Declare, validate and merge configuration: `KwargsInitializable`.

May import: `exceptions`.
Other rooms use `KwargsInitializable`, `iter_nested` and `expand_texts`.
"""

from ck_pro.config.initializable import KwargsInitializable, expand_texts, iter_nested

__all__ = ["KwargsInitializable", "expand_texts", "iter_nested"]
