"""The demo's web site on loopback, made from `data/demo/site`.

May import: nothing of this project.
The demo and tests use `DemoSite`.
"""

from ck_main.demo_site.site import DemoSite

__all__ = ["DemoSite"]
