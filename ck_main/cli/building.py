"""From what a command was told to an agent and the options of its runner."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from ck_main.cli.options import LIMITS
from ck_main.runner.choosing import TryOptions
from ck_main.runner.limits import RunLimits
from ck_main.runner.run_options import RunOptions
from ck_main.runner.service_checks import model_settings, probe_services
from ck_pro.agent import MultiStepAgent
from ck_pro.exceptions import ConfigError
from ck_pro.model import LLM
from ck_pro.settings import leaves, line_of, load_settings, merge_settings, parse_update

_Agent = TypeVar("_Agent", bound=MultiStepAgent)


def build_agent(
    kind: type[_Agent], config: Path | None, updates: Sequence[str], model: str | None = None
) -> _Agent:
    """An agent from a configuration file, a model for all agents, and updates, in order.

    Args:
        kind: the agent's class.
        config: the file; None for none.
        updates: settings as `--updates` has them.
        model: the `call_target` of every model, laid over the file's.

    Raises:
        ConfigError: a file, a name or a value is wrong; the message says where it stands.
    """
    settings = load_settings(config)
    agent = _built(
        kind, settings, settings, lambda names: f"config {config}{_line(config, names)}: "
    )
    if model is not None:
        everywhere = model_settings(agent, model)
        settings = merge_settings(settings, everywhere)
        _built(kind, settings, everywhere, lambda names: "--model: ")
    for text in updates:
        update = parse_update(text)
        settings = merge_settings(settings, update)
        said = f"--updates {shlex.quote(text)}: "
        _built(kind, settings, update, lambda names, said=said: said)  # type: ignore[misc]
    return kind(**settings)


def _built(
    kind: type[_Agent],
    settings: dict[str, Any],
    news: dict[str, Any],
    where: Callable[[Sequence[str]], str],
) -> _Agent:
    """The agent of some settings; an error says where, among the `news`, it comes from."""
    try:
        return kind(**settings)
    except ConfigError as e:
        wrong = next((n for n, value in leaves(news) if not _usable(kind, n, value)), ())
        raise ConfigError(f"{where(wrong)}{e}") from None


def _usable(kind: type[MultiStepAgent], names: Sequence[str], value: Any) -> bool:
    """Whether one setting on its own is accepted."""
    for name in reversed(names):
        value = {name: value}
    try:
        kind(**value)
    except ConfigError:
        return False
    return True


def _line(config: Path | None, names: Sequence[str]) -> str:
    line = line_of(config, names) if config is not None and names else None
    return f", line {line}" if line else ""


def run_options(agent: MultiStepAgent, options: Mapping[str, Any]) -> RunOptions:
    """How the tasks are run, as the options say.

    Raises:
        ConfigError: the judge is no model.
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
        **{n: options[n] for n in LIMITS},
    )
    money = chosen.limits_money
    probe = lambda: probe_services(agent, money_limit=money, judge=chosen.judge)  # noqa: E731
    return replace(chosen, probe=probe)
