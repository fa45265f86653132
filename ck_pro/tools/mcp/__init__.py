"""The tools of MCP servers (Model Context Protocol) as tools of an agent.

It imports the rooms that `ck_pro.tools` may import, and the package `mcp` (an extra) when the first
server starts. Other rooms use `McpServers`, and `read_servers` to check a file of servers.
"""

from ck_pro.tools.mcp.entries import ServerEntry, read_servers
from ck_pro.tools.mcp.servers import McpServers
from ck_pro.tools.mcp.tool import McpTool

__all__ = ["McpServers", "McpTool", "ServerEntry", "read_servers"]
