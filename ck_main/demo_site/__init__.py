"""The demo's web site on loopback, built from `ck_main/demo_data/site`.

May import: `ck_pro`.
The demo and tests use `DemoSite`.
"""

from ck_main.demo_site.site import DemoSite

__all__ = ["DemoSite"]
