"""The agent hub: agents by name, from this process and from other packages."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ck_pro import ActionAgent, AgentSession, MultiStepAgent, register_agent
from ck_pro.agent import hub
from ck_pro.agent.hub import AgentEntry, agent_class, list_agents, summary_of
from ck_pro.events import Action, FinishAction
from ck_pro.exceptions import ConfigError

BUILTIN = {"plain": "ck_pro.agent:MultiStepAgent"}


class Shop(ActionAgent):
    """Sells lamps."""

    def step(self, state: AgentSession) -> Action:  # type: ignore[override]
        return FinishAction(output="sold")


@pytest.fixture(autouse=True)
def empty_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "_registered", {})


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package with two entry points, one of which is broken."""
    info = tmp_path / "hub_shop-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: hub-shop\nVersion: 1.0\n")
    points = ["[ck_pro.agents]", "kiosk = hub_shop:Kiosk", "broken = hub_shop:Missing"]
    (info / "entry_points.txt").write_text("\n".join(points) + "\n")
    (tmp_path / "hub_shop.py").write_text(
        "from ck_pro import MultiStepAgent\n\n\n"
        'class Kiosk(MultiStepAgent):\n    """Sells papers."""\n\n\nnumber = 3\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "hub_shop", raising=False)
    return tmp_path


def test_agents_of_this_process_and_of_packages_have_names(package: Path) -> None:
    register_agent("shop", Shop)
    entries = {entry.name: entry for entry in list_agents(BUILTIN)}
    assert list(entries) == sorted(entries)
    assert entries["shop"] == AgentEntry("shop", f"{__name__}:Shop")
    assert entries["kiosk"] == AgentEntry("kiosk", "hub_shop:Kiosk", "hub-shop")
    assert entries["plain"].source == "ck-pro"
    assert agent_class("shop") is Shop
    assert agent_class("kiosk").__name__ == "Kiosk"
    assert agent_class("plain", BUILTIN) is MultiStepAgent
    assert summary_of(entries["kiosk"]) == "Sells papers."
    assert summary_of(entries["broken"]).startswith("not usable: agent hub_shop:Missing: Attribu")


def test_a_class_needs_no_name(package: Path) -> None:
    assert agent_class("hub_shop:Kiosk").__doc__ == "Sells papers."
    with pytest.raises(ConfigError, match="hub_shop:number: not a subclass of MultiStepAgent"):
        agent_class("hub_shop:number")
    with pytest.raises(ConfigError, match="agent no_module:X: ModuleNotFoundError"):
        agent_class("no_module:X")


def test_wrong_names_and_classes_raise_one_line() -> None:
    @register_agent("shop")
    class Other(MultiStepAgent):
        """A decorated one."""

    assert agent_class("shop") is Other
    with pytest.raises(ConfigError, match="two agents are named 'shop'"):
        register_agent("shop", Shop)
    with pytest.raises(ConfigError, match="not a subclass of MultiStepAgent"):
        register_agent("x", int)  # type: ignore[type-var]
    with pytest.raises(ConfigError, match="no agent 'shpo'; did you mean 'shop'"):
        agent_class("shpo")
