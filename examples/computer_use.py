"""The loop of OpenAI's sample agent for computer use: a conversation with a browser.

python examples/computer_use.py                          # scripted replies and a local page
python examples/computer_use.py -m gpt:computer-use-preview --start-url https://example.org
"""

from __future__ import annotations

import argparse
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ck_pro.model import CallContext, Reply
from ck_pro.testing import ScriptedLLM
from ck_web import BrowserComputer, ComputerAgent

PAGE = b"""<!doctype html><title>Bell</title><style>body { margin: 0 }</style>
<canvas id="c" width="600" height="400"></canvas><p id="p">silent</p><script>
const pen = c.getContext('2d'); pen.fillStyle = 'gold'; pen.fillRect(200, 100, 200, 200);
c.onclick = (e) => { if (e.offsetX > 200 && e.offsetY > 100) p.textContent = 'the bell rings'; };
</script>"""
CHECK = {"id": "sc_1", "code": "irrelevant_domain", "message": "Is this the right page?"}


@contextmanager
def serve(page: bytes) -> Iterator[str]:
    """Serve one page on loopback; yield its host and port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


def scripted(messages: list[dict[str, Any]], context: CallContext) -> Reply:
    """A model that clicks the bell, then reports what it reads."""
    if context.step == 0:
        act = {"type": "click", "button": "left", "x": 300, "y": 200}
        call = {"type": "computer_call", "call_id": "c1", "action": act}
        return Reply("", items=[{**call, "pending_safety_checks": [CHECK]}])
    rings = "the bell rings" in str(messages)
    answers = ["The bell rings." if rings else "Nothing happened.", "You are welcome."]
    return Reply(answers[context.step - 1])


def acknowledge(message: str) -> bool:
    """Accept every safety check, and print it."""
    print(f"safety check accepted: {message}")
    return True


def main() -> None:
    """Talk with the agent: two messages of a script, or lines from the terminal."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("-m", "--model", help="model; without one, a script replies")
    parser.add_argument("--start-url", default="")
    parser.add_argument("--show", action="store_true", help="show each screen")
    parser.add_argument("--debug", action="store_true", help="print all items")
    args = parser.parse_args()
    said = iter(["Ring the bell.", "Thank you."])
    with serve(PAGE) as place:
        web_env = {} if args.start_url else {"allow": [place]}
        start_url = args.start_url or f"http://{place}/"
        with BrowserComputer(start_url, web_env=web_env) as computer:
            agent = ComputerAgent(
                model=args.model or ScriptedLLM(replies=scripted),
                language="computer_use_preview",
                computer=computer,
                acknowledge_safety_check_callback=acknowledge,
            )
            items: list[Any] = []
            while text := input("> ") if args.model else next(said, ""):
                items.append({"role": "user", "content": text})
                items += agent.run_full_turn(items, show_images=args.show, debug=args.debug)
            print(f"{len(items)} items, session {items[-1].session.status}")


if __name__ == "__main__":
    main()
