"""The demo's web site on loopback, built from `ck_main/demo_data/site`.

May import: `ck_pro`.
The demo and tests use `DemoSite`, which loads on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ck_main.demo_site.site import DemoSite

__all__ = ["DemoSite"]


def __getattr__(name: str) -> Any:
    if name == "DemoSite":
        from ck_main.demo_site.site import DemoSite

        return DemoSite
    raise AttributeError(f"module 'ck_main.demo_site' has no attribute {name!r}")
