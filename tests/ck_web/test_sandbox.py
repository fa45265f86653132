"""`SandboxManager`: a given or made sandbox, renewed before each use, on a fake server."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from fake_wire import SHOP, FakeWire
from web_scripts import web_script

from ck_pro import Status
from ck_pro.exceptions import (
    BrowserServerError,
    ConfigError,
    EnvironmentFailure,
    LeaseExpired,
)
from ck_pro.session import StopReason
from ck_web import WebAgent, WebEnv, WebEnvConfig
from ck_web.desktop import missing_programs
from ck_web.sandbox import (
    BrowserSandboxes,
    DesktopSandboxes,
    Sandbox,
    SandboxManager,
    application_platform,
)


def manager(wire: FakeWire, **given: object) -> SandboxManager:
    return SandboxManager(provider=BrowserSandboxes({"server_url": wire.url}), **given)  # type: ignore[arg-type]


def test_a_made_sandbox_is_renewed_and_ended(wire: FakeWire) -> None:
    with manager(wire, lease_seconds=600) as made:
        sandbox = made.ensure()
        assert list(wire.browsers) == [sandbox.id] and made.ensure().id == sandbox.id
        assert wire.count("renewBrowser") == 1
        leased = [body for route, body in wire.requests if route == "getBrowser"]
        assert leased[0]["leaseSeconds"] == 600
    assert not wire.browsers


@pytest.mark.worker
def test_runs_use_one_sandbox_one_after_another(wire: FakeWire, tmp_path: Path) -> None:
    with manager(wire) as made:
        settings = {**(made.ensure().settings or {}), "target_url": SHOP}
        first = WebAgent(model=web_script("click(3)", "stop('one')"), web_env=settings)
        assert first.run("t", workdir=tmp_path).status is Status.DONE
        assert len(wire.browsers) == 1, "a run ended a lease that it did not make"
        second = WebAgent(model=web_script("stop('two')"), web_env=made.ensure().settings)
        session = second.run("t", workdir=tmp_path)
        assert session.steps[0]["action"]["web_state_before"]["title"] == "Lamps"
        assert wire.count("getBrowser") == 1
    assert not wire.browsers


def test_a_given_sandbox_is_never_ended(wire: FakeWire) -> None:
    with manager(wire) as other:
        sandbox = other.ensure()
        with manager(wire, sandbox_id=sandbox.id, sandbox_url=wire.url) as given:
            assert given.ensure().id == sandbox.id
        assert list(wire.browsers) == [sandbox.id]
        env = WebEnv({"sandbox_url": wire.url, "sandbox_id": sandbox.id})
        env.close()
        assert list(wire.browsers) == [sandbox.id]


def test_a_sandbox_that_has_ended_is_one_line(wire: FakeWire) -> None:
    with (
        manager(wire, sandbox_id="gone", sandbox_url=wire.url) as given,
        pytest.raises(BrowserServerError, match="no such browser"),
    ):
        given.ensure()


def test_a_lease_that_cannot_be_renewed_ends_the_run_as_a_problem(
    wire: FakeWire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = {"server_url": wire.url, "target_url": SHOP}
    monkeypatch.setattr(
        "ck_web.browser.client.BrowserClient.renew_browser", lambda *_, **__: time.time() + 30
    )
    monkeypatch.setattr("fake_wire.FakeWire.answer", _short(FakeWire.answer))
    session = WebAgent(model=web_script("stop('x')"), web_env=env).run("t", workdir=tmp_path)
    assert (session.status, session.stop_reason) == (Status.PROBLEM, StopReason.LEASE_EXPIRED)
    assert "was not renewed" in session.message and not wire.browsers


def _short(answer):  # type: ignore[no-untyped-def]
    """Leases that last half a minute."""

    def short(self, route, body):  # type: ignore[no-untyped-def]
        status, reply = answer(self, route, body)
        return status, {**reply, "expiresAt": time.time() + 30} if route == "getBrowser" else reply

    return short


def test_a_manager_reports_less_than_a_minute_as_expired() -> None:
    class Ending:
        def create(self, lease_seconds: float | None) -> Sandbox:
            return Sandbox("s", "http://s", time.time() + 600)

        def renew(self, sandbox: Sandbox, lease_seconds: float | None) -> Sandbox:
            return replace(sandbox, expires_at=time.time() + 59)

        def end(self, sandbox: Sandbox) -> None:
            self.ended = sandbox.id

        def close(self) -> None: ...

    provider = Ending()
    with SandboxManager(provider=provider) as made:  # type: ignore[arg-type]
        made.ensure()
        with pytest.raises(LeaseExpired, match="cannot be renewed"):
            made.ensure()
    assert provider.ended == "s"


@pytest.mark.parametrize("name", ["browser", " Google-Chrome ", "chromium"])
def test_names_of_the_browser(name: str) -> None:
    assert application_platform(name) == "browser"


@pytest.mark.parametrize("name", ["vscode", "firefox", ""])
def test_another_platform_is_a_clear_error(name: str) -> None:
    with pytest.raises(ConfigError, match="known are: browser, desktop"):
        application_platform(name)


def test_settings_without_effect_are_errors() -> None:
    with pytest.raises(ConfigError, match="server_url"):
        WebEnvConfig(sandbox_id="b1")
    with pytest.raises(ConfigError, match="together"):
        SandboxManager(sandbox_id="b1")
    with pytest.raises(ConfigError, match="at least 120"):
        SandboxManager(lease_seconds=30)


@pytest.mark.integration
@pytest.mark.skipif(bool(missing_programs()), reason=missing_programs() or "")
def test_a_desktop_is_a_sandbox(tmp_path: Path) -> None:
    provider = DesktopSandboxes({"width": 320, "height": 240}, workdir=tmp_path)
    with SandboxManager(provider=provider) as made:
        sandbox = made.ensure()
        assert made.ensure() is sandbox and sandbox.platform == "desktop"
        image = made.screenshot()
        assert image is not None and image.startswith(b"\x89PNG")
        assert sandbox.computer.is_open
    assert not sandbox.computer.is_open
    with pytest.raises(EnvironmentFailure, match="belongs to the process"):
        provider.connect("d", "u")
