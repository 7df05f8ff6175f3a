"""At stake: a definition means what it says; reading it never loses a restriction and never adds a permission."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.domain.agent.agentspec import AgentSpec, claude_spec, codex_spec, own_spec
from agentctl.domain.agent.granted_powers import powers
from agentctl.domain.agent.permissions import BadValue, answer_by


def own(**keys: Any) -> AgentSpec:
    return own_spec(keys, "a", "Do it.\n", "/a.md")


def claude(**keys: Any) -> AgentSpec:
    return claude_spec(keys, "a", "Do it.", "/a.md")


def codex(**keys: Any) -> AgentSpec:
    return codex_spec(keys, "a", "", "/a.toml")


def test_our_own_format_says_everything() -> None:
    whole = {
        "name": "fixer", "description": "Mends\n  things.", "driver": "claude", "model": "sonnet", "effort": "low",
        "tools": ["Read", "Edit"], "readOnly": True, "maxTurns": 7, "timeoutSeconds": 90.5, "maxBudgetUsd": 2,
        "permissions": [{"tool": "Bash", "pattern": "make *", "answer": "deny"}], "isolation": "worktree",
    }  # fmt: skip
    spec = own(**whole)
    assert spec.instructions == "Do it."
    told = dict(spec.to_json())
    assert {key: told[key] for key in whole} == {**whole, "description": "Mends things."}
    assert (told["argv"], told["promptOnStdin"], told["ignored"]) == (None, False, [])


def test_what_is_not_said_is_left_to_the_program() -> None:
    assert own() == AgentSpec(name="a", instructions="Do it.", source="/a.md")


def test_a_command_takes_the_prompt_as_it_is_told() -> None:
    spec = own(argv=["aider", "--yes"], promptOnStdin=True)
    assert (spec.driver, spec.argv, spec.prompt_on_stdin) == ("command", ["aider", "--yes"], True)


MISTAKES: list[tuple[dict[str, Any], str, str]] = [
    ({"readonly": True}, "readonly", "unknown key"),
    ({"tool": "Read"}, "tool", "unknown key"),
    ({"name": "../x"}, "name", "is not a name"),
    ({"name": "two words"}, "name", "is not a name"),
    ({"name": 5}, "name", "is not a name"),
    ({"description": ["x"]}, "description", "must be text"),
    ({"model": "--dangerously-skip-permissions"}, "model", "must be the name of a model"),
    ({"model": 'a" -c x="b'}, "model", "must be the name of a model"),
    ({"effort": "huge"}, "effort", "one of low, medium, high"),
    ({"effort": ["low"]}, "effort", "one of low, medium, high"),
    ({"tools": []}, "tools", "leave it out for all"),
    ({"tools": None}, "tools", "leave it out for all"),
    ({"tools": " , "}, "tools", "names of tools"),
    ({"tools": "Read, --allowedTools"}, "tools", "begin with a letter"),
    ({"tools": [["Read"]]}, "tools", "names of tools"),
    ({"readOnly": "yes"}, "readOnly", "true or false"),
    ({"maxTurns": 0}, "maxTurns", "a whole number from 1"),
    ({"maxTurns": True}, "maxTurns", "a whole number from 1"),
    ({"timeoutSeconds": float("nan")}, "timeoutSeconds", "a number from"),
    ({"maxBudgetUsd": -1}, "maxBudgetUsd", "a number from"),
    ({"isolation": "container"}, "isolation", "worktree or none"),
    ({"driver": "../evil"}, "driver", "the name of a driver"),
    ({"driver": "command"}, "driver", "needs argv"),
    ({"argv": "make it"}, "argv", "a list"),
    ({"argv": []}, "argv", "a list"),
    ({"argv": ["a\0b"]}, "argv", "a list"),
    ({"argv": ["make"], "driver": "claude"}, "argv", "for the drivers command and acp"),
    ({"promptOnStdin": True}, "promptOnStdin", "with argv"),
    ({"permissions": "yes"}, "permissions", "allow, deny, ask"),
    ({"permissionMode": "yolo"}, "permissionMode", "one of"),
    ({"permissionMode": ["plan"]}, "permissionMode", "one of"),
]


@pytest.mark.parametrize(("said", "key", "problem"), MISTAKES, ids=[str(said)[:50] for said, *_ in MISTAKES])
def test_a_mistake_is_told_by_its_key(said: dict[str, Any], key: str, problem: str) -> None:
    with pytest.raises(BadValue) as caught:
        own(**said)
    assert caught.value.keys[0] == key
    assert problem in caught.value.message


# -- definitions of Claude Code and Codex --------------------------------------------------------------------


def test_a_sub_agent_of_claude_code_is_run_by_claude() -> None:
    spec = claude(
        name="reviewer", description="Reviews.", tools="Read, Bash(git log, git diff), Grep", model="inherit",
        maxTurns=4, effort="xhigh", color="red", skills=["x"], memory="user", something_new=1,
    )  # fmt: skip
    assert (spec.name, spec.driver, spec.model, spec.effort) == ("reviewer", "claude", None, "high")
    assert spec.tools == ["Read", "Bash(git log, git diff)", "Grep"]
    assert spec.ignored == ["color", "memory", "skills", "something_new"]
    assert claude(tools="*").tools is None


@pytest.mark.parametrize(
    ("mode", "edit", "command", "read_only"),
    [
        ("default", "ask", "ask", False),
        ("auto", "ask", "ask", False),
        ("plan", "ask", "ask", True),
        ("acceptEdits", "allow", "ask", False),
        ("bypassPermissions", "allow", "allow", False),
        ("dontAsk", "deny", "deny", False),
    ],
)
def test_a_permission_mode_means_the_same_here(mode: str, edit: str, command: str, read_only: bool) -> None:
    spec = claude(permissionMode=mode)
    assert answer_by(spec.permissions, "Edit", {"file_path": "/x"}) == edit
    assert answer_by(spec.permissions, "Bash", {"command": "make"}) == command
    assert spec.read_only is read_only


def test_a_tool_that_is_not_allowed_stays_so_in_every_mode() -> None:
    spec = claude(disallowedTools="Write, Bash(rm:*)", permissionMode="bypassPermissions")
    assert answer_by(spec.rules, "Write", {"file_path": "/x"}) == "deny"
    assert answer_by(spec.rules, "Bash", {"command": "rm -rf x"}) == "deny"
    assert answer_by(spec.rules, "Bash", {"command": "ls"}) == "allow"


def test_an_agent_of_codex_is_run_by_codex() -> None:
    spec = codex(
        name="code_explorer", description="Traces.", developer_instructions="Trace.\n", model="gpt-6-sol",
        model_reasoning_effort="minimal", sandbox_mode="read-only", nickname_candidates=["Ada"],
    )  # fmt: skip
    assert (spec.name, spec.driver, spec.model, spec.effort) == ("code_explorer", "codex", "gpt-6-sol", "low")
    assert (spec.instructions, spec.read_only, spec.ignored) == ("Trace.", True, ["nickname_candidates"])


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ({}, "ask"),
        ({"sandbox_mode": "workspace-write"}, "ask"),
        ({"approval_policy": "never"}, "deny"),
        ({"sandbox_mode": "danger-full-access"}, "allow"),
        ({"sandbox_mode": "read-only", "approval_policy": "never"}, "deny"),
    ],
)
def test_a_sandbox_of_codex_means_the_same_here(said: dict[str, Any], answer: str) -> None:
    assert answer_by(codex(**said).permissions, "shell", {"command": "make"}) == answer


@pytest.mark.parametrize(
    "said", [{"sandbox_mode": "none"}, {"sandbox_mode": ["read-only"]}, {"developer_instructions": 1}, {"model": "-c"}]
)  # fmt: skip
def test_what_codex_could_not_mean_is_no_definition(said: dict[str, Any]) -> None:
    with pytest.raises(BadValue):
        codex(**said)


WORDS = st.sampled_from(
    ["name", "description", "driver", "model", "effort", "tools", "readOnly", "maxTurns", "permissions", "argv",
     "isolation", "permissionMode", "disallowedTools", "sandbox_mode", "approval_policy", "developer_instructions", "x"]
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["plan", "allow", "command"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(WORDS, VALUES, max_size=6))
def test_anything_that_can_be_written_is_a_definition_or_told_to_be_none(value: dict[str, Any]) -> None:
    for read in (own_spec, claude_spec, codex_spec):
        try:
            spec = read(value, "a", "", "/a")
        except BadValue as error:
            assert error.keys[0] in value  # noqa: PT017 - reading it is as good
        else:
            assert (spec.tools or ["x"])[0].strip()
            assert not (spec.model or "x").startswith("-")


# -- what needs trust ----------------------------------------------------------------------------------------

EXPLORE = own(readOnly=True, tools="Read, Grep", maxTurns=5, isolation="worktree", disallowedTools="Bash")


@pytest.mark.parametrize(
    ("spec", "power"),
    [
        (own(permissions="allow"), "permissions allow *"),
        (own(permissions=[{"tool": "Bash", "pattern": "git *", "answer": "allow"}]), "permissions allow Bash git *"),
        (claude(permissionMode="acceptEdits"), "permissions allow Edit"),
        (claude(permissionMode="bypassPermissions"), "permissions allow *"),
        (codex(sandbox_mode="danger-full-access"), "permissions allow *"),
        (own(argv=["make", "x"]), "argv runs make x"),
        (claude(mcpServers=["x"]), "mcpServers names programs"),
        (claude(hooks={}), "hooks names programs"),
        (own(hooks={}), "hooks names programs"),
        (codex(mcp_servers={}), "mcp_servers names programs"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_power_needs_trust(spec: AgentSpec, power: str) -> None:
    assert power in powers(spec, None)


@pytest.mark.parametrize(
    "said",
    [{}, {"readOnly": True}, {"tools": "Read"}, {"maxTurns": 3}, {"permissions": "deny"}, {"permissions": "ask"},
     {"model": "opus"}, {"disallowedTools": "Bash"}, {"permissionMode": "plan"}, {"isolation": "worktree"}],
    ids=str,
)  # fmt: skip
def test_a_restriction_needs_none(said: dict[str, Any]) -> None:
    assert powers(own(**said), None) == []


def test_a_definition_that_hides_another_is_as_strict_or_needs_trust() -> None:
    strict = {"readOnly": True, "tools": "Read", "maxTurns": 5, "isolation": "worktree", "disallowedTools": "Bash"}
    assert powers(own(**strict), EXPLORE) == []
    assert powers(own(**{**strict, "disallowedTools": "Write, Bash"}), EXPLORE) == []
    assert powers(own(**{**strict, "disallowedTools": "Write", "permissions": "deny"}), EXPLORE) == []
    for key, looser, word in (
        ("readOnly", False, "readOnly"),
        ("tools", "Read, Edit", "tools"),
        ("tools", "*", "tools"),
        ("maxTurns", 6, "maxTurns"),
        ("isolation", "none", "isolation"),
        ("disallowedTools", "Write", "denies less"),
    ):
        (power,) = powers(own(**{**strict, key: looser}), EXPLORE)
        assert word in power
        assert powers(own(**{**strict, key: looser}), None) == []
    asked_first = [{"tool": "Bash", "answer": "ask"}, {"tool": "Bash", "answer": "deny"}]
    weaker = {key: value for key, value in strict.items() if key != "disallowedTools"}
    assert len(powers(own(**weaker, permissions=asked_first), EXPLORE)) == 1
    assert len(powers(own(), EXPLORE)) == 5
