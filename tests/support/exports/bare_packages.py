"""For the probes: import modules of a package without its `__init__` files, which need PyTorch."""

import importlib.util
import sys
from types import ModuleType


def bare_packages(package: str, *inner: str) -> None:
    """Add a package and its sub-packages to `sys.modules` without running their `__init__` files.

    Args:
        package: its name; it is installed.
        inner: packages in it by their whole name, outer ones first.
    """
    spec = importlib.util.find_spec(package)
    assert spec is not None and spec.submodule_search_locations
    root = spec.submodule_search_locations[0]
    for name in (package, *inner):
        module = ModuleType(name)
        module.__path__ = [root + name.removeprefix(package).replace(".", "/")]
        sys.modules[name] = module
