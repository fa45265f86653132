"""A LangGraph graph that manages a sandbox: sandbox manager, planner, executor, end.

    pip install "ck-pro[web,langgraph]"
    python examples/sandbox_graph.py

The graph stops for a person, and resumes on the same page with the answer. Scripted models make the
example run without a key; a small site makes it run without a network.
"""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from tempfile import TemporaryDirectory

from langgraph.checkpoint.memory import InMemorySaver

from ck_main.graph import SandboxGraph
from ck_pro.testing import ScriptedLLM
from ck_web import WebAgent
from ck_web.sandbox import BrowserSandboxes, SandboxManager

PAGE = b"""<!doctype html><title>Account</title><label>Code <input></label>
<button onclick="document.title = 'Welcome ' + document.querySelector('input').value">Log in
</button>"""
STEP = """Thought: The page asks for a code that only the user has.
```python
type("Code", ask_human("Which code did the site send?"), enter=False)
click("Log in")
stop(evaluate("document.title"))
```"""


class Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *args: object) -> None:
        pass


def main() -> None:
    site = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{site.server_port}/"
    provider = BrowserSandboxes({"allow": ["127.0.0.1"]})
    planner = ScriptedLLM([f'{{"steps": ["Log in at {url} and report the title."]}}'])
    agent = WebAgent(model=ScriptedLLM([STEP]), planning="off")
    thread = {"configurable": {"thread_id": "1"}}
    with SandboxManager(provider=provider, lease_seconds=600) as manager, TemporaryDirectory() as f:
        machine = SandboxGraph(manager, agent, planner=planner, folder=f)
        graph = machine.compiled(checkpointer=InMemorySaver())
        state = graph.invoke({"user_request": "Log in, please."}, thread)
        print(state["status"], "|", state["message"])
        state = graph.invoke({"answer": "4321"}, thread)
        print(state["status"], "|", state["last_executor_output"])
    site.shutdown()
    site.server_close()


if __name__ == "__main__":
    main()
