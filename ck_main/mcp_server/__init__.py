"""An MCP server (Model Context Protocol): this project's agents and its browser as tools.

It imports the rooms listed before it, and the package `mcp` (an extra). `ck_main.mcp` runs it with
`AgentRuns`, `Browsers` and `make_server`.
"""
