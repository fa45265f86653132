"""Write frames as a WebM video, which Chromium encodes."""

from __future__ import annotations

import base64
import io
import json
import secrets
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ck_main.sharing.animation import durations
from ck_main.sharing.drawing import draw_frames, readable
from ck_main.sharing.frames import Frame
from ck_main.sharing.webm import Chunk, webm_file
from ck_pro.exceptions import EnvironmentFailure
from ck_web.env import WebEnv

if TYPE_CHECKING:
    from PIL.Image import Image

_PAGE = Path(__file__).with_name("encoder.html")
_BITRATE = 1_500_000
_SECONDS = 180.0
_MAX_RESULT = 400_000_000


def webm_of(frames: list[Frame]) -> bytes:
    """Return a WebM video.

    Raises:
        InputError: no frame has a readable image.
        EnvironmentFailure: there is no Chromium, or it did not encode the video.
    """
    frames = readable(frames)
    files = [_encoded(image) for image in draw_frames(frames)]
    times, end = list[int](), 0
    for duration in durations(frames):
        times.append(end)
        end += duration
    shown = [{"time": time, "file": n} for n, time in enumerate(times)]
    shown.append({"time": end, "file": len(files) - 1})  # the last frame has a length, too
    width, height = _size_of(files[0])
    plan = {"width": width, "height": height, "bitrate": _BITRATE, "frames": shown}
    return webm_file(_encode(plan, files), width, height, end)


def _encoded(image: Image) -> bytes:
    """Return a frame as PNG, with even sides."""
    from PIL import Image as images

    canvas = images.new("RGB", (image.width + image.width % 2, image.height + image.height % 2))
    canvas.paste(image, (0, 0))
    out = io.BytesIO()
    canvas.save(out, "PNG", compress_level=1)
    return out.getvalue()


def _size_of(png: bytes) -> tuple[int, int]:
    return struct.unpack(">II", png[16:24])


def _encode(plan: dict[str, Any], files: list[bytes]) -> list[Chunk]:
    """Open a page that encodes the frames, and return what it posts."""
    with _Desk(plan, files) as desk:
        env = WebEnv({"allow": [desk.host], "cookie_banners": "off"}, target_url=desk.url)
        try:
            arrived = desk.arrived.wait(_SECONDS)
        finally:
            env.close()
    answer: dict[str, Any] = (
        desk.answer if arrived else {"error": f"no result within {_SECONDS:g} s"}
    )
    if answer.get("error") or not answer.get("chunks"):
        reason = str(answer.get("error") or "no frames")[:200]
        raise EnvironmentFailure(f"Chromium did not encode the video: {reason}")
    return [
        Chunk(base64.b64decode(c["data"]), round(c["time"]), bool(c["key"]))
        for c in answer["chunks"]
    ]


class _Desk:
    """A server on loopback for the page that encodes: it has the frames, and takes the result.

    Only who knows its address, which has a secret, gets an answer.
    """

    def __init__(self, plan: dict[str, Any], files: list[bytes]) -> None:
        self.arrived = threading.Event()
        self.answer: dict[str, Any] = {}
        self._secret = secrets.token_urlsafe(16)
        texts = {"": ("text/html", _PAGE.read_bytes()), "frames": ("application/json", b"")}
        texts["frames"] = ("application/json", json.dumps(plan).encode())
        self._files = {**texts, **{f"frame/{n}": ("image/png", f) for n, f in enumerate(files)}}
        handler = type("Handler", (_Handler,), {"desk": self})
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)
        self.host = f"127.0.0.1:{self._http.server_port}"
        self.url = f"http://{self.host}/{self._secret}/"

    def __enter__(self) -> _Desk:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def file(self, path: str) -> tuple[str, bytes] | None:
        """Return type and content of a file; None if there is none."""
        secret, _, name = path.removeprefix("/").partition("/")
        return self._files.get(name) if secret == self._secret else None

    def take(self, path: str, body: bytes) -> bool:
        """Take the result; return whether it is one."""
        if path != f"/{self._secret}/result" or self.arrived.is_set():
            return False
        try:
            answer = json.loads(body)
        except ValueError:
            answer = {"error": "the result is not JSON"}
        self.answer = answer if isinstance(answer, dict) else {}
        self.arrived.set()
        return True


class _Handler(BaseHTTPRequestHandler):
    desk: _Desk

    def do_GET(self) -> None:
        found = self.desk.file(self.path)
        self._reply(*(found or ("text/plain", b"not found")), status=200 if found else 404)

    def do_POST(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        good = size <= _MAX_RESULT and self.desk.take(self.path, self.rfile.read(size))
        self._reply("text/plain", b"", status=200 if good else 404)

    def _reply(self, kind: str, content: bytes, *, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        pass
