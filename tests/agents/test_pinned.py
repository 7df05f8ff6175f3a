"""The facts on which restrictions rely, as `programs.yaml` has them: a release that changes one fails here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentctl.drivers.acp.known import known_programs
from agentctl.drivers.acp.settings import MODE, Offers
from tests.agents.facts import VERSIONS
from tests.agents.lab import Lab

#: In the names of modes that we have made.
OURS = "agentctl"
ROWS = {name: row for name, row in known_programs(()).items() if row.tested}
#: The tools of qwen that its settings for asking do not name: they look, or speak with the user or the session alone.
#: By `tool_call` its model calls tools that it is not shown; each of these is asked about as if called by itself.
QUIET = {
    "qwen": {
        "ask_user_question", "cron_delete", "cron_list", "enter_plan_mode", "exit_plan_mode", "get_goal", "glob",
        "grep_search", "list_agents", "list_directory", "lsp", "read_file", "task_list", "task_stop", "todo_write",
        "tool_call", "tool_search", "update_goal", "zoom_image",
    },
}  # fmt: skip
#: Variables by which its user gets more tools, and some of these tools.
SWITCHED_ON: dict[str, tuple[dict[str, str | None], set[str]]] = {
    "qwen": ({"QWEN_CODE_ENABLE_ARTIFACT": "1", "QWEN_CODE_ENABLE_AGENT_TEAM": "1"}, {"team_create"}),
}
OF_ACP = pytest.mark.parametrize("program", sorted(ROWS))


def test_every_tested_program_is_tried_in_that_version() -> None:
    """The version that a row names is the one that is installed here."""
    assert {name: row.tested for name, row in ROWS.items()} == {name: VERSIONS[name] for name in ROWS}


@OF_ACP
def test_modes(lab: Lab) -> None:
    """The modes of its sessions are those of its row, and what it is in is what was ordered."""
    agent = lab.spawn("text")
    lab.completed(agent)
    offered = Offers("", opened(lab, agent)).values(MODE)
    assert {one for one in offered if OURS not in one} == {*ROWS[lab.program].modes}
    assert any(OURS in one for one in offered) == (lab.program in {"opencode", "codex-acp"}), "a mode of our own"


@pytest.mark.parametrize("program", sorted(QUIET))
@pytest.mark.parametrize("more", ["as it comes", "with what its user can switch on"])
def test_tools(lab: Lab, more: str) -> None:
    """Each tool of its model, {more}, is one that it asks about, or one that is known to change nothing."""
    expected: set[str] = set()
    if more != "as it comes":
        lab.variables, expected = SWITCHED_ON[lab.program]
    lab.completed(lab.spawn("text"))
    asked = asked_about(lab.program)
    # Of all requests: the newest one may be that of a sub-agent of the program's own, which has fewer.
    offered = {tool for request in lab.standin.requests for tool in request.tools}
    tools = {tool for tool in offered if not tool.startswith("mcp__")}
    assert tools - asked - QUIET[lab.program] == set()
    assert expected - tools == set(), "these are no tools of it any more"


def opened(lab: Lab, agent: str) -> dict[str, Any]:
    """Return the reply by which the program has opened its session."""
    lines = (lab.task.agent(agent) / "stdout.log").read_bytes().splitlines()
    replies = [json.loads(line).get("result", {}) for line in lines]
    return dict(next(reply for reply in replies if isinstance(reply, dict) and "sessionId" in reply))


def asked_about(program: str) -> set[str]:
    """Return the names of the tools about which the settings for asking ask, by the names that its model knows."""
    from agentctl.drivers.acp import program as rows

    path = ROWS[program].asking.environ["QWEN_CODE_SYSTEM_SETTINGS_PATH"]  # type: ignore[union-attr]
    folder = str(rows.__file__).rpartition("/")[0]
    named = json.loads(Path(path.replace("{here}", folder)).read_text(encoding="utf-8"))["permissions"]["ask"]
    called = {
        "Bash": "run_shell_command", "Edit": "edit", "Write": "write_file", "WebFetch": "web_fetch", "Skill": "skill",
        "Agent": "agent",
    }  # fmt: skip
    return {called.get(name, name) for name in named}
