"""At stake: nobody allows an edit or a command that they do not see, however its program tells it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from agentctl.domain.activity.row import RowType
from agentctl.domain.question import EVERYTHING, offered, question_within
from agentctl.drivers.dialogue import Ask, Note, Withdraw
from agentctl.drivers.order import Order
from agentctl.worker_programs.agent_host.host_questions import decided_by, question_for
from tests.unit.test_acp_driver import Talk, order

#: The update that begins a call, and the request about it.
Told = tuple[dict[str, Any], dict[str, Any]]
FILE, MOVED = "/project/a.txt", "/project/b.txt"
CLAUDE = {"_meta": {"claudeCode": {"toolName": "Write"}}, "kind": "edit"}


def diff(path: str, old: str | None, new: str) -> dict[str, Any]:
    return {"type": "diff", "path": path, "oldText": old, "newText": new}


def rules(**answers: str) -> list[dict[str, str]]:
    return [{"tool": tool, "pattern": "*", "answer": answer} for tool, answer in answers.items()]


def asked(update: Mapping[str, Any], request: Mapping[str, Any], given: Order | None = None) -> Ask:
    """Return the question that follows from the update which begins a call, and the request about it."""
    talk = Talk(given).opened()
    if update:
        talk.update("tool_call", toolCallId="c", status="pending", **{"title": "x", **update})
    talk.asks(**request)
    ask: Ask = talk.of(Ask)[-1]
    return ask


def may_be_allowed(ask: Ask) -> bool:
    """Whether a person may allow it, and a rule for its tool; both or none."""
    question = question_for(ask, None)
    by_person = "allow" in [one.id for one in offered(question, question_within(question, EVERYTHING))]
    decided = decided_by(order(permissions=rules(**{str(ask.tool): "allow"})), ask)
    assert (decided is not None) == by_person
    return by_person


#: As claude-agent-acp tells a Write and an Edit: to all clients, and to one that understands its extension.
TOLD: dict[str, Told] = {
    "write": ({}, {**CLAUDE, "rawInput": {"file_path": FILE, "content": "hi\n"}, "content": [diff(FILE, None, "hi\n")],
                   "locations": [{"path": FILE}]}),
    "write, extended": (
        {**CLAUDE, "rawInput": {"file_path": FILE}, "content": [diff(FILE, None, "hi\n")]},
        {"rawInput": {"file_path": FILE}, "title": "Write a.txt", "locations": [{"path": FILE}, {"path": "/other"}]},
    ),
    "edit": ({}, {**CLAUDE, "rawInput": {"file_path": FILE, "old_string": "hi", "new_string": "hi\n"},
                  "content": [diff(FILE, "hi", "hi\n")]}),
    "edit, extended": (
        {**CLAUDE, "rawInput": {"file_path": FILE, "replace_all": False}, "content": [diff(FILE, "hi", "hi\n")]},
        {"rawInput": {"file_path": FILE, "replace_all": False}, "title": "Edit a.txt"},
    ),
    # As codex-acp tells a patch: the request has nothing but the paths.
    "patch": ({"kind": "edit", "content": [diff(FILE, None, "hi\n")]},
              {"title": "Edit files", "kind": "edit", "status": "pending", "locations": [{"path": FILE}]}),
    "patch, extended": ({"kind": "edit", "content": [diff(FILE, None, "hi\n")]}, {"locations": [{"path": FILE}]}),
}  # fmt: skip


@pytest.mark.parametrize("how", TOLD)
def test_the_text_of_an_edit_is_among_what_is_asked(how: str) -> None:
    ask = asked(*TOLD[how])
    assert "hi\\n" in repr(ask.arguments)
    assert FILE in repr(ask.arguments)
    assert may_be_allowed(ask)


#: The same where the text is nowhere: Codex's adapter leaves a large diff out, and one that it cannot read.
UNTOLD: dict[str, Told] = {
    "write": ({**CLAUDE, "rawInput": {}, "content": []}, {"rawInput": {"file_path": FILE}}),
    "no update": ({}, {**CLAUDE, "rawInput": {"file_path": FILE}, "locations": [{"path": FILE}]}),
    "patch": ({"kind": "edit", "content": []}, {"locations": [{"path": FILE}]}),
    "a part of a patch": ({"kind": "edit", "content": [diff(FILE, None, "hi\n")]},
                          {"locations": [{"path": FILE}, {"path": MOVED}]}),
    "only words": ({"kind": "edit"}, {"content": [{"type": "content", "content": {"type": "text", "text": "trust me"}}],
                                      "locations": [{"path": FILE}]}),
    "a deletion of something": ({"kind": "delete"}, {}),
}  # fmt: skip


@pytest.mark.parametrize("how", UNTOLD)
def test_an_edit_without_its_text_can_only_be_denied(how: str) -> None:
    ask = asked(*UNTOLD[how])
    assert ask.is_cut
    assert not may_be_allowed(ask)
    assert decided_by(order(permissions=rules(Bash="deny", **{"*": "allow"})), ask) is None
    allowed = decided_by(order(permissions=rules(**{"*": "allow"})), ask)
    assert allowed is not None, "who allows everything looks at nothing"
    assert allowed.answer == "allow"
    denied = decided_by(order(permissions=rules(**{str(ask.tool): "deny"})), ask)
    assert denied is not None
    assert denied.answer == "deny"


def test_what_allows_for_good_allows_no_edit_that_is_not_seen() -> None:
    assert decided_by(order(), asked(*UNTOLD["patch"]), rules(Edit="allow")) is None


@pytest.mark.parametrize("extended", [True, False])
def test_a_file_that_is_moved_is_known_by_both_its_paths(*, extended: bool) -> None:
    request = {} if extended else {"kind": "edit", "status": "pending", "title": "Edit files"}
    change = {"kind": "edit", "content": [diff(MOVED, "a", "b")]}
    ask = asked(change, {**request, "locations": [{"path": FILE}]})
    assert ask.arguments is not None
    assert set(ask.arguments["paths"]) == {FILE, MOVED}
    assert may_be_allowed(ask)
    for path in FILE, MOVED:
        guarded = [{"tool": "Edit", "pattern": path, "answer": "deny"}, *rules(Edit="allow")]
        found = decided_by(order(permissions=guarded), ask)
        assert found is not None
        assert found.answer == "deny"
        only = [{"tool": "Edit", "pattern": path, "answer": "allow"}]
        assert decided_by(order(permissions=only), ask) is None


#: What Codex takes for a search or for reading, by its first words.
SEARCH = {"command": "find . -delete", "cwd": "/project"}


@pytest.mark.parametrize("kind", ["search", "read", None])
@pytest.mark.parametrize("extended", [True, False])
def test_what_has_a_command_is_a_shell_whatever_it_is_called(kind: str | None, *, extended: bool) -> None:
    request = {"title": "Search", "rawInput": SEARCH, **({} if extended else {"kind": "execute"})}
    ask = asked({"kind": kind, "title": "Search"} if kind else {}, request)
    assert ask.tool == "Bash"
    for answers in {"Bash": "deny", "*": "allow"}, {"exec_command": "deny", "Grep": "allow", "Read": "allow"}:
        found = decided_by(order(permissions=rules(**answers)), ask)
        assert found is not None
        assert found.answer == "deny"
    assert decided_by(order(permissions=rules(Grep="allow", Read="allow")), ask) is None


def test_who_may_only_read_runs_no_command_that_is_called_a_search() -> None:
    talk = Talk(order(read_only=True)).opened()
    talk.update("tool_call", toolCallId="c", kind="search", title="Search")
    talk.asks(rawInput=SEARCH)
    assert not talk.of(Ask)


def test_a_command_of_a_servers_tool_is_the_servers_own() -> None:
    given = order(mcp_servers={"box": {"command": "x"}})
    ask = asked({}, {"title": "mcp__box__run", "kind": "other", "rawInput": {"command": "ls"}}, given)
    assert (ask.tool, ask.claimed) == ("mcp__box__run", None)


def tells(talk: Talk, status: str, arguments: dict[str, Any]) -> None:
    """Have the program tell more of its call."""
    talk.update("tool_call_update", toolCallId="c", title="w_put", kind="other", status=status, rawInput=arguments)


def late(**more: Any) -> Talk:
    """Return a talk with a program that asks about a tool of a server before it has told the arguments."""
    talk = Talk(order(**more)._replace(acp={**order().acp, "tellsLate": True})).opened()
    talk.update("tool_call", toolCallId="c", title="w_put", kind="other", status="pending", rawInput={}, locations=[])
    talk.asks(title="w_put", kind="other", status="pending", rawInput={}, locations=[])
    return talk


def test_a_call_without_arguments_is_shown_while_somebody_is_asked_about_it() -> None:
    talk = Talk(order()).opened()
    told: dict[str, Any] = {"title": "w_list", "kind": "other", "status": "pending", "rawInput": {}}
    talk.update("tool_call", toolCallId="c", **told)
    assert not [note for note in talk.of(Note) if note.row.type == RowType.TOOL], "its arguments may come"
    talk.asks(**told)
    assert [note.row.name for note in talk.of(Note) if note.row.type == RowType.TOOL] == ["w_list"]


@pytest.mark.parametrize("arguments", [{"path": FILE}, {}])
def test_a_call_that_is_asked_about_before_its_arguments_are_known_is_asked_about_again(
    arguments: dict[str, Any],
) -> None:
    talk = late()
    first = talk.of(Ask)[-1]
    assert not may_be_allowed(first)
    tells(talk, "pending", {})
    assert talk.of(Ask) == [first]
    talk.update(
        "tool_call_update", toolCallId="c", title="w_put", kind="other", status="in_progress", rawInput=arguments
    )
    assert talk.of(Withdraw) == [Withdraw(first.key)]
    _, second = talk.of(Ask)
    assert second.arguments == (arguments or {"title": "w_put"})
    assert may_be_allowed(second)
    talk.do(talk.dialogue.answered(second.key, "allow"))
    assert talk.said[-1] == {
        "jsonrpc": "2.0",
        "id": 7,
        "result": {"outcome": {"outcome": "selected", "optionId": "o-0"}},
    }


@pytest.mark.parametrize("kind", ["write", "edit"])
def test_a_change_that_is_asked_about_before_its_text_is_known_is_asked_about_again(kind: str) -> None:
    told, request = TOLD[f"{kind}, extended"]
    talk = Talk().opened()
    begun: dict[str, Any] = {"content": [], "locations": []}
    talk.update("tool_call", toolCallId="c", status="pending", title="x", **{**told, "rawInput": {}, **begun})
    talk.asks(**request)
    first = talk.of(Ask)[-1]
    assert not may_be_allowed(first)
    for _ in range(2):
        talk.update("tool_call_update", toolCallId="c", **told)
    assert talk.of(Withdraw) == [Withdraw(first.key)]
    (second,) = talk.of(Ask)[1:]
    assert may_be_allowed(second)
    assert "hi" in str(second.arguments)


def test_what_was_denied_by_then_is_not_asked_about_again() -> None:
    talk = late()
    talk.do(talk.dialogue.answered(talk.of(Ask)[-1].key, "deny"))
    talk.update(
        "tool_call_update", toolCallId="c", title="w_put", kind="other", status="in_progress", rawInput={"a": 1}
    )
    assert len(talk.of(Ask)) == 1


@pytest.mark.parametrize(("arguments", "is_told"), [({}, False), ({"command": "ls"}, True)])
def test_a_command_of_which_nothing_is_told_cannot_be_allowed(arguments: dict[str, Any], is_told: bool) -> None:
    assert may_be_allowed(asked({}, {"kind": "execute", "title": "Approve", "rawInput": arguments})) is is_told
