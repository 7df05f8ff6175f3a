"""At stake: the output of the real `codex exec` is understood, and it only gets orders that it can carry out."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentctl.domain.activity.row import Phase, Row, RowType, encode_row
from agentctl.domain.states import Reason
from agentctl.drivers.codex import DRIVER
from agentctl.drivers.codex.execdialogue import ExecDialogue
from agentctl.drivers.codex.toml import toml
from agentctl.drivers.dialogue import (
    Action,
    AgentOutcome,
    Fallback,
    HangUp,
    Note,
    Progress,
    Retrying,
    Say,
    SessionIs,
    StopProgram,
)
from agentctl.drivers.order import Order
from agentctl.errors import Refused

RECORDINGS = Path(__file__).parent.parent / "recordings" / "codex"
NAMES = sorted(path.stem for path in RECORDINGS.glob("*.jsonl") if not path.stem.startswith("app-server-"))
ALLOW, DENY = ([{"tool": "*", "pattern": "*", "answer": answer}] for answer in ("allow", "deny"))
NO_LS = {"tool": "shell", "pattern": "ls *", "answer": "deny"}
Event = dict[str, Any]


def order(**more: Any) -> Order:
    return Order(driver="codex", program="codex", agent="general", prompt="do it", cwd="/project", **more)


def way() -> Fallback:
    assert DRIVER.fallback is not None
    return DRIVER.fallback


def ready(given_order: Order, servers: str = "[]") -> Order:
    return way().ready(given_order, lambda _: servers.encode())


def flags(given_order: Order) -> tuple[list[str], dict[str, Any]]:
    """Return the words of the command line without its settings, and the settings as Codex reads them."""
    words, config = [], {}
    argv = iter(way().driver.argv(given_order))
    for word in argv:
        if word == "-c":
            key, _, value = next(argv).partition("=")
            config[key] = tomllib.loads(f"x={value}")["x"]
        else:
            words.append(word)
    return words, config


class Run:
    """A run whose actions are recorded."""

    def __init__(self, **more: Any) -> None:
        self.dialogue = ExecDialogue(order(**more))
        self.actions: list[Action] = [*self.dialogue.begin()]

    def hear(self, *events: Any) -> Run:
        for event in events:
            self.actions += self.dialogue.received(json.dumps(event).encode())
        return self

    def of(self, kind: type[Any]) -> list[Any]:
        return [action for action in self.actions if isinstance(action, kind)]

    def rows(self, kind: RowType | None = None) -> list[Row]:
        return [note.row for note in self.of(Note) if kind in {None, note.row.type}]


def events_of(name: str) -> list[Event]:
    return [json.loads(line) for line in (RECORDINGS / f"{name}.jsonl").read_text().splitlines()]


def played(name: str, **more: Any) -> Run:
    return Run(**more).hear(*events_of(name))


# recording, exit code; reason, tool rounds, a part of the final text or message, tokens
PLAYED: list[tuple[str, int, Reason | None, int, str, Sequence[int]]] = [
    ("text", 0, None, 0, "This is a plain answer.", (10115, 13, 0)),
    ("tool", 0, None, 1, "Done: tool after 1", (20385 - 5135, 20, 5135)),
    ("failing", 0, None, 1, "Done: run after 1", (20413 - 5146, 22, 5146)),
    ("parallel", 0, None, 1, "Done: parallel after 3", (20615 - 5247, 33, 5247)),
    ("ask", 0, None, 0, "Done: ask after 1", (20399 - 5142, 22, 5142)),
    ("subagent", 0, None, 1, "Done: subagent", (31319 - 10512, 40, 10512)),
    ("exec-background", 0, None, 1, "works in the background", (120, 20, 80)),
    ("exec-patch", 0, None, 1, "Done: patch", (120, 20, 80)),
    ("error-429", 1, Reason.RATE_LIMITED, 0, "429 Too Many", ()),
    ("exec-error-401", 1, Reason.AUTH, 0, "401 Unauthorized", ()),
    ("slow-sigint", 1, Reason.EXIT_CODE, 0, "exit code 1", ()),
    ("slow-sigint", 0, Reason.TRUNCATED, 0, "before its turn did", ()),
    ("slow-sigint", -9, Reason.SIGNAL, 0, "signal 9", ()),
]  # fmt: skip


@pytest.mark.parametrize(("name", "code", "reason", "rounds", "told", "tokens"), PLAYED)
def test_a_recorded_run_ends_as_it_did(
    name: str, code: int, reason: Reason | None, rounds: int, told: str, tokens: Sequence[int]
) -> None:
    run = played(name)
    outcome = run.dialogue.ended(code)
    assert (outcome.reason, outcome.turns_used) == (reason, rounds)
    assert told in str(outcome.final_message if reason is None else outcome.message)
    assert outcome.usage == dict(zip(("input", "output", "cached"), tokens, strict=bool(tokens)))
    assert [row.detail for row in run.rows(RowType.USAGE)] == ([outcome.usage] if tokens else [])
    thread = events_of(name)[0]["thread_id"]
    assert outcome.session == thread == run.of(SessionIs)[0].session


def test_the_prompt_is_said_and_the_input_closed() -> None:
    assert Run().actions == [Say(b"do it"), HangUp()]


def test_a_command_has_one_row_for_its_start_and_one_for_its_end() -> None:
    rows = played("failing").rows(RowType.TOOL)
    assert [(row.id, row.phase, row.status, row.name) for row in rows] == [
        ("item_2", Phase.START, "running", "shell"),
        ("item_2", Phase.END, "failed", "shell"),
    ]
    assert rows[-1].detail == {"command": "ls /nonexistent", "exitCode": 2}
    assert "No such file" in str(rows[-1].text)


def test_a_sub_agent_is_a_group_and_one_that_nobody_waits_for_stays_open() -> None:
    waited = [(row.phase, row.status) for row in played("subagent").rows(RowType.AGENT)]
    assert waited == [(Phase.START, "running"), (Phase.END, "completed")]
    left = [(row.phase, row.status) for row in played("exec-background").rows(RowType.AGENT)]
    assert left == [(Phase.START, "running")]


def test_changed_files_are_told() -> None:
    run = played("exec-patch")
    assert run.dialogue.ended(0).touched_files == ["/project/new.txt", "/project/old.txt"]
    (row,) = [row for row in run.rows(RowType.TOOL) if row.phase is Phase.END]
    kinds = {change["path"]: change["kind"] for change in (row.detail or {})["changes"]}
    assert kinds == {"/project/new.txt": "add", "/project/old.txt": "update"}


def test_a_continued_thread_counts_what_this_run_has_used() -> None:
    first = played("resume-1")
    told = first.of(SessionIs)[-1]
    assert told.used == {"input": 10118, "output": 13, "cached": 0}
    second = played("resume-2", resume=told.session, used_before=told.used)
    assert second.dialogue.ended(0).usage == {"input": 20372 - 5127 - 10118, "output": 24 - 13, "cached": 5127}
    assert second.of(SessionIs)[-1].used == {"input": 20372 - 5127, "output": 24, "cached": 5127}


def test_tokens_that_cannot_be_told_from_those_of_earlier_runs_are_not_told() -> None:
    run = played("resume-2", resume="a-thread-of-the-app-server")
    assert run.dialogue.ended(0).usage == {}
    assert run.rows(RowType.USAGE) == []
    assert {told.used for told in run.of(SessionIs)} == {None}


def test_a_run_that_was_cut_off_hands_on_what_was_used_before_it() -> None:
    before = {"input": 5, "output": 6, "cached": 7}
    assert played("slow-sigint", resume="x", used_before=before).of(SessionIs)[-1].used == before


def test_rows_of_a_later_attempt_are_not_taken_for_those_of_the_first() -> None:
    first, later = ({row.id for row in played("subagent", earlier_attempts=n).rows()} for n in (0, 1))
    child = next(row.id for row in played("subagent").rows(RowType.AGENT))  # its id is unique across attempts
    assert first & later == {child}


def test_retries_are_told_until_something_comes() -> None:
    run = played("error-429")
    assert [(word.reason, "429" in word.message) for word in run.of(Retrying)] == [(Reason.RATE_LIMITED, True)]
    again = Run().hear(*events_of("error-429")[:4])
    again.hear({"type": "item.completed", "item": {"id": "item_1", "type": "agent_message", "text": "there"}})
    assert len(again.of(Progress)) == 1
    assert again.dialogue.ended(1).reason is Reason.EXIT_CODE


def test_a_refused_key_stops_at_the_first_sign() -> None:
    run = Run().hear(*events_of("exec-error-401")[:4])
    assert [stop.outcome.reason for stop in run.of(StopProgram)] == [Reason.AUTH]


def test_an_interrupt_is_told_as_one_but_never_undoes_an_end() -> None:
    run = played("slow-sigint")
    assert list(run.dialogue.interrupted()) == []
    assert run.dialogue.ended(1).message == "it was interrupted"
    done = played("text")
    done.dialogue.interrupted()
    assert done.dialogue.ended(0).reason is None


def test_a_plan_is_told_as_it_changes() -> None:
    steps = [{"text": "one", "completed": True}, {"text": "two", "completed": False}]
    item = {"id": "item_0", "type": "todo_list", "items": steps}
    run = Run().hear(*({"type": f"item.{kind}", "item": item} for kind in ("started", "updated", "completed")))
    assert [row.text for row in run.rows(RowType.NOTE)] == ["[x] one\n[ ] two"] * 2


def test_what_is_not_known_is_counted_and_told_at_the_end() -> None:
    run = Run().hear({"type": "from.the.future"}, [1], {"type": "item.completed", "item": {"type": "new"}})
    run.hear({"type": "turn.completed", "usage": {}})
    (row,) = run.rows(RowType.NOTE)
    assert set(row.detail or {}) == {"event from.the.future", "item new", "line that is not a JSON object"}


def test_a_backtrace_hides_no_cause() -> None:
    run = Run()
    for line in ("Error: no rollout found", "", "Stack backtrace:", *(f"   {n}: <unknown>" for n in range(12))):
        run.dialogue.complained(line.encode())
    assert run.dialogue.ended(1).message == "Codex ended before it began, with exit code 1. Error: no rollout found"


# -- the command line, and the orders that it cannot carry out --------------------------------------------------------


def test_the_command_line_of_one_that_may_write() -> None:
    server = {"command": "srv", "args": ["a b"], "timeout": 5}
    given = order(
        permissions=ALLOW, model="m", effort="low", instructions='You are "x"\n\x7f\u00e9', mcp_servers={"s": server}
    )
    words, config = flags(ready(given))
    assert words == ["codex", "exec", "--json", "--skip-git-repo-check", "--sandbox", "workspace-write", "-"]
    assert config == {
        "approval_policy": "never",
        "developer_instructions": 'You are "x"\n\x7f\u00e9',
        "model": "m",
        "model_reasoning_effort": "low",
        "mcp_servers.s": {"command": "srv", "args": ["a b"], "default_tools_approval_mode": "approve"},
    }


@pytest.mark.parametrize(
    ("restricted", "servers"),
    [
        ({"read_only": True}, {"own"}),
        ({"permissions": DENY}, set()),
        ({"read_only": True, "permissions": DENY}, {"own"}),
    ],
)
def test_who_may_change_nothing_gets_no_way_out_of_the_sandbox(restricted: dict[str, Any], servers: set[str]) -> None:
    given = order(resume="thread", mcp_servers={"own": {"command": "srv"}}, **restricted)
    words, config = flags(ready(given, '[{"name": "persons-1"}, {"name": "own"}]'))
    assert words[4:] == ["--sandbox", "read-only", "--ignore-rules", "resume", "thread", "-"]
    assert config["approval_policy"] == "never"
    assert config["mcp_servers.persons-1.enabled"] is False
    assert {key.split(".")[1] for key in config if key.startswith("mcp_servers.") and "enabled" not in key} == servers
    assert (config["features.apps"], config["features.plugins"]) == (False, False)


@pytest.mark.parametrize(
    ("restriction", "named"),
    [
        ({"permissions": []}, "asks nobody"),
        ({"permissions": [{"tool": "*", "answer": "ask"}]}, "asks nobody"),
        ({"permissions": [NO_LS, *ALLOW]}, "neither allow nor deny everything"),
        ({"permissions": [{"tool": "shell", "answer": "allow"}]}, "asks nobody"),
        ({"permissions": [NO_LS], "read_only": True}, "neither allow nor deny everything"),
        ({"permissions": ALLOW, "keep": True}, "keep"),
        ({"permissions": ALLOW, "max_turns": 3}, "maxTurns"),
        ({"permissions": ALLOW, "max_budget_usd": 3}, "maxBudgetUsd"),
        ({"permissions": ALLOW, "tools": ["shell"]}, "tools"),
    ],
)
def test_an_order_that_it_cannot_keep_to_is_refused_by_name(restriction: dict[str, Any], named: str) -> None:
    with pytest.raises(Refused, match=named) as refusal:
        ready(order(**restriction))
    assert refusal.value.hint


@pytest.mark.parametrize(
    "rules",
    [ALLOW, [*ALLOW, NO_LS], [{"tool": "shell", "answer": "allow"}, *ALLOW], DENY, [NO_LS, *DENY], [*DENY, *ALLOW]],
)
def test_one_answer_to_everything_needs_nobody(rules: list[dict[str, str]]) -> None:
    assert ready(order(permissions=rules)).permissions == rules


@pytest.mark.parametrize("told", ["", "{}x", "3", "[3]", '[{"name": "a.b"}]', '[{"name": "a\\n"}]', '[{"nam": "a"}]'])
def test_servers_that_cannot_be_named_cannot_be_switched_off(told: str) -> None:
    with pytest.raises(Refused, match="did not name"):
        ready(order(read_only=True), told)


JSON = st.recursive(
    st.booleans() | st.integers(-(2**60), 2**60) | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=8,
)


@settings(max_examples=40, deadline=None)
@given(value=JSON)
def test_what_is_set_arrives_as_it_was(value: Any) -> None:
    line = toml(value)
    assert "\n" not in line
    assert tomllib.loads(f"x={line}")["x"] == value


# -- nothing raises, whatever the program sends, in any order --------------------------------------------------------

SEEN = [event for name in NAMES for event in events_of(name)]
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner))
INPUTS: list[Callable[[ExecDialogue], Sequence[Action]]] = [
    lambda dialogue: dialogue.told("more", interrupt=True),
    lambda dialogue: dialogue.answered("0", "accept"),
    lambda dialogue: dialogue.complained(b"\xff"),
    lambda dialogue: dialogue.interrupted(),
]


def _places(value: Any) -> Iterable[tuple[Any, Any]]:
    """Yield (container, key) of every value in an event."""
    for key, inner in list(value.items()) if isinstance(value, dict) else list(enumerate(value)):
        yield value, key
        if isinstance(inner, dict | list):
            yield from _places(inner)


@st.composite
def changed_events(draw: st.DrawFn) -> Any:
    """Draw a recorded event, mostly with some of its values replaced."""
    event = json.loads(json.dumps(draw(st.sampled_from(SEEN))))
    for _ in range(draw(st.integers(0, 2))):
        container, key = draw(st.sampled_from(list(_places(event))))
        container[key] = draw(VALUES)
    return event


@settings(max_examples=40, deadline=None)
@given(
    events=st.lists(changed_events() | VALUES | st.sampled_from(INPUTS), max_size=25),
    before=st.none() | st.dictionaries(st.sampled_from(["input", "cached"]), st.integers()),
    code=st.sampled_from([0, 1, -9]),
)
def test_nothing_that_is_told_raises(events: list[Any], before: dict[str, int] | None, code: int) -> None:
    run = Run(resume="thread", used_before=before)
    for event in events:
        if callable(event):
            run.actions += event(run.dialogue)
        else:
            run.hear(event)
    for row in run.rows():
        assert encode_row(row, "2026-01-01T00:00:00Z").endswith(b"\n")
    assert isinstance(run.dialogue.ended(code), AgentOutcome)
