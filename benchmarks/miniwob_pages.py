"""The pages of MiniWoB++ served on loopback, and what they say of an episode.

The pages come from the wheel of `miniwob` on PyPI and are served as they are, but for one thing: a
script is added to the end of their `core.js`, which

- seeds the page's random numbers with `?seed=` of the address, so that an episode can be repeated;
- sets the page's own time limit to a day, as nobody is to be measured by this machine's speed;
- hides the page's display of rewards with the page's own function for that;
- tells this server, not the page's reader, the task's text and, at the end, the reward.
"""

from __future__ import annotations

import http.server
import importlib.metadata
import json
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from loopback_site import LoopbackSite

_ADDED = """
;(() => {
  const seed = core.QueryString.seed || '0';
  const tell = (what) => {
    const request = new XMLHttpRequest();
    request.open('POST', '/told?episode=' + core.QueryString.episode, false);
    request.send(JSON.stringify(what));
  };
  const begin = core.startEpisodeReal, end = core.endEpisode, wait = core.startEpisode;
  Math.seedrandom(seed);
  core.startEpisode = function () {
    wait();
    core.hideDisplay();
  };
  core.startEpisodeReal = function () {
    core.EPISODE_MAX_TIME = 86400000;
    Math.seedrandom(seed);
    begin();
    const said = core.getUtterance();
    tell({ utterance: typeof said === 'string' ? said : said.utterance });
  };
  core.endEpisode = function (...given) {
    const running = core.EP_TIMER !== null;
    end(...given);
    if (running) tell({ reward: WOB_RAW_REWARD_GLOBAL, reason: String(WOB_REWARD_REASON || '') });
  };
})();
"""


@dataclass
class Told:
    """What a page said of one episode.

    Attributes:
        utterance: the task, once the episode began.
        reward: the page's raw reward, from -1 to 1; None while the episode goes on.
        reason: the page's own words for it, often none.
    """

    utterance: str | None = None
    reward: float | None = None
    reason: str = ""


@dataclass
class _Shared:
    root: Path
    episodes: dict[str, Told] = field(default_factory=dict)


def pages_folder() -> Path:
    """Where the pages are.

    Raises:
        FileNotFoundError: `miniwob` is not installed.
    """
    # asked by its metadata, as the module would load selenium and more, and our script has its name
    try:
        found = importlib.metadata.distribution("miniwob")
    except importlib.metadata.PackageNotFoundError:
        raise FileNotFoundError(
            'the pages of MiniWoB++ are not installed: pip install "ck-pro[bench]" or miniwob'
        ) from None
    return Path(str(found.locate_file("miniwob/html")))


class _Handler(http.server.SimpleHTTPRequestHandler):
    shared: _Shared

    def do_GET(self) -> None:
        if urlsplit(self.path).path != "/core/core.js":
            super().do_GET()
            return
        body = (self.shared.root / "core/core.js").read_bytes() + _ADDED.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/javascript; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        episode = parse_qs(urlsplit(self.path).query)["episode"][0]
        told = self.shared.episodes.setdefault(episode, Told())
        for name, value in said.items():
            setattr(told, name, value)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


class Pages(LoopbackSite):
    """A server of the pages on a free port of loopback; use it in a `with` statement."""

    def __init__(self) -> None:
        self._shared = _Shared(pages_folder())
        shared = self._shared

        class Handler(_Handler):
            def __init__(self, *args: object, **kwargs: object) -> None:
                super().__init__(*args, directory=str(shared.root), **kwargs)  # type: ignore[arg-type]

        Handler.shared = shared
        super().__init__(Handler)

    def url(self, task: str, seed: int) -> str:
        """The address of one episode."""
        query = f"seed={seed}&episode={task}.{seed}"
        return f"http://{self.host}/miniwob/{task}.html?{query}"

    def begin(self, task: str, seed: int) -> Told:
        """What the episode's page will say is kept in the returned object."""
        return self._shared.episodes.setdefault(f"{task}.{seed}", Told())

    def forget(self, task: str, seed: int) -> None:
        """Begin with nothing said when the episode is run again."""
        self._shared.episodes.pop(f"{task}.{seed}", None)


def task_names() -> list[str]:
    """All tasks that there are pages of."""
    return sorted(path.stem for path in (pages_folder() / "miniwob").glob("*.html"))
