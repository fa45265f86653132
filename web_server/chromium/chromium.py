"""Finding Chromium, and the flags it is started with."""

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
"""Before what Chromium writes: process, time, level and place in its source."""
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
    """No usable Chromium on this machine. The message is one line for a person."""


def find_chromium(configured: str = "") -> str:
    """The path of a Chromium (or Chrome) executable.

    Looks at `configured`, the environment variable CK_CHROMIUM, PATH, the usual macOS places and
    the browsers that `playwright install` put into its cache, in this order.

    Args:
        configured: a path or command that was asked for by name; it must then exist.

    Raises:
        ChromiumNotFound: none is there; the message says how to get one.
    """
    named = ((configured, "--chromium"), (os.environ.get("CK_CHROMIUM", ""), "CK_CHROMIUM"))
    for wanted, origin in named:
        if wanted:
            found = shutil.which(str(Path(wanted).expanduser()))
            if not found:
                raise ChromiumNotFound(f"{origin} names {wanted!r}, which is no executable file")
            return found
    for name in _NAMES:
        if found := shutil.which(name):
            return found
    if sys.platform == "darwin":
        for place in _MAC_PLACES:
            if os.access(place, os.X_OK):
                return place
    if found := _playwright_own():
        return found
    raise ChromiumNotFound(
        "no Chromium was found: run `python -m web_server.install_chromium`, install the "
        "package `chromium`, or name one with CK_CHROMIUM=/path/to/chromium"
    )


def _playwright_own() -> str:
    """The newest Chromium in Playwright's cache, or an empty text."""
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
"""Features of Chromium that are switched off: for its address bar, which nobody sees, it would
start a renderer, of 40 MB and a second of processor time."""
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
"""Those that the browser library switches off, by a flag of which ours takes the place."""


def launch_flags() -> list[str]:
    """Command-line flags for Chromium: no traffic of its own, nothing past the proxy."""
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
        # Questions that would take all clicks, and are seen by nobody: what of the screen to share,
        # which wallet to open. (For passkeys see `Activity.attach`.)
        "--disable-blink-features=GetDisplayMedia,WebIdentityDigitalCredentials",
        "--dns-prefetch-disable",
        # Every connection goes through our proxy: nothing may resolve names or send UDP itself.
        "--proxy-server=http://127.0.0.1:9",
        "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
        "--webrtc-ip-handling-policy=disable_non_proxied_udp",
        # One process for all frames of a page: half the memory, and one walk reaches them all.
        "--disable-site-isolation-trials",
        # The middle button would paste what another session has selected. The other settings are
        # the browser library's own, a mouse, of which this flag takes the place.
        "--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,"
        "availablePointerTypes=4,middleClickPasteAllowed=false",
        "--disable-features=" + ",".join([*_OTHERS_DISABLED, *_DISABLED]),
    ]


def can_have_sandbox() -> bool:
    """Whether Chromium's own sandbox may work: Chromium refuses it to root."""
    return not hasattr(os, "geteuid") or os.geteuid() != 0


def lacks_sandbox(reason: str) -> bool:
    """Whether Chromium did not start because the system lets it have no sandbox.

    Args:
        reason: as `why_not_started` gives it.
    """
    return "sandbox" in reason.lower()


def why_not_started(error: str) -> str:
    """The line that tells why Chromium did not start, of all that the browser library reports.

    Args:
        error: its message: a heading that is always the same, then what Chromium wrote to standard
            error, most of it complaints that it can live with.
    """
    written = re.findall(r"\[err\] (.*)", error)
    fatal = [line for line in written if "FATAL" in line or _NEEDED.search(line)]
    others = [line for line in written if "dbus" not in line.lower()]
    (told,) = fatal[:1] or others[-1:] or error.strip().splitlines()[:1] or ["no word from it"]
    ended = re.search(r"<process did exit: (.*?)>", error)
    return " ".join(_WRITTEN_BY.sub("", told).split()) + (f" ({ended[1]})" if ended else "")


DROPPED_DEFAULTS = ["--disable-popup-blocking", "--disable-ipc-flooding-protection"]
"""Playwright's own flags that are left out: pages may open pop-ups only on a user's gesture, and a
page that navigates or changes its history without end is slowed down by Chromium."""
