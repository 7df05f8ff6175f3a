"""The facts about Claude Code on which restrictions rely: a release that changes one of them fails here."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from agentctl.domain.agent.permissions import parse_policy
from agentctl.drivers.claude import DRIVER
from agentctl.drivers.claude.calls import LEAVING_PLAN, read_by
from agentctl.drivers.dialogue import Say
from agentctl.drivers.order import Order
from tests.agents.facts import VERSIONS
from tests.agents.lab import PATIENCE_S, Lab
from tests.agents.loose import claude
from tests.support import run, text_in, wait_until

pytestmark = pytest.mark.parametrize("program", ["claude"])
#: As `--help` names them: `manual` is another word for `default`, which it takes as well and tells.
MODES = {"acceptEdits", "auto", "bypassPermissions", "dontAsk", "manual", "plan"}
#: The tools that it offers an agent that may do anything, and about which somebody is asked.
ASKED = {
    "Bash", "CronCreate", "CronDelete", "Edit", "EnterWorktree", "ExitWorktree", "Monitor", "NotebookEdit",
    "SendMessage", "Skill", "WebFetch", "WebSearch", "Workflow", "Write",
}  # fmt: skip
#: What a host could answer by mistake.
INVALID: dict[str, Any] = {
    "an error": {"subtype": "error", "error": "of the host"},
    "not an answer": {"subtype": "success", "response": {"hookSpecificOutput": 7}},
    "an unknown decision": {
        "subtype": "success",
        "response": {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "perhaps"}},
    },
}
Answer = Callable[[dict[str, Any]], dict[str, Any] | None]


def test_version(lab: Lab) -> None:
    """The version that was tried is the one that is installed here."""
    assert DRIVER.tested == VERSIONS[lab.program]


def test_modes(lab: Lab) -> None:
    """It knows no other mode than those that were looked at."""
    environ = {name: value for name, value in {**os.environ, **lab.environ()}.items() if value is not None}
    told = subprocess.run(
        [_program(), "--help"], env=environ, capture_output=True, text=True, timeout=PATIENCE_S, check=True
    ).stdout
    (choices,) = re.findall(r"--permission-mode <mode>.*?\(choices: (.*?)\)", told, re.DOTALL)
    assert set(re.findall(r'"(\w+)"', choices)) == MODES


def test_tools(lab: Lab) -> None:
    """Each of its tools is one about which is asked, or one that is known to change nothing."""
    (begun, *_) = [line for line in conversation(lab, "text") if line.get("subtype") == "init"]
    assert begun["permissionMode"] == "default"
    unknown = {
        tool for tool in begun["tools"]
        if not tool.startswith("mcp__") and tool != LEAVING_PLAN and read_by(tool, {}, "/w") is None
    }  # fmt: skip
    assert unknown == ASKED


def test_every_call_is_asked_about(lab: Lab) -> None:
    """Our hook is called for each call, by the agent and its sub-agent, in plan mode too, which is told of."""
    target = lab.folder / "made"
    told = conversation(lab, "steps", [*steps(lab, "after a change of mode", target), *steps(lab, "sub-agent", target)])
    tools = [line["request"]["input"]["tool_name"] for line in told if is_hook(line)]
    assert tools == ["EnterPlanMode", "Bash", "Agent", "Bash"]
    assert [line["permissionMode"] for line in told if line.get("subtype") == "status"] == ["plan"]
    assert not target.exists()


@pytest.mark.parametrize("invalid", INVALID)
def test_invalid_answer(lab: Lab, invalid: str) -> None:
    """A call is refused where our hook's answer is not valid: {invalid}."""
    target = lab.folder / "made"
    told = conversation(lab, "steps", steps(lab, "shell", target), answer=lambda _: INVALID[invalid])
    assert any(map(is_hook, told))
    assert not target.exists()


def test_no_answer(lab: Lab) -> None:
    """A call is refused where our hook does not answer in time."""
    target = lab.folder / "made"
    told = conversation(lab, "steps", steps(lab, "shell", target), answer=lambda _: None, seconds=1)
    assert any(line["type"] == "control_cancel_request" for line in told)
    assert not target.exists()


def test_hook_of_a_prompt(lab: Lab) -> None:
    """Our hook for a prompt is called before the turn begins, by which a release is known that drops hooks."""
    told = conversation(lab, "text")
    called = [number for number, line in enumerate(told) if is_hook(line, "UserPromptSubmit")]
    begun = [number for number, line in enumerate(told) if line.get("subtype") == "init"]
    assert len(called) == len(begun) == 1
    assert called < begun
    assert told[begun[0]]["claude_code_version"] == DRIVER.tested


