"""acpx, a client of the Agent Client Protocol that is none of ours, works with the real programs by `agentctl acp`.

It is started anew for each command, and takes up its session again by its own means.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents.facts import VENDORS
from tests.agents.lab import PATIENCE_S, Lab
from tests.agents.scenarios import done
from tests.support import PROGRAM, environment, run

Acpx = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = VENDORS


@pytest.fixture
def acpx(client: list[str], lab: Lab) -> Iterator[Acpx]:
    """Return what runs acpx with a server that has the program of the lab."""
    server = shlex.join([*PROGRAM, "acp", "--driver", lab.program])

    def ran(*words: str) -> subprocess.CompletedProcess[str]:
        argv = [*client, "--ttl", "5", "--agent", server, *words]
        return subprocess.run(
            argv, env=environment(lab.environ()), stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=PATIENCE_S * 2, check=False,
        )  # fmt: skip

    yield ran
    ran("sessions", "close")


def messages(ran: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """Return what went over the wire."""
    return [json.loads(line) for line in ran.stdout.splitlines()]


def updates(ran: subprocess.CompletedProcess[str], kind: str) -> list[dict[str, Any]]:
    """Return the updates of a kind."""
    found = [one["params"]["update"] for one in messages(ran) if one.get("method") == "session/update"]
    return [one for one in found if one["sessionUpdate"] == kind]


@pytest.mark.parametrize(("policy", "files"), [("--approve-all", ["asked.txt"]), ("--deny-all", [])])
def test_a_permission_of_one_prompt(acpx: Acpx, lab: Lab, policy: str, files: list[str]) -> None:
    """An editor's user is asked for a permission: {policy}."""
    ran = acpx(policy, "--format", "json", "exec", "SCENARIO:ask")
    assert ran.returncode == 0 or policy == "--deny-all", ran
    assert sorted(path.name for path in Path(lab.work).iterdir()) == files
    (asked,) = [one["params"] for one in messages(ran) if one.get("method") == "session/request_permission"]
    assert "asked.txt" in json.dumps(asked["toolCall"])
    assert {one["kind"] for one in asked["options"]} >= {"allow_once", "reject_once"}
    said = "".join(one["content"]["text"] for one in updates(ran, "agent_message_chunk"))
    assert done("ask", 1) in said
    (response,) = [one["result"] for one in messages(ran) if "stopReason" in one.get("result", {})]
    assert response["stopReason"] == "end_turn"
    assert response["usage"]["totalTokens"] > 0


def test_a_sub_agent_of_the_program(acpx: Acpx, lab: Lab) -> None:
    """An editor shows what a sub-agent does, below its own card."""
    ran = acpx("--approve-all", "--format", "json", "exec", "SCENARIO:subagent=ask")
    assert ran.returncode == 0, ran
    calls = {one["toolCallId"]: one for one in updates(ran, "tool_call")}
    below = [one for one in calls.values() if one["_meta"]["agentctl"].get("parentToolCallId")]
    assert below
    assert all(one["_meta"]["agentctl"]["parentToolCallId"] in calls for one in below)
    assert all(one["_meta"]["agentctl"]["depth"] == 1 for one in below)


def test_a_client_without_a_user(acpx: Acpx, lab: Lab) -> None:
    """A client that dismisses every question does not hang: the turn ends, and the next prompt is the answer."""
    assert acpx("sessions", "new").returncode == 0
    asked = acpx("--format", "json", "SCENARIO:askus")
    assert any("stopReason" in one.get("result", {}) for one in messages(asked)), asked
    (worker,) = run("list", "--json").json
    lab.question(worker["agentInstance"])
    answered = acpx("--format", "quiet", "blue")
    assert "The answer was: blue." in answered.stdout, answered


def test_a_session_of_several_prompts(acpx: Acpx, lab: Lab) -> None:
    """An editor's session goes on with the next prompt."""
    assert acpx("sessions", "new").returncode == 0
    first = acpx("--format", "quiet", "SCENARIO:text")
    assert (first.returncode, first.stdout.strip()) == (0, "The answer of the stand-in model."), first
    second = acpx("--format", "quiet", "SCENARIO:text")
    assert second.returncode == 0, second
    (worker,) = run("list", "--json").json
    rows = (lab.task.agent(worker["agentInstance"]) / "activity.jsonl").read_text(encoding="utf-8")
    assert rows.count("SCENARIO:text") == 2
