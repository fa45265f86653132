"""`--mcp FILE`: the tools of MCP servers for one command."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from main_command import code_reply, run, write_lines

from ck_pro.command_line import ExitCode

pytest.importorskip("mcp", reason='needs the extra mcp: pip install "ck-pro[mcp]"')
pytest.importorskip("mcp_server_time")
pytestmark = [pytest.mark.integration, pytest.mark.worker]


def test_the_main_agent_calls_a_public_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    called = "stop(convert_time('UTC', '12:00', 'Asia/Tokyo')['time_difference'])"
    model = f"replay:{write_lines(tmp_path / 'r.jsonl', [code_reply('When?', called)])}?check=off"
    server = {"command": sys.executable, "args": ["-m", "mcp_server_time"]}
    Path("mcp.json").write_text(json.dumps({"mcpServers": {"time": server}}))
    given = ("-t", "When?", "-m", model, "--planning", "off")
    code, out, err = run(capsys, *given, "--mcp", "mcp.json")
    assert (code, out.strip()) == (ExitCode.DONE, "+9.0h"), err
    Path("odd.json").write_text(
        json.dumps({"mcpServers": {"t": {**server, "agents": ["unknown"]}}})
    )
    code, _, err = run(capsys, *given, "--mcp", "odd.json")
    assert code == ExitCode.USAGE and "no agent 'unknown'" in err
    code, _, err = run(capsys, *given, "--mcp", "missing.json")
    assert code == ExitCode.USAGE and len(err.strip().splitlines()) == 1
    code, _, err = run(capsys, "-i", "x", "-o", "y", "--ray", "local", "--mcp", "mcp.json")
    assert code == ExitCode.USAGE and "omit --ray" in err