def test_hook_of_a_prompt_in_each_beginning(lab: Lab) -> None:
    """It is called in a kept agent, by a message in a turn, and in a resumed one."""
    agent = lab.spawn("slow", "--keep", "--permissions", "ask")
    lab.arrived("slow")
    lab.send(agent, "text", "--interrupt")
    wait_until(lambda: lab.open_questions(agent), timeout_s=PATIENCE_S, what="it to be idle")
    lab.send(agent, "text")
    wait_until(lambda: len(_begun(lab, agent)) == 3, timeout_s=PATIENCE_S, what="three turns")
    lab.cancel(agent)
    resumed = lab.resume(agent, "text")
    wait_until(lambda: _begun(lab, resumed), timeout_s=PATIENCE_S, what="its turn")
    lab.cancel(resumed)
    assert _begun(lab, agent) + _begun(lab, resumed) == [True] * 4


def _begun(lab: Lab, agent: str) -> list[bool]:
    """Return for each turn of an agent whether our hook was called before it began."""
    lines = [json.loads(line) for line in text_in(lab.task.agent(agent) / "stdout.log").split("\n")[:-1]]
    events = [line for line in lines if line.get("subtype") == "init" or is_hook(line, "UserPromptSubmit")]
    return [is_hook(before, "UserPromptSubmit") for before, now in pairwise(events) if now.get("subtype") == "init"]


# -- steps -------------------------------------------------------------------------------------------------------------


def steps(lab: Lab, kind: str, target: Path) -> Sequence[Any]:
    return claude.steps(lab, kind, target)


def _program() -> str:
    found = shutil.which("claude")
    assert found is not None
    return found


def is_hook(line: dict[str, Any], of: str = "PreToolUse") -> bool:
    is_one = line["type"] == "control_request" and line["request"]["subtype"] == "hook_callback"
    return bool(is_one and line["request"]["input"]["hook_event_name"] == of)


def denied_bash(line: dict[str, Any]) -> dict[str, Any]:
    """Deny commands alone, and leave all else to the program and its loosest settings."""
    said = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "no"}
    is_command = line["request"]["input"]["tool_name"] == "Bash"
    return {"subtype": "success", "response": {"hookSpecificOutput": said} if is_command else {}}


def conversation(
    lab: Lab, scenario: str, calls: Sequence[Any] = (), *, answer: Answer = denied_bash, seconds: int | None = None
) -> list[dict[str, Any]]:
    """Run the program as the driver starts it, with the person's loosest settings; return what it has said.

    Args:
        answer: What is answered to our hook; None: nothing.
        seconds: How long the program waits for that, instead of as long as it can.
    """
    (lab.work / "steps.json").write_text(json.dumps(list(calls)), encoding="utf-8")
    order = Order(
        "claude", _program(), "general", f"SCENARIO:{scenario}", cwd=str(lab.work),
        permissions=parse_policy("ask"),
    )  # fmt: skip
    set_here = {**lab.environ(), **claude.loosen(lab)}
    environ = {name: value for name, value in {**os.environ, **set_here}.items() if value is not None}
    opening = b"".join(action.data for action in DRIVER.dialogue(order).begin() if isinstance(action, Say))
    if seconds is not None:
        opening = re.sub(rb'"timeout": ?\d+', b'"timeout":%d' % seconds, opening)
    told: list[dict[str, Any]] = []
    with subprocess.Popen(
        DRIVER.argv(order),
        cwd=lab.work,
        env=DRIVER.environ(order, environ),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(opening)
        process.stdin.flush()
        for text in process.stdout:
            line = json.loads(text)
            told.append(line)
            is_prompt = is_hook(line, "UserPromptSubmit")
            response = {"subtype": "success", "response": {}} if is_prompt else answer(line) if is_hook(line) else None
            if response is not None:
                response = {**response, "request_id": line["request_id"]}
                process.stdin.write(json.dumps({"type": "control_response", "response": response}).encode() + b"\n")
                process.stdin.flush()
            # A sub-agent may work on after the first result.
            if line.get("subtype") == "session_state_changed" and line.get("state") == "idle":
                process.stdin.close()
                break
        process.stdout.read()
    return told


@pytest.mark.parametrize(("policy", "is_made"), [("own", True), ("deny", False)])
def test_a_plugin_of_the_persons_is_called_and_allows_where_their_settings_decide(
    lab: Lab, policy: str, is_made: bool
) -> None:
    """A plugin of the person's that allows all is called, under {policy}."""
    target = lab.folder / "made"
    (lab.work / "steps.json").write_text(json.dumps(claude.steps(lab, "shell", target)), encoding="utf-8")
    environ = {**lab.environ(), **claude.loosen(lab)}
    agent = ["--agent", "general", "--driver", "claude", "--name", "a1", "--permissions", policy]
    run("spawn", *agent, "SCENARIO:steps", env=environ)
    lab.end("a1")
    assert (lab.folder / claude.PLUGIN_RAN).exists()
    assert target.exists() is is_made
