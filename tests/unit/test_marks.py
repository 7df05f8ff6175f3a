"""At stake: an agent program that a person has started by hand is known by what it sets and what it is called."""

from __future__ import annotations

import pytest

from agentctl.domain.agent.driver_names import PLAIN
from agentctl.domain.agent.permissions import BadValue
from agentctl.drivers.acp.program import program_from
from agentctl.drivers.marks import SHIPPED, Marks, name_by_marks
from agentctl.drivers.registry import AGENT_DRIVERS, load

NODE = "/usr/bin/node"
GLOBAL = "/usr/lib/node_modules"


def test_the_table_says_of_each_program_what_its_driver_or_row_says() -> None:
    found = {name: load(name).marks for name in AGENT_DRIVERS if name != PLAIN}
    assert found == SHIPPED, "drivers/marks.py is what short commands read instead of programs.yaml"
    assert [name for name, marks in found.items() if load(name).program not in marks.names] == []
    assert load(PLAIN).marks == Marks(), "it runs below agentctl alone"


def called(kernels: str, program: str, *arguments: str) -> str | None:
    names = [name for marks in SHIPPED.values() for name in marks.names]
    return name_by_marks(kernels, program, list(arguments), names)


@pytest.mark.parametrize(
    ("process", "name"),
    [
        (("claude", "/home/me/.local/share/claude/versions/2.1.330", "claude"), "claude"),
        (("2.1.330", "/opt/claude", "/opt/claude"), "claude"),
        (("node", NODE, "node", f"{GLOBAL}/@anthropic-ai/claude-code/cli.js", "-p"), "@anthropic-ai/claude-code"),
        (("node", NODE, "node", "/usr/bin/codex"), "codex"),
        (("codex", "", "/opt/codex/bin/codex", "exec"), "codex"),
        (("node", NODE, NODE, "--expose-gc", f"{GLOBAL}/@qwen-code/qwen-code/cli.js", "-y"), "@qwen-code/qwen-code"),
        (("claude-agent-ac", NODE, "claude-agent-acp"), "claude-agent-acp"),
        (("node", NODE, "/home/me/.local/bin/cursor-agent", "--use-system-ca", "index.js"), "cursor-agent"),
        (("kimi", "/usr/bin/python3.13", "/usr/bin/python3", "/home/me/.local/bin/kimi"), "kimi"),
        (("opencode", "/opt/opencode (deleted)", "opencode"), "opencode"),
    ],
)
def test_a_program_is_known_however_it_was_installed(process: tuple[str, ...], name: str) -> None:
    assert called(*process) == name


@pytest.mark.parametrize(
    "process",
    [
        ("vim", "/usr/bin/vim", "vim", "claude"),
        ("bash", "/bin/bash", "-bash"),
        ("tmux: server", "/usr/bin/tmux", "tmux", "new", "-s", "codex"),
        ("node", NODE, "node", "server.js", f"{GLOBAL}/@openai/codex/bin/codex.js"),
        ("python3", "/usr/bin/python3", "python3", "-m", "http.server"),
        ("code", "/usr/share/code/code", "/usr/share/code/code", "--unity-launch"),
        ("sshd-session", "", "sshd-session: claude@pts/0"),
        ("", "", ""),
        ("kthreadd", ""),
    ],
)
def test_what_only_speaks_of_one_is_none(process: tuple[str, ...]) -> None:
    assert called(*process) is None


def test_a_row_of_a_persons_own_is_known_by_its_program_unless_that_runs_others() -> None:
    assert program_from({"program": "mine", "marks": ["MINE"], "runsAs": ["@me/mine"]}).known_by == Marks(
        ("MINE",), ("mine", "@me/mine")
    )
    for carrier in ("python3", "python3.13", "node", "npx", "uvx", "bash", "docker", "ssh"):
        assert program_from({"program": carrier}).known_by == Marks()


@pytest.mark.parametrize("row", [{"marks": ["A-B"]}, {"marks": "A"}, {"runsAs": ["bash"]}, {"runsAs": ["/opt/mine"]}])
def test_marks_that_are_none_are_refused(row: dict[str, object]) -> None:
    with pytest.raises(BadValue, match=r"variable|list|must be the name"):
        program_from({"program": "mine", **row})
