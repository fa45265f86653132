"""An agent with the tools of an MCP server: the public server mcp-server-time.

    pip install "ck-pro[mcp]" mcp-server-time
    python examples/mcp_agent.py

A scripted model makes the example run without a key. With a real one, write
`model="gpt:gpt-4.1"`. The command line does the same: `python -m ck_main.main --mcp FILE`.
"""

import sys

from ck_pro import MultiStepAgent, StopTool
from ck_pro.testing import ScriptedLLM
from ck_pro.tools.mcp import McpServers

SERVERS = {"time": {"command": sys.executable, "args": ["-m", "mcp_server_time"]}}
REPLY = """Thought: The server converts times.
```python
found = convert_time(source_timezone="UTC", time="12:00", target_timezone="Asia/Tokyo")
stop(found["target"]["datetime"][11:16])
```"""


def main() -> None:
    with McpServers(SERVERS) as servers:  # the servers end with this block
        agent = MultiStepAgent(model=ScriptedLLM([REPLY]), tools=[*servers.tools, StopTool()])
        session = agent.run("What is the time in Tokyo at noon UTC?")
    print(session.status, session.final_results["output"])


if __name__ == "__main__":
    main()
