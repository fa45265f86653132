"""Build the agent and the runner options from command-line options."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ck_main.cli.options import LIMITS
from ck_main.cli.profiles import nested, profile_settings
from ck_main.runner.choosing import TryOptions
from ck_main.runner.limits import RunLimits
from ck_main.runner.model_settings import inherited_settings, settings_of_models
from ck_main.runner.run_options import RunOptions
from ck_main.runner.service_checks import probe_services
from ck_main.scoring.scoring import Scoring
from ck_pro.agent import MultiStepAgent
from ck_pro.config import KwargsInitializable, expand_texts, iter_nested
from ck_pro.exceptions import ConfigError
from ck_pro.language import ComputerUseLanguage, language_named
from ck_pro.model import LLM
from ck_pro.settings import leaves, line_of, load_settings, merge_settings, parse_update
from ck_web.browser.config import WebEnvConfig
from ck_web.browser.server_process import check_chromium
from ck_web.computer import ComputerAgent

if TYPE_CHECKING:
    from ck_pro.tools.mcp import McpServers

_Agent = TypeVar("_Agent", bound=MultiStepAgent)


def build_agent(
    kind: type[_Agent],
    config: Path | None,
    updates: Sequence[str],
    model: str | None = None,
    planning: str | None = None,
    allow: Sequence[str] = (),
    language: str | None = None,
    profile: str | None = None,
    pictures: bool = False,
) -> _Agent:
    """Build an agent from a profile, a file, the options for all agents, and `--updates`.

    Its other models then get the settings of its `model` that they do not set themselves.

    Args:
        kind: class of the agent.
        config: path of the configuration file, or None; overrides the profile.
        updates: values of `--updates`; they override all others.
        model: `call_target` for every model; overrides the file.
        planning, language: settings of every agent; override the file.
        profile: a key of `PROFILES`, or None.
        allow: hosts that all browsers may open, in addition to their setting `allow`.
        pictures: whether all browsers store step pictures.

    Raises:
        ConfigError: a file, a name or a value is invalid; the message says where.
    """
    given = expand_texts(kind(), load_settings(config))
    settings = merge_settings(profile_settings(profile, kind()) if profile else {}, given)
    agent = _build(kind, settings, given, lambda names: f"config {config}{_line(config, names)}: ")
    if model is not None:
        everywhere = settings_of_models(agent, {"call_target": model})
        settings = merge_settings(settings, everywhere)
        agent = _build(kind, settings, everywhere, lambda names: "--model: ")
    built = settings
    settings = for_every_agent(agent, settings, planning=planning, language=language)
    for text in updates:
        update = expand_texts(agent, parse_update(text))
        settings = merge_settings(settings, update)
        source = f"--updates {shlex.quote(text)}: "
        agent = _build(kind, settings, update, lambda names, source=source: source)  # type: ignore[misc]
        built = settings
    more = [inherited_settings(agent, settings), _pictured(agent) if pictures else {}]
    for one in (*more, _allowed(agent, allow)):
        settings = merge_settings(settings, one) if one else settings
    return agent if settings == built else kind(**settings)


def _allowed(agent: MultiStepAgent, hosts: Sequence[str]) -> dict[str, Any]:
    """Return the settings that let all browsers of an agent open these hosts.

    Raises:
        ConfigError: the agent has no browser.
    """
    settings: dict[str, Any] = {}
    if not hosts:
        return settings
    for path, config in iter_nested(agent, WebEnvConfig):
        settings = merge_settings(settings, nested((*path, "allow"), [*config.allow, *hosts]))
    if not settings:
        raise ConfigError(f"--allow {hosts[0]}: this agent has no browser")
    return settings


def _pictured(agent: MultiStepAgent) -> dict[str, Any]:
    """Return the settings that let all browsers of an agent store step pictures.

    Raises:
        ConfigError: the agent has no browser.
    """
    settings: dict[str, Any] = {}
    for path, _ in iter_nested(agent, WebEnvConfig):
        settings = merge_settings(settings, nested((*path, "step_pictures"), True))
    if not settings:
        raise ConfigError("--pictures: this agent has no browser")
    return settings


def for_every_agent(
    agent: MultiStepAgent, settings: dict[str, Any], **everywhere: str | None
) -> dict[str, Any]:
    """Add settings of an agent and all its sub-agents, except those that are None.

    Raises:
        ConfigError: the language is one of agents that see the screen, and this agent does not.
    """
    language = everywhere.get("language")
    on_screen = language and isinstance(language_named(language), ComputerUseLanguage)
    if on_screen and not isinstance(agent, ComputerAgent):
        raise ConfigError(
            f"--language {language}: it is for agents that see the screen: use python -m "
            "ck_web.main --computer"
        )
    for name, value in everywhere.items():
        if value is not None:
            for path in ((), *(path for path, _ in iter_nested(agent, MultiStepAgent))):
                settings = merge_settings(settings, nested((*path, name), value))
    return settings


def _build(
    kind: type[_Agent],
    settings: dict[str, Any],
    latest: dict[str, Any],
    where: Callable[[Sequence[str]], str],
) -> _Agent:
    """Build the agent; an error names the `latest` setting that caused it."""
    try:
        return kind(**settings)
    except ConfigError as e:
        wrong = next(
            (n for n, value in leaves(latest).items() if not _is_valid(kind, n, value)), ()
        )
        raise ConfigError(f"{where(wrong)}{e}") from None


def _is_valid(kind: type[MultiStepAgent], names: Sequence[str], value: Any) -> bool:
    """Whether the agent accepts this setting alone."""
    try:
        kind(**nested([*names], value))
    except ConfigError:
        return False
    return True


def _line(config: Path | None, names: Sequence[str]) -> str:
    line = line_of(config, names) if config is not None and names else None
    return f", line {line}" if line else ""


def without_missing_browser(agent: _Agent) -> tuple[_Agent, str]:
    """Remove the sub-agents that need a browser if this machine cannot start one.

    Returns:
        The agent, and one line that names the removed sub-agents and the reason; "" if none was
        removed.
    """
    removed: list[str] = []
    reason = ""
    if os.environ.get("CK_CHROMIUM"):  # if it is missing, that is an error: see `check_services`
        return agent, ""
    for name in agent.sub_agents:
        try:
            _check_browser(getattr(agent, name, None) if isinstance(name, str) else name)
        except ConfigError as e:
            removed.append(name)
            reason = str(e)
    if not removed:
        return agent, ""
    kept = [name for name in agent.sub_agents if name not in removed]
    line = f"this run is without {' and '.join(removed)}: {reason}"
    return agent.updated({"sub_agents": kept}), line


def _check_browser(part: Any) -> None:
    """Raise ConfigError if a part of an agent needs a browser that cannot start here."""
    if not isinstance(part, KwargsInitializable):
        return
    for _, config in iter_nested(part, WebEnvConfig, used=True):
        if not config.given_server() and not config.chromium:
            check_chromium()


def run_options(agent: MultiStepAgent, options: Mapping[str, Any]) -> RunOptions:
    """Build the `RunOptions` of a command.

    Raises:
        ConfigError: `--judge-model` does not name a model, or `--scorer` no scorer.
    """
    judge: LLM | None = None
    if options["judge_model"] is not None:
        try:
            judge = agent.model.updated({"call_target": options["judge_model"]})
        except ConfigError as e:
            raise ConfigError(f"--judge-model: {e}") from None
    tries: TryOptions | None = None
    seeds = options["seeds"] or ()
    if options["tries"] or seeds:
        tries = TryOptions(
            options["tries"] or len(seeds),
            seeds,
            options["until"],
            options["reflect"],
            options["choose"],
            judge,
        )
    chosen = RunOptions(
        workers=options["workers"],
        retries=options["retries"],
        run=RunLimits(**{n: options[f"run_{n}"] for n in LIMITS}),
        tries=tries,
        fsync=options["fsync"],
        compress=options["compress"],
        scoring=_scoring(options["scorer"]),
        **{n: options[n] for n in LIMITS},
    )
    money = chosen.limits_money
    probe = lambda: probe_services(agent, money_limit=money, judge=chosen.judge)  # noqa: E731
    return replace(chosen, probe=probe)


def _scoring(scorer: str | None) -> Scoring | None:
    if scorer is None:
        return None
    if scorer.partition(":")[0].strip() == "judge":
        raise ConfigError(
            "--scorer judge: use --until llm_judge, or score the output later with "
            "python -m ck_main.score"
        )
    try:
        return Scoring(scorer)
    except ConfigError as e:
        raise ConfigError(f"--scorer: {e}") from None


def with_mcp_tools(agent: _Agent, servers: McpServers) -> _Agent:
    """Return the agent with the tools of running MCP servers.

    Raises:
        ConfigError: a server names an agent that does not exist.
    """
    agents: dict[tuple[str, ...], MultiStepAgent] = {(): agent}
    agents.update(iter_nested(agent, MultiStepAgent))
    known = {one.name for one in agents.values()}
    for name, entry in servers.entries.items():
        if unknown := set(entry.agents or ()) - known:
            raise ConfigError(
                f"mcpServers.{name}.agents: no agent {sorted(unknown)[0]!r}; known are: "
                f"{', '.join(sorted(known))}"
            )
    for path, one in agents.items():
        if tools := servers.tools_for(one.name, main=not path):
            agent = agent.updated(nested((*path, "tools"), [*one.tools, *tools]))
    return agent
