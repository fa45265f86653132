"""Environments that are held while a run waits for a person."""

from __future__ import annotations

import threading

import pytest

from ck_pro import environment as environments
from ck_pro.environment import Holder
from ck_pro.testing import FakeEnvironment

_SECONDS = 20.0


class Counted(FakeEnvironment):
    """Counts the calls of `hold`."""

    def __init__(self) -> None:
        super().__init__()
        self.holds: list[bool] = []
        self.renewed = threading.Event()

    def hold(self, held: bool) -> bool:
        self.holds.append(held)
        if self.holds.count(True) >= 3:
            self.renewed.set()
        return held


def test_a_long_wait_holds_its_environments_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(environments, "_RENEW_SECONDS", 0.01)
    holder, environment = Holder(), Counted()
    with holder.held([environment]):
        assert environment.renewed.wait(_SECONDS)
    assert environment.holds[-1] is False
    after = len(environment.holds)
    with holder.held([Counted()]):  # another wait does not hold it
        pass
    assert len(environment.holds) == after


def test_an_environment_stays_held_until_its_last_wait_ends() -> None:
    holder, shared = Holder(), Counted()
    with holder.held([shared]):
        with holder.held([shared, Counted()]):
            pass
        assert False not in shared.holds
    assert shared.holds == [True, True, False]


def test_a_wait_survives_an_environment_that_cannot_be_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Broken(Counted):
        def hold(self, held: bool) -> bool:
            raise OSError("gone")

    logged: list[str] = []
    monkeypatch.setattr(environments._log, "exception", lambda text, *args: logged.append(text))
    with Holder().held([Broken()]):
        assert logged == ["%s could not be held"]
