"""A usage window that is used up in the middle of the work: everybody waits, goes on, and does nothing twice."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.agents.facts import VENDORS
from tests.agents.lab import Lab
from tests.agents.surroundings import KEY
from tests.agents.windows import UsageWindow
from tests.agents.wire import OUTPUT_TOKENS
from tests.steps import statuses
from tests.support import run, wait_until

pytestmark = VENDORS
MANY, AT_ONCE = 20, 5


@pytest.fixture
def lab(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    """The lab, where Claude Code has a login: only then it is told of windows."""
    plain = lab.environ

    def environ(retries: int = 1) -> dict[str, str | None]:
        key = os.environ.get("TEST_KEY", KEY)
        return plain(retries) | {"ANTHROPIC_API_KEY": None, "CLAUDE_CODE_OAUTH_TOKEN": key, "OPENAI_API_KEY": key}

    monkeypatch.setattr(lab, "environ", environ)
    yield lab
    run("cancel", "--all", check=False)


def queue(lab: Lab, *names: str) -> None:
    """Start agents that call a tool and answer, as far as there are slots."""
    for name in names:
        lab.spawn("tool", "--permissions", "allow", "--queue", name=name)


def are_parked(lab: Lab, *names: str) -> None:
    for name in names:
        lab.task.has("agent.parked", name)
    wait_until(statuses, accept=lambda now: {now[name] for name in names} == {"queued"}, what="all to be parked")


def test_many(lab: Lab) -> None:
    """5 of 20 agents stopped in mid-turn by a usage window: all complete, no request is served twice."""
    window = lab.standin.windows[KEY] = UsageWindow(AT_ONCE, 20)
    names = [f"a{number}" for number in range(MANY)]
    queue(lab, *names)
    assert run("wait-all", timeout=120, check=False).code == 0, statuses()
    assert window.served == 2 * MANY
    # On a slow machine one that was under way, or whose clock was a little early, is refused once more.
    assert AT_ONCE <= window.refused <= 2 * AT_ONCE
    parked = {event["agentInstance"] for event in lab.task.events("agent.parked")}
    assert AT_ONCE <= len(parked) <= window.refused
    for name in names:
        commands = [row for row in lab.activity(name, "tool") if row["phase"] == "start"]
        assert len(commands) == 1, name
    assert run("usage", "--json").json["total"]["output"] == OUTPUT_TOKENS * window.served


def test_everything_is_killed_while_it_waits(lab: Lab) -> None:
    """All processes killed while an agent is parked: it goes on in its session."""
    lab.standin.windows[KEY] = UsageWindow(1, 4)
    queue(lab, "a1")
    are_parked(lab, "a1")
    lab.crash()
    lab.completed("a1")
    assert lab.standin.windows[KEY].served == 2


def test_a_reset_that_moves(lab: Lab) -> None:
    """A reset that comes later than it was told: parked again."""
    lab.standin.windows[KEY] = UsageWindow(1, 6, tells=4)
    queue(lab, "a1")
    lab.completed("a1")
    assert [event["payload"]["window"] for event in lab.task.events("agent.parked")] == ["five_hour"] * 2
    assert lab.standin.windows[KEY].served == 2


def test_two_accounts(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another account is not held up."""
    lab.standin.windows[KEY] = UsageWindow(1, 600)
    queue(lab, "a1")
    are_parked(lab, "a1")
    monkeypatch.setenv("TEST_KEY", f"{KEY}-of-another")
    lab.completed(lab.spawn("tool", "--permissions", "allow", name="b1"))
    assert statuses() == {"a1": "queued", "b1": "completed"}


def test_what_is_told(lab: Lab) -> None:
    """The usage windows of the account, in `usage`."""
    lab.standin.windows[KEY] = UsageWindow(10, 600)
    lab.completed(lab.spawn("text"))
    (account,) = run("usage", "--json").json["accounts"]
    windows = {window["window"]: window["usedPercent"] for window in account["windows"]}
    assert windows == {"five_hour": pytest.approx(10, abs=1), "seven_day": pytest.approx(12.5, abs=1)}
    assert account["held"] is None
