"""At stake: only what reads in the agent's own folder is done unasked, by no link and beside no rule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.domain.agent.permissions import Rules, parse_policy
from agentctl.drivers.claude.calls import lasting, read_by
from agentctl.drivers.dialogue import Ask
from agentctl.drivers.order import Order
from agentctl.worker_programs.agent_host.host_questions import decided_by

LEFT = "leave"


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the agent's folder, with links that lead out of it, and be in it."""
    folder = tmp_path / "work"
    folder.mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "kept").mkdir()
    (folder / "a" / "b").mkdir(parents=True)
    links = {"out": "../secret", "key": "../secret/key", "loop": "loop", "own": ".", "deep": "a/b"}
    for name, target in {**links, "k\u00e9y": "../secret/key"}.items():
        (folder / name).symlink_to(target)
    monkeypatch.chdir(folder)
    return folder


def asked(tool: str = "Read", *reads: str, folder: str = ".", **arguments: Any) -> Ask:
    """Return the question about a call that reads these paths."""
    return Ask(
        "k", "?", tool=tool, arguments={"path": reads[0], **arguments} if reads else arguments,
        leave=LEFT, harmless=LEFT, reads=reads, places=(folder,),
    )  # fmt: skip


def answer(ask: Ask, rules: Any, above: list[Rules] | None = None) -> str | None:
    """Return what the rules decide; None where a person has to."""
    given_rules = parse_policy(rules) if isinstance(rules, str) else rules
    order = Order("claude", "claude", "general", "do it", permissions=given_rules, denied_above=above or [])
    decided = decided_by(order, ask)
    return None if decided is None else decided.answer


INSIDE = {"a.py", "own/a.py", "new/folder/file", "{work}/a.py", "."}
OUTSIDE = {
    "out/key",
    "key",
    "loop",
    "../secret/key",
    "{work}/../secret",
    "~/x",
    "~",
    " ~/x",
    " /etc/passwd",
    "\n/etc/passwd",
    "\ufeff/etc/passwd\ufeff",
    "\u00a0../secret/key ",
    "key ",
    "ke\u0301y",
    "deep/../key",
    "/etc/passwd",
    "own/../out/new",
    "no\0",
}


@pytest.mark.parametrize("path", sorted(INSIDE | OUTSIDE))
@pytest.mark.parametrize(("policy", "outside"), [("ask", None), ("deny", "deny"), ("allow", "allow")])
def test_reading_is_free_in_the_folder_alone(work: Path, path: str, policy: str, outside: str | None) -> None:
    """By each tool that reads, as Claude Code takes its paths: it trims them, and puts the home for `~`."""
    told = path.format(work=work)
    calls = [
        ("Read", {"file_path": told}),
        ("Grep", {"pattern": ".", "path": told}),
        ("Glob", {"pattern": "*", "path": told}),
    ]
    for tool, arguments in calls:
        reads = read_by(tool, arguments, str(work))
        assert reads is not None
        found = answer(asked(tool, *reads, **arguments), policy)
        assert found == (LEFT if path in INSIDE else outside), tool


def test_it_is_free_as_well_where_the_program_keeps_what_it_has_printed(work: Path) -> None:
    kept = str(work.parent / "kept")
    assert answer(asked("Read", f"{kept}/long.txt", folder=kept), "deny") == LEFT
    assert answer(asked("Read", f"{kept}/../secret/key", folder=kept), "deny") == "deny"


@pytest.mark.parametrize(
    ("pattern", "policy"),
    [
        ("/etc/*", "deny"), ("~/*.key", "deny"), (" /etc/*", "deny"), ("/*", "deny"), ("{work}*", "deny"),
        ("{work}", "deny"), ("../*", "deny"), ("*/../../*", "deny"), ("**/*.py", LEFT), ("{work}/**", LEFT),
    ],
)  # fmt: skip
def test_a_pattern_is_looked_for_from_the_folder_that_it_names(work: Path, pattern: str, policy: str) -> None:
    arguments = {"pattern": pattern.format(work=work)}
    ask = Ask("k", "?", tool="Glob", arguments=arguments, harmless=LEFT, reads=read_by("Glob", arguments, str(work)))
    assert answer(ask, "deny") == policy


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Grep", {"pattern": ".", "file_path": "/etc"}), ("Read", {"path": "/etc/passwd"}), ("Read", {"file_path": 7}),
        ("Glob", {"pattern": "*", "path": ["/etc"]}), ("Grep", {"pattern": ".", "machine": "other"}),
    ],
)  # fmt: skip
def test_arguments_that_are_not_known_may_name_anything(tool: str, arguments: dict[str, Any]) -> None:
    """The program takes some for others (`file_path` for `path`), and some name another machine."""
    assert read_by(tool, arguments, "/w") is None


