"""Find Chromium, and the flags to start it with."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

_NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
)
_WRITTEN_BY = re.compile(r"^\[[^]]*\] *")
"""Prefix of a line of Chromium's log: process, time, level, source."""
_NEEDED = re.compile("shared librar|[Nn]o usable sandbox|[Pp]ermission denied|without --no-sandbox")
_MAC_PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
)
_PLAYWRIGHT_CACHES = (
    "~/.cache/ms-playwright",
    "~/Library/Caches/ms-playwright",
    "~/AppData/Local/ms-playwright",
)
_PLAYWRIGHT_BINARIES = (
    "chromium-*/chrome-linux*/chrome",
    "chromium-*/chrome-mac*/*.app/Contents/MacOS/*",
    "chromium-*/chrome-win*/chrome.exe",
)


class ChromiumNotFound(Exception):
    """This machine has no usable Chromium. The message is one line for the user."""


def find_chromium(configured: str = "") -> str:
    """Return the path of a Chromium or Chrome executable.

    Checks `configured`, the environment variable CK_CHROMIUM, PATH, the usual macOS paths and
    Playwright's cache, in this order.

    Args:
        configured: a path or command; it must exist if it is given.

    Raises:
        ChromiumNotFound: none was found; the message says how to install one.
    """
    named = ((configured, "chromium"), (os.environ.get("CK_CHROMIUM", ""), "CK_CHROMIUM"))
    for path, origin in named:
        if path:
            found = shutil.which(str(Path(path).expanduser()))
            if not found:  # `chromium` is a setting and, as --chromium, an option
                raise ChromiumNotFound(f"{origin}: {path!r} is not an executable file")
            return found
    for name in _NAMES:
        if found := shutil.which(name):
            return found
    if sys.platform == "darwin":
        for place in _MAC_PLACES:
            if os.access(place, os.X_OK):
                return place
    if found := _find_in_playwright_cache():
        return found
    raise ChromiumNotFound(
        "Chromium was not found: run `python -m web_server.install_chromium`, install the "
        "package `chromium`, or set CK_CHROMIUM=/path/to/chromium"
    )


def _find_in_playwright_cache() -> str:
    """Return the newest Chromium in Playwright's cache, or an empty string."""
    configured = os.environ.get("PLAYWRIGHT_BROWSERS_PATH")
    caches = (configured,) if configured and configured != "0" else _PLAYWRIGHT_CACHES
    for cache in caches:
        root = Path(cache).expanduser()
        for pattern in _PLAYWRIGHT_BINARIES:
            usable = [path for path in root.glob(pattern) if os.access(path, os.X_OK)]
            if usable:
                return str(max(usable, key=lambda path: path.stat().st_mtime))
    return ""


_DISABLED = ("WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup")
"""Disabled features. Chromium would start a renderer for its invisible address bar, which costs
40 MB and a second of processor time."""
_OTHERS_DISABLED = (
    "AcceptCHFrame",
    "AimEnabled",
    "AvoidCorsURLLoaderRestartOnRedirect",
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades",
    "LensOverlay",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationHints",
    "PaintHolding",
    "PreconnectToSearch",
    "ThirdPartyStoragePartitioning",
    "Translate",
)
"""Features that Playwright disables. This server's flag replaces Playwright's."""


def launch_flags() -> list[str]:
    """Return flags for Chromium: no background traffic, no connection that bypasses the proxy."""
    return [
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-default-apps",
        "--disable-domain-reliability",
        "--disable-client-side-phishing-detection",
        "--no-first-run",
        "--no-default-browser-check",
        "--no-pings",
        # Dialogs for screen sharing and wallets: invisible here, and they would take all clicks.
        # (For passkeys see `Activity.attach`.)
        "--disable-blink-features=GetDisplayMedia,WebIdentityDigitalCredentials",
        "--dns-prefetch-disable",
        # All connections use the session's proxy: Chromium must not resolve names or send UDP.
        "--proxy-server=http://127.0.0.1:9",
        "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
        "--webrtc-ip-handling-policy=disable_non_proxied_udp",
        # One process for all frames of a page: half the memory, and one walk reaches all frames.
        "--disable-site-isolation-trials",
        # The middle button would paste the selection of another session. This flag replaces
        # Playwright's, so it repeats Playwright's settings for a mouse.
        "--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,"
        "availablePointerTypes=4,middleClickPasteAllowed=false",
        "--disable-features=" + ",".join([*_OTHERS_DISABLED, *_DISABLED]),
    ]


def can_have_sandbox() -> bool:
    """Whether Chromium's sandbox may work. Chromium refuses it for root."""
    return not hasattr(os, "geteuid") or os.geteuid() != 0


def lacks_sandbox(reason: str) -> bool:
    """Whether Chromium failed to start because the system refuses its sandbox.

    Args:
        reason: the result of `launch_failure`.
    """
    return "sandbox" in reason.lower()


def launch_failure(error: str) -> str:
    """Extract the reason why Chromium did not start from Playwright's message.

    Args:
        error: the message: a constant heading, then Chromium's standard error, which is mostly
            harmless warnings.
    """
    written = re.findall(r"\[err\] (.*)", error)
    fatal = [line for line in written if "FATAL" in line or _NEEDED.search(line)]
    others = [line for line in written if "dbus" not in line.lower()]
    (line,) = fatal[:1] or others[-1:] or error.strip().splitlines()[:1] or ["no message"]
    ended = re.search(r"<process did exit: (.*?)>", error)
    return " ".join(_WRITTEN_BY.sub("", line).split()) + (f" ({ended[1]})" if ended else "")


DROPPED_DEFAULTS = ["--disable-popup-blocking", "--disable-ipc-flooding-protection"]
"""Flags of Playwright that are not used: pages may open pop-ups only after a user gesture, and
Chromium throttles pages that navigate or change their history endlessly."""
