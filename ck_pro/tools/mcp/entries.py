"""The file that lists MCP servers."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ck_pro.exceptions import ConfigError
from ck_pro.settings import load_settings

_VARIABLE = re.compile(r"\$\{(\w+)\}")


class ServerEntry(BaseModel):
    """One server of an MCP file; give either `command` or `url`.

    Attributes:
        command, args, env, cwd: how to start a server that speaks over its standard streams. It
            inherits only basic variables (PATH, HOME, ...). `${NAME}` in a value of `env` or
            `headers` is replaced by the environment variable NAME.
        url, headers: address of a server that speaks Streamable HTTP.
        timeout: seconds for the start, and for one call.
        tools: names of the tools to use; all by default.
        agents: names of the agents that get the tools; the main agent by default.
    """

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    command: str = ""
    args: list[str] = []
    env: dict[str, str] = {}
    cwd: str | None = None
    url: str = ""
    headers: dict[str, str] = {}
    timeout: float = Field(default=60.0, gt=0)
    tools: list[str] | None = None
    agents: list[str] | None = None
    type: str = ""


def read_servers(path: Path | str) -> dict[str, ServerEntry]:
    """Read an MCP file: `{"mcpServers": {NAME: {"command": ..., "args": [...]}}}`, JSON or YAML.

    Raises:
        ConfigError: the file or an entry is invalid.
    """
    given = load_settings(Path(path))
    servers = given.get("mcpServers", given.get("servers"))
    if not isinstance(servers, Mapping) or not servers:
        raise ConfigError(f"{path}: it has no object mcpServers with a server")
    found = {}
    for name, facts in servers.items():
        try:
            entry = found[str(name)] = ServerEntry.model_validate(facts)
        except ValidationError as e:
            first = e.errors(include_url=False, include_input=False)[0]
            field = ".".join(str(part) for part in first["loc"])
            raise ConfigError(f"{path}: mcpServers.{name}.{field}: {first['msg']}") from None
        if bool(entry.command) == bool(entry.url):
            raise ConfigError(f"{path}: mcpServers.{name}: give either command or url")
        if entry.type == "sse":
            raise ConfigError(f"{path}: mcpServers.{name}: type sse is not supported; use http")
    return found


def expanded(values: Mapping[str, str]) -> dict[str, str]:
    """Return values with the environment variables that they name."""
    return {
        k: _VARIABLE.sub(lambda found: os.environ.get(found[1], ""), v) for k, v in values.items()
    }