@pytest.mark.usefixtures("work")
def test_one_path_outside_is_enough() -> None:
    assert answer(asked("Glob", "a.py", "../secret"), "deny") == "deny"


@pytest.mark.usefixtures("work")
def test_what_may_do_anything_is_not_free() -> None:
    assert answer(asked("Bash", command="ls")._replace(reads=None), "ask") is None
    assert answer(asked("Read", "a.py")._replace(harmless=""), "deny") == "deny", "the program has no answer for that"


@pytest.mark.usefixtures("work")
@pytest.mark.parametrize("decided", ["deny", "ask"])
def test_a_rule_that_names_it_comes_first(decided: str) -> None:
    for rule in ({"tool": "Read", "pattern": "*"}, {"tool": "*", "pattern": "*.env"}):
        rules = [{**rule, "answer": decided}, *parse_policy("allow")]
        assert answer(asked("Read", "own/.env"), rules) == (None if decided == "ask" else "deny")
        above = answer(asked("Read", ".env"), "allow", [[{**rule, "answer": decided}]])
        assert above == ("deny" if decided == "deny" else LEFT)
    assert answer(asked("Read", ".env"), "allow", [parse_policy("deny")]) == LEFT
    assert answer(asked("Read", "../secret/.env"), "allow", [parse_policy("deny")]) == "deny"


@pytest.mark.usefixtures("work")
def test_own_settings_decide_what_no_rule_of_ours_does() -> None:
    rules = [*parse_policy([{"tool": "Bash", "pattern": "rm *", "answer": "deny"}]), *parse_policy("own")]
    assert answer(asked("Bash", command="ls")._replace(reads=None), rules) == LEFT
    assert answer(asked("Bash", command="rm x")._replace(reads=None), rules) == "deny"
    assert answer(asked("Bash", command="ls")._replace(reads=None), rules, [parse_policy("deny")]) == "deny"
    assert answer(asked("Bash", command="ls")._replace(reads=None, leave=""), rules) is None, "then a person is asked"


# -- allowed for good ----------------------------------------------------------------------------------------------

CALLS = [
    ("Bash", {"command": "make test", "description": "d"}, {"command": "make test"}, {"command": "make test2"}),
    ("Bash", {"command": "ls *"}, {"command": "ls *"}, {"command": "ls x"}),
    (
        "Write",
        {"file_path": "a[1].py", "content": "x"},
        {"file_path": "a[1].py", "content": "y"},
        {"file_path": "a1.py"},
    ),
    ("WebFetch", {"url": "https://a.org/x"}, {"url": "https://a.org/y"}, {"url": "https://a.org.evil.net/x"}),
    ("mcp__w__write", {"x": 1}, {"x": 2}, None),
    ("Skill", {"skill": "w"}, {"skill": "w"}, {"skill": "w", "args": "more"}),
]


@pytest.mark.usefixtures("work")
@pytest.mark.parametrize(("tool", "call", "same", "other"), CALLS)
def test_what_is_allowed_for_good_is_exactly_that(
    tool: str, call: dict[str, Any], same: dict[str, Any], other: dict[str, Any] | None
) -> None:
    rules = lasting(tool, call)

    def decided(arguments: dict[str, Any], order: Order, name: str = tool) -> str | None:
        found = decided_by(order, Ask("k", "?", tool=name, arguments=arguments), rules)
        return None if found is None else found.answer

    order = Order("claude", "claude", "general", "do it")
    assert decided(same, order) == "allow"
    assert other is None or decided(other, order) is None
    assert decided(same, order, "other") is None
    assert decided(same, order._replace(permissions=parse_policy("deny"))) == "deny"
    assert decided(same, order._replace(denied_above=[parse_policy("deny")])) == "deny"


@pytest.mark.usefixtures("work")
def test_a_file_that_became_a_link_is_asked_about_again() -> None:
    rules = lasting("Write", {"file_path": "key", "content": "x"})
    order = Order("claude", "claude", "general", "do it")
    assert decided_by(order, Ask("k", "?", tool="Write", arguments={"file_path": "key"}), rules) is None


@given(st.text(), st.text())
def test_no_other_command_is_meant(first: str, second: str) -> None:
    rules = lasting("Bash", {"command": first})
    order = Order("claude", "claude", "general", "do it")
    found = decided_by(order, Ask("k", "?", tool="Bash", arguments={"command": second}), rules)
    assert found is None or first.strip() == second.strip()


@given(
    st.sampled_from(["Read", "Grep", "Glob"]),
    st.dictionaries(st.sampled_from(["file_path", "path", "pattern"]), st.text()),
)
def test_any_arguments_of_a_tool_that_reads_name_paths_or_nothing(tool: str, arguments: dict[str, Any]) -> None:
    found = read_by(tool, arguments, "/w")
    assert found is None or all(path.startswith(("/", "~")) for path in found)
