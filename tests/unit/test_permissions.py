"""At stake: nothing runs that no rule allows, however a command or a path is disguised."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.domain.agent.permissions import ANSWERS, SHELLS, BadValue, Rules, answer_by, parse_policy
from agentctl.worker_programs.plain_model.toolbox.toolset import COMMON


def rule(tool: str = "*", pattern: str = "*", answer: str = "allow") -> dict[str, str]:
    return {"tool": tool, "pattern": pattern, "answer": answer}


GIT = [rule("Bash", "git *")]
SOURCES = [rule("Read", "/code/src/*")]


def answer_to(rules: Rules, tool: str, **arguments: Any) -> str:
    return answer_by(rules, tool, arguments)


# -- what a policy may be ------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ANSWERS)
def test_a_word_is_a_policy_of_one_rule(word: str) -> None:
    assert parse_policy(word) == [rule(answer=word)]
    assert answer_to(parse_policy(word), "Bash", command="rm -rf /; reboot") == word
    assert answer_by(parse_policy(word), "anything", None) == word


def test_no_policy_asks_for_everything() -> None:
    assert parse_policy(None) == parse_policy([]) == []
    assert answer_by([], "Read", {"file_path": "/etc/passwd"}) == "ask"


MISTAKES: list[tuple[Any, tuple[str, ...], str]] = [
    ("yes", ("permissions",), "must be allow, deny, ask, own or a list of rules"),
    (True, ("permissions",), "must be allow, deny, ask, own or a list of rules"),
    ({"tool": "x"}, ("permissions",), "a list of rules"),
    (["allow"], ("permissions", "0"), "rule 1 of permissions must be a mapping"),
    ([rule(), {"tool": "Bash"}], ("permissions", "1", "answer"), "rule 2 of permissions: answer"),
    ([rule(answer="maybe")], ("permissions", "0", "answer"), "allow, deny or ask, not 'maybe'"),
    ([rule(answer="Allow")], ("permissions", "0", "answer"), "allow, deny or ask"),
    ([{**rule(), "match": "x"}], ("permissions", "0", "match"), "unknown key 'match'"),
    ([rule(tool="")], ("permissions", "0", "tool"), "tool must be text"),
    ([{**rule(), "pattern": ["a"]}], ("permissions", "0", "pattern"), "pattern must be text"),
]


@pytest.mark.parametrize(("value", "keys", "problem"), MISTAKES, ids=[problem for *_, problem in MISTAKES])
def test_a_mistake_is_told_by_its_place(value: Any, keys: tuple[str, ...], problem: str) -> None:
    with pytest.raises(BadValue) as caught:
        parse_policy(value)
    assert caught.value.keys == keys
    assert problem in caught.value.message


# -- which rule matches --------------------------------------------------------------------------------------


def test_the_first_rule_that_matches_decides() -> None:
    rules = [rule("Bash", "git push*", "deny"), rule("Bash", "git *"), rule("Bash", answer="deny")]
    assert answer_to(rules, "Bash", command="git push origin") == "deny"
    assert answer_to(rules, "Bash", command="git status") == "allow"
    assert answer_to(rules, "Bash", command="make") == "deny"
    assert answer_to(rules, "Read", file_path="x") == "ask"


@pytest.mark.parametrize("tool", [*sorted(SHELLS), "Bash", "BASH", "commandExecution"])
def test_a_rule_for_one_programs_shell_is_a_rule_for_all(tool: str) -> None:
    assert answer_to(GIT, tool, command="git status") == "allow"
    assert answer_to([rule(tool, "git *", "deny")], "Bash", command="git status") == "deny"


@pytest.mark.parametrize(("own", "common"), COMMON.items())
def test_a_rule_by_our_own_name_of_a_tool_is_one_by_its_common_name(own: str, common: str) -> None:
    assert answer_to([rule(own, "x/*", "deny"), rule("*")], common, path="x/y") == "deny"
    assert answer_to([rule(common, "x/*", "deny"), rule("*")], own, path="x/y") == "deny"


def test_names_of_tools_match_in_any_case_and_by_pattern() -> None:
    assert answer_to([rule("mcp__GitHub__*")], "mcp__github__list_issues", repo="x") == "allow"
    assert answer_to([rule("mcp__github__list_*")], "mcp__github__delete_repo", repo="x") == "ask"
    assert answer_to([rule("[!b]*")], "Bash", command="ls") == "ask", "another name of it must not match"


@pytest.mark.parametrize(
    "command",
    [
        "git status; rm -rf /", "git status & rm x", "git log && rm x", "git log || rm x", "git log | sh",
        "git log > /etc/x", "git log < x", "git log `id`", "git log $(id)", "git log $IFS", "git log\nrm x",
        "git log\r\nrm x", "git (x)", "git log \x00", "git log \u2028rm", "rm -rf / # git ", "bash -c 'git log; rm x'",
        "bash -c 'git log' 'x'",
        "bash -c 'git log';rm", './bash -c "git log"', "/code/bash -c 'git log'", "git log <(id)", "gitx", "GIT status",
        ["git", "log;rm"], ["bash", "-c", "git log; rm x"], ["rm", "-rf", "git *"], {"a": "git log"}, 5, None, "",
    ],
)  # fmt: skip
def test_an_allowed_command_brings_no_other_along(command: Any) -> None:
    assert answer_by(GIT, "Bash", {"command": command}) == "ask"


@pytest.mark.parametrize(
    "command",
    ["git status", "  git status ", "bash -lc 'git status'", '/bin/bash -c "git log --oneline"',
     "/usr/bin/zsh -lc 'git x'", ["git", "status"], ["bash", "-lc", "git status"], "git log --grep=a*b"],
)  # fmt: skip
def test_a_plain_command_is_known_in_any_form(command: Any) -> None:
    assert answer_by(GIT, "commandExecution", {"command": command, "cwd": "/work"}) == "allow"


@given(st.text(), st.sampled_from(";&|<>`$()\n\r\x00\x1b"), st.text())
def test_no_control_operator_passes_an_allow_rule(before: str, operator: str, after: str) -> None:
    command = f"git {before}{operator}{after}x"
    assert answer_by(GIT, "Bash", {"command": command}) == "ask"
    assert answer_by([rule("Bash", "*git*")], "Bash", {"command": command}) == "ask"


@given(st.sampled_from([";", "&&", "||", "|", "&", "\n", "$(", "`", "(", "bash -c '"]), st.booleans())
def test_a_denied_command_is_found_within_others(operator: str, spaced: bool) -> None:
    space = " " if spaced else ""
    denied = [rule("Bash", "rm *", "deny"), *parse_policy("allow")]
    assert answer_by(denied, "Bash", {"command": f"ls {operator}{space}rm -rf /"}) == "deny"


@pytest.mark.parametrize(
    "path",
    ["/code/src/../../etc/passwd", "/code/src/..", "src/x", "/code/srcx", "/CODE/src/x", ["/code/src/a", "/etc/x"]],
)
def test_an_allowed_folder_is_not_left(path: Any) -> None:
    assert answer_by(SOURCES, "Read", {"file_path": path}) == "ask"


def test_an_allowed_folder_is_what_it_says() -> None:
    assert answer_to(SOURCES, "Read", file_path="/code/src/a/b.py") == "allow"
    assert answer_to(SOURCES, "Read", paths=["/code/src/a", "/code/src/b"]) == "allow"
    assert answer_to(SOURCES, "Read", changes=[{"path": "/code/src/a"}, {"path": "/etc/x"}]) == "ask"
    assert answer_to(SOURCES, "Read", file_path="/code/src/a", command="id") == "ask", "all of it must be meant"


def test_a_denied_folder_is_found_behind_detours() -> None:
    denied = [rule("*", "/etc/*", "deny"), *parse_policy("allow")]
    assert answer_to(denied, "Read", file_path="/code/../etc/passwd") == "deny"
    assert answer_to(denied, "Edit", changes=[{"path": "/code/a"}, {"path": "/etc/x"}]) == "deny"
    assert answer_to(denied, "Read", file_path="/code/etc/x") == "allow"


@pytest.mark.parametrize(
    ("url", "answer"),
    [
        ("https://docs.example.org/a", "allow"),
        ("https://evil.net/x.example.org/a", "ask"),
        ("https://evil.net?.example.org/a", "ask"),
        ("https://evil.net#.example.org/a", "ask"),
        ("https://evil.net\\.example.org/a", "ask"),
        ("http://docs.example.org/a", "ask"),
    ],
)
def test_an_allowed_host_is_compared_with_the_host(url: str, answer: str) -> None:
    assert answer_to([rule("WebFetch", "https://*.example.org/*")], "WebFetch", url=url, prompt="x") == answer


def test_what_has_no_telling_argument_is_matched_as_json() -> None:
    rules = [rule("mcp__db__query", '{"table":"logs"*}')]
    assert answer_to(rules, "mcp__db__query", table="logs", limit=3) == "ask", "its keys are sorted: limit comes first"
    assert answer_to([rule("mcp__db__query", '*"table":"logs"*')], "mcp__db__query", table="logs", limit=3) == "allow"
    assert answer_to([rule("*", '*"force":true*', "deny"), rule()], "x", path="a", force=True) == "deny"
    assert answer_to([rule("Read", '{"path":"/a*')], "Read", path="/a") == "allow"


# -- anything at all -----------------------------------------------------------------------------------------

KEYS = st.sampled_from(["command", "path", "url", "x"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner),
    max_leaves=8,
)
ARGUMENTS = st.dictionaries(st.sampled_from(["command", "file_path", "url", "query", "changes", "y"]), VALUES)
RULES = st.lists(
    st.builds(rule, st.sampled_from(["*", "Bash", "shell", "Re*"]), st.text(min_size=1), st.sampled_from(ANSWERS))
)


@given(VALUES)
def test_any_value_is_a_policy_or_told_to_be_none(value: Any) -> None:
    try:
        rules = parse_policy(value)
    except BadValue as error:
        assert error.keys[0] == "permissions"  # noqa: PT017 - reading it is as good
    else:
        assert all(set(each) == {"tool", "pattern", "answer"} for each in rules)


@given(RULES, st.sampled_from(["Bash", "Read", "x"]), ARGUMENTS)
def test_any_arguments_get_an_answer_and_a_denial_in_front_never_loosens(
    rules: Rules, tool: str, arguments: dict[str, Any]
) -> None:
    openness = ("deny", "ask", "allow")
    answer = answer_by(rules, tool, arguments)
    assert answer in openness
    stricter = answer_by([rule(tool, "*a*", "deny"), *rules], tool, arguments)
    assert openness.index(stricter) <= openness.index(answer)


def test_arguments_nested_by_an_enemy_are_read() -> None:
    deep: dict[str, Any] = {"path": "/etc/x"}
    for _ in range(300):
        deep = {"x": [deep]}
    assert answer_by([rule("*", "/etc/*", "deny")], "x", deep) == "deny"
    for _ in range(50_000):
        deep = {"x": [deep]}
    assert answer_by([rule("*", "/etc/*", "deny"), rule()], "x", deep) != "allow"


# -- shells and searches by any name ---------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["Monitor", "PowerShell", "a_new_tool", "Bash"])
@pytest.mark.parametrize("answer", ["deny", "ask"])
def test_whatever_runs_a_command_is_a_shell_to_rules_that_forbid(tool: str, answer: str) -> None:
    for pattern in ("git push*", "*"):
        rules = [*parse_policy([{"tool": "Bash", "pattern": pattern, "answer": answer}]), *parse_policy("allow")]
        assert answer_by(rules, tool, {"command": "git push origin main"}) == answer
        assert answer_by(rules, tool, {"text": "git push"}) == (answer if (tool, pattern) == ("Bash", "*") else "allow")


def test_a_rule_for_the_shell_allows_no_other_tool_and_forbids_no_tool_of_a_server() -> None:
    allowing = parse_policy([{"tool": "Bash", "pattern": "git status", "answer": "allow"}])
    assert answer_by(allowing, "Monitor", {"command": "git status"}) == "ask"
    denying = [*parse_policy([{"tool": "Bash", "answer": "deny"}]), *parse_policy("allow")]
    assert answer_by(denying, "mcp__editor__edit", {"command": "view"}) == "allow"


def test_the_path_in_a_pattern_of_files_is_one_that_the_call_touches() -> None:
    rules = parse_policy([{"tool": "Glob", "pattern": "src*", "answer": "allow"}])
    assert answer_by(rules, "Glob", {"pattern": "**/*.py", "path": "src"}) == "allow"
    assert answer_by(rules, "Glob", {"pattern": "src/**"}) == "allow"
    for pattern in ("/etc/**", "~/**", "../**", "*/../../**", " /etc/*", "/etc/passwd"):
        assert answer_by(rules, "Glob", {"pattern": pattern, "path": "src"}) == "ask", pattern
    denying = [*parse_policy([{"tool": "Glob", "pattern": "/etc*", "answer": "deny"}]), *parse_policy("allow")]
    assert answer_by(denying, "Glob", {"pattern": "/etc/**", "path": "src"}) == "deny"
