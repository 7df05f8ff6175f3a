"""At stake: every worker is found on the screen, in the order of need, and none moves under the cursor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from agentctl.adapters.taskdir import TaskDir
from agentctl.domain.activity.view import Node
from agentctl.domain.documents.workers.worker import WorkerRow
from agentctl.domain.names import WorkerId
from agentctl.domain.question import Question
from agentctl.domain.states import Status
from agentctl.domain.text.plaintext import ESCAPES
from agentctl.domain.worker.need import Need, need_of
from agentctl.domain.worker_row import BLANK
from agentctl.interfaces.screen.fleet.drawing import Piece, counted_words, draw_line
from agentctl.interfaces.screen.fleet.filtering import filter_of, scope_of
from agentctl.interfaces.screen.fleet.lines import (
    DEEPEST,
    Arrangement,
    Key,
    ListLine,
    Mode,
    NodeId,
    counts,
    hold_row,
    lines_of,
    wanted,
    workers_below,
)
from agentctl.interfaces.words.filter_words import filter_words
from agentctl.operations.fleet.glance import Doing, FleetTask, FleetWorker, Glance, TaskTotals
from agentctl.operations.fleet.task_totals import totals_of, with_those_below

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
TASKS, NAMES = ("t1", "t2", "t3"), ("a", "b", "c", "d")
TIMES = st.sampled_from([None, "2026-01-01T10:00:00.000Z", "2026-01-01T11:00:00.000Z", "2026-01-01T11:30:00.000Z"])
ODD = st.text(max_size=30) | st.sampled_from(["\x1b[31mred", "\u202eright", "漢字", "a\nb\tc", "\ud83d"])


def worker_row(name: str, **keys: Any) -> WorkerRow:
    row: WorkerRow = {**BLANK, "agentInstance": name, "agent": "command", "status": Status.RUNNING}
    return {**row, **keys}  # type: ignore[typeddict-item]


def fleet_worker(task: str, name: str, *, asks: str | None = None, seen: bool = False, **keys: Any) -> FleetWorker:
    row = worker_row(name, **keys)
    questions = () if asks is None else (Question("q1", "input", "Which?", asked_at=asks),)
    need = need_of(row, asks=asks is not None, is_idle=False, is_seen=seen, has_changes=False)
    return FleetWorker(TaskDir(f"/root/.agentctl/tasks/{task}"), row, need, questions, None, 0)


def glance_of(*workers: FleetWorker, tasks: dict[str, FleetTask] | None = None, **doings: Doing) -> Glance:
    found = {one.id: one for one in workers}
    known = {key.task_id: fleet_task(key.task_id) for key in found} | (tasks or {})
    return Glance(known, found, {key: doings[key.instance] for key in found if key.instance in doings}, False)


def fleet_task(name: str, parent: str | None = None, asker: str | None = None) -> FleetTask:
    return FleetTask(TaskDir(f"/root/.agentctl/tasks/{name}"), name, "working", True, parent, asker)


def shown(glance: Glance, arrangement: Arrangement) -> list[object]:
    return [line.key for line in lines_of(glance, arrangement)]


@st.composite
def glances(draw: st.DrawFn) -> Glance:
    """Draw any glance, also of parents that name each other in a circle."""
    tasks = {
        name: fleet_task(name, draw(st.none() | st.sampled_from(TASKS)), draw(st.none() | st.sampled_from(NAMES)))
        for name in TASKS
    }
    found = {}
    for name in draw(st.lists(st.tuples(st.sampled_from(TASKS), st.sampled_from(NAMES)), unique=True)):
        one = fleet_worker(
            *name,
            asks=draw(TIMES), seen=draw(st.booleans()), status=draw(st.sampled_from(list(Status))),
            parent=draw(st.none() | st.sampled_from(NAMES)), queuedAt=draw(TIMES), startedAt=draw(TIMES),
            endedAt=draw(TIMES), command=draw(ODD), driver=draw(st.none() | st.just("claude")),
            reason=draw(st.none() | ODD), message=draw(st.none() | ODD), agent=draw(st.just("command") | ODD),
        )  # fmt: skip
        found[one.id] = one
    return Glance(tasks, found, {}, False)


@given(glances())
def test_each_worker_is_on_one_line_by_need_and_in_that_order(glance: Glance) -> None:
    arrangement = Arrangement(opened=dict.fromkeys(Need, True))
    keys = [key for key in shown(glance, arrangement) if isinstance(key, WorkerId)]
    assert Counter(keys) == Counter(list(glance.workers))
    assert [glance.workers[key].need for key in keys] == sorted(glance.workers[key].need for key in keys)
    asking = [str(glance.workers[key].questions[0].asked_at) for key in keys if glance.workers[key].need == 0]
    assert asking == sorted(asking), "who waits longest is first"
    assert sum(counts(glance.workers.values()).values()) == len(glance.workers)


@given(glances())
def test_each_task_and_worker_is_on_one_line_of_the_tree(glance: Glance) -> None:
    everything: set[Key] = {*glance.tasks, *glance.workers}
    arrangement = Arrangement(Mode.TREE, dict.fromkeys(everything, True))
    lines = lines_of(glance, arrangement)
    assert Counter(line.key for line in lines) == Counter(everything), "circles are cut, and nothing is lost"
    assert all(line.depth <= DEEPEST for line in lines)


@given(glances(), glances(), st.data())
def test_the_worker_under_the_cursor_keeps_its_group(before: Glance, after: Glance, data: st.DataObject) -> None:
    both = [key for key in before.workers if key in after.workers]
    if not both:
        return
    arrangement = Arrangement(opened=dict.fromkeys(Need, True))
    key = data.draw(st.sampled_from(both))
    hold_row(before.workers[key], arrangement)
    headings: list[Need] = []
    for line in lines_of(after, arrangement):
        if isinstance(line.key, Need):
            headings.append(line.key)
        if line.key == key:
            assert headings[-1] == before.workers[key].need
    arrangement.held = None
    assert Counter(shown(after, arrangement)) == Counter(shown(after, Arrangement(opened=dict.fromkeys(Need, True))))


@given(glances(), st.integers(1, 250))
def test_a_line_is_as_wide_as_the_screen_and_obeyed_by_no_terminal(glance: Glance, width: int) -> None:
    for mode in Mode:
        arrangement = Arrangement(mode, dict.fromkeys([*Need, *glance.tasks, *glance.workers], True))
        for line in lines_of(glance, arrangement):
            text = "".join(text for text, _ in draw_line(glance, line, width, NOW))
            assert cell_len(text) == width
            assert not ESCAPES.keys() & set(map(ord, text))
            text.encode()


def test_done_is_folded_and_those_that_failed_stay_open() -> None:
    glance = glance_of(
        fleet_worker("t1", "a", status="completed"), fleet_worker("t1", "b", status="failed"),
        fleet_worker("t1", "c", status="cancelled"), fleet_worker("t1", "d", status="failed", seen=True),
        fleet_worker("t1", "e"),
    )  # fmt: skip
    assert shown(glance, Arrangement()) == [
        Need.FAILED, WorkerId("t1", "b"), Need.WORKING, WorkerId("t1", "e"), Need.DONE, WorkerId("t1", "d"),
    ]  # fmt: skip


def test_a_failure_is_a_group_of_its_own_until_somebody_has_looked() -> None:
    """Behind what is ready for review; a cancelled worker is no failure, whatever it has changed."""
    assert [need.name for need in Need] == [
        "NEEDS_YOU", "REVIEW", "FAILED", "WORKING", "QUEUED", "DONE", "EARLIER",
    ]  # fmt: skip
    failed: dict[str, Any] = {"status": Status.FAILED, "endedAt": "2026-01-01T11:00:00.000Z"}
    for keys in (failed, {**failed, "driver": "claude"}):
        assert fleet_worker("t1", "a", **keys).need is Need.FAILED
        assert fleet_worker("t1", "a", seen=True, **keys).need is Need.DONE
        assert fleet_worker("t1", "a", **{**keys, "status": Status.CANCELLED}).need is Need.DONE
    changed = worker_row("a", **failed)
    assert need_of(changed, asks=False, is_idle=False, is_seen=False, has_changes=True) is Need.FAILED


def test_failures_are_counted_and_red_wherever_workers_are_counted() -> None:
    ended: dict[str, Any] = {"endedAt": "2026-01-01T11:00:00.000Z"}
    glance = glance_of(
        *(fleet_worker("t1", f"f{n}", status="failed", **ended) for n in range(100)),
        *(fleet_worker("t1", f"d{n}", status="completed", **ended) for n in range(201)),
    )
    lines = lines_of(glance, Arrangement())
    headings = {line.key: draw_line(glance, line, 80, NOW) for line in lines if isinstance(line.key, Need)}
    assert [texts_of(one) for one in headings.values()] == ["▾ failed 100", "▸ done 201"]
    assert ("100", "failed") in headings[Need.FAILED]
    assert list(counted_words(glance.workers.values())) == [
        ("", ""), ("100 failed", "bold red"), (", ", ""), ("201 done", ""),
    ]  # fmt: skip
    looked_at = glance_of(*(one for one in glance.workers.values() if one.need is Need.DONE),
                          fleet_worker("t1", "f", status="failed", seen=True, **ended))  # fmt: skip
    (heading, _) = lines_of(looked_at, Arrangement())
    assert ", 1 failed" in texts_of(draw_line(looked_at, heading, 80, NOW))
    assert "".join(text for text, _ in counted_words(looked_at.workers.values())) == "202 done (1 failed)"


def texts_of(pieces: list[Piece]) -> str:
    return "".join(text for text, _ in pieces).rstrip()


def test_an_agents_answer_is_to_be_reviewed_until_it_was_seen() -> None:
    answered: dict[str, Any] = {"status": "completed", "driver": "claude", "endedAt": "2026-01-01T11:00:00.000Z"}
    assert fleet_worker("t1", "a", **answered).need is Need.REVIEW
    assert fleet_worker("t1", "a", seen=True, **answered).need is Need.DONE
    assert fleet_worker("t1", "a", **{**answered, "driver": None}).need is Need.DONE


def test_a_question_of_an_ended_worker_needs_nobody() -> None:
    assert fleet_worker("t1", "a", asks="2026-01-01T11:00:00.000Z", status="completed").need is Need.DONE


def test_a_row_shows_the_driver_and_how_it_ended_and_what_it_waits_for_at_80_columns() -> None:
    """Whatever else there is: long names of the worker, its agent and those that it waits for."""
    shown_of: list[tuple[list[str], dict[str, Any]]] = [
        (["general:codex"], {"agent": "general", "driver": "codex"}),
        (["e:codex failed (exit_code 3)"],
         {"agent": "a-long-agent-name" * 3, "driver": "codex", "status": "failed", "reason": "exit_code",
          "exitCode": 3}),
        (["after a, b"], {"status": "queued", "after": ["a", "b"]}),
    ]  # fmt: skip
    for vendor in ("claude", "opencode", "gemini"):
        denied = {"agent": "general", "driver": vendor, "status": "failed", "reason": "permission_denied"}
        shown_of.append(([f"general:{vendor} failed (permission_denied)"], denied))
    for words, keys in shown_of:
        one = fleet_worker("t1", "a-long-name" * 5, command="a long command " * 9, **keys)
        drawn = texts_of(draw_line(glance_of(one), ListLine(one.id, 0), 80, NOW))
        assert all(word in drawn for word in words), drawn


def test_a_row_has_the_words_of_an_agent_and_what_a_command_printed_as_it_stands() -> None:
    said, asked = "## What I found: **three** of `x`", "### Deploy **now**?\nmore"
    agents = [fleet_worker("t1", name, driver="claude", agent="general") for name in ("a", "b")]
    asking = agents[1]._replace(questions=(Question("q1", "input", asked),))
    glance = glance_of(agents[0], asking, a=Doing([], said, False))
    rows = [texts_of(draw_line(glance, ListLine(one.id, 0), 120, NOW)) for one in (agents[0], asking)]
    assert "What I found: three of x " in rows[0]
    assert "Deploy now? " in rows[1]
    command = fleet_worker("t1", "c", command="ls *.py **/*.js '## a'")
    row = texts_of(draw_line(glance_of(command), ListLine(command.id, 0), 120, NOW))
    assert "ls *.py **/*.js '## a' " in row
    call = Question("q1", "select", "Allow?", tool="Bash", arguments={"command": "rm **/a **/b"})
    glance = glance_of(command._replace(questions=(call,)))
    assert "Allow Bash: rm **/a **/b?" in texts_of(draw_line(glance, ListLine(command.id, 0), 120, NOW))


def test_the_state_of_a_task_is_told_in_the_words_of_a_status() -> None:
    for state, word in (("working", "running"), ("input-required", "blocked"), ("canceled", "cancelled")):
        task = fleet_task("t1")._replace(state=state, totals=TaskTotals(workers=3, failed=2))
        glance = Glance({"t1": task}, {}, {}, False)
        drawn = draw_line(glance, ListLine("t1", 0), 80, NOW)
        assert "".join(text for text, _ in drawn).startswith(f"  t1 {word} ")
        assert ("2 failed  ", "failed") in drawn


def test_an_activity_is_shown_as_far_as_its_groups_are_open() -> None:
    nodes = [
        Node(id="", type="worker", is_group=True),
        Node(id="s1", type="agent", depth=1, is_group=True),
        Node(id="c1", type="tool", depth=2),
        Node(id="c2", type="tool", depth=1),
    ]
    glance = glance_of(fleet_worker("t1", "a", driver="claude"), a=Doing(nodes, "", False))
    me = WorkerId("t1", "a")
    arrangement = Arrangement()
    assert shown(glance, arrangement) == [Need.WORKING, me]
    arrangement.toggle(me)
    assert shown(glance, arrangement)[1:] == [me, NodeId(me, "s1"), NodeId(me, "c2")]
    arrangement.toggle(NodeId(me, "s1"))
    assert shown(glance, arrangement)[1:] == [me, NodeId(me, "s1"), NodeId(me, "c1"), NodeId(me, "c2")]


def test_a_sub_task_is_below_the_worker_that_asked_for_it() -> None:
    glance = glance_of(
        fleet_worker("t1", "a"), fleet_worker("t1", "b", parent="a"), fleet_worker("t2", "c"),
        tasks={"t1": fleet_task("t1"), "t2": fleet_task("t2", "t1", "b")},
    )  # fmt: skip
    arrangement = Arrangement(Mode.TREE, dict.fromkeys([*glance.tasks, *glance.workers], True))
    assert [(line.key, line.depth) for line in lines_of(glance, arrangement)] == [
        ("t1", 0), (WorkerId("t1", "a"), 1), (WorkerId("t1", "b"), 2), ("t2", 3), (WorkerId("t2", "c"), 4),
    ]  # fmt: skip
    assert set(workers_below(glance, WorkerId("t1", "a"))) == {WorkerId("t1", "b"), WorkerId("t2", "c")}


def test_a_scope_has_a_task_and_those_below_it() -> None:
    above = {"t1": None, "t2": "t1", "t3": "t4", "t4": "t3"}
    tasks = {name: fleet_task(name, parent) for name, parent in above.items()}
    glance = glance_of(*(fleet_worker(name, "a") for name in tasks), tasks=tasks)
    arrangement = Arrangement(Mode.TREE, dict.fromkeys(tasks, True), has=scope_of("t1"))
    assert set(shown(glance, arrangement)) == {"t1", WorkerId("t1", "a"), "t2", WorkerId("t2", "a")}
    assert not scope_of("t5")(glance, glance.workers[WorkerId("t3", "a")]), "a circle of forged tasks ends"


@given(st.text(max_size=40))
def test_any_text_is_a_filter(text: str) -> None:
    glance = glance_of(fleet_worker("t1", "a"))
    shows = filter_of(text)
    assert shows is None or isinstance(shows(glance, glance.workers[WorkerId("t1", "a")]), bool)
    assert all(word.text == word.text.lower() for word in filter_words(text))


def test_a_tasks_row_has_what_its_workers_and_those_below_it_come_to() -> None:
    used: dict[str, Any] = {"driver": "claude", "usage": {"input": 900, "output": 100, "cached": 5, "costUsd": 0.25}}
    a = fleet_worker("t1", "a", status="completed", startedAt="2026-01-01T11:00:00.000Z",
                     endedAt="2026-01-01T11:30:00.000Z", **used)  # fmt: skip
    b = fleet_worker("t2", "b", status="running", startedAt="2026-01-01T11:10:00.000Z", command="make", **used)
    own = {"t1": fleet_task("t1")._replace(totals=totals_of([a])),
           "t2": fleet_task("t2", "t1")._replace(totals=totals_of([b]))}  # fmt: skip
    node = Node(id="", type="worker", is_group=True, calls=3)
    known = {one.instance: Doing([node], f"words of {one.instance}", False) for one in (a.id, b.id)}
    glance = glance_of(a, b, tasks=with_those_below(own), **known)
    line = lines_of(glance, Arrangement(Mode.TREE))[0]
    drawn = "".join(text for text, _ in draw_line(glance, line, 150, NOW))
    assert "2 workers, 1 live  words of b" in drawn
    assert drawn.split()[-6:] == ["6", "calls", "2.0k", "tokens", "$0.50", "1h00m"]
    assert wanted(glance, [line], Arrangement(Mode.TREE)) == {a.id: False, b.id: False}
    one_known = glance._replace(doings={a.id: known["a"]})
    assert "calls" not in "".join(text for text, _ in draw_line(one_known, line, 150, NOW)), "a part looks like all"
    ended = glance_of(a, tasks={"t1": own["t1"]})
    assert "".join(text for text, _ in draw_line(ended, line, 150, NOW)).endswith("30m00s")
    circle = {"t1": fleet_task("t1", "t2"), "t2": fleet_task("t2", "t1")}
    assert with_those_below(circle).keys() == circle.keys()


@given(glances())
def test_a_folded_task_shows_its_workers_and_those_of_the_tasks_below_it(glance: Glance) -> None:
    for name in glance.tasks:
        has = scope_of(name)
        below = {key: False for key, one in glance.workers.items() if has(glance, one)}
        assert wanted(glance, [ListLine(name, 0, is_folded=True)], Arrangement(Mode.TREE)) == below


class _Workers(dict[WorkerId, FleetWorker]):
    """Workers that count how often all of them were looked at."""

    passes = 0

    def __iter__(self) -> Iterator[WorkerId]:
        self.passes += 1
        return super().__iter__()

    def items(self) -> Any:
        self.passes += 1
        return super().items()


def test_a_page_of_folded_tasks_looks_at_all_workers_once() -> None:
    workers = _Workers({one.id: one for one in (fleet_worker(f"t{number}", "a") for number in range(60))})
    glance = Glance({key.task_id: fleet_task(key.task_id) for key in workers}, workers, {}, is_partial=False)
    lines, before = lines_of(glance, Arrangement(Mode.TREE)), workers.passes
    assert len(wanted(glance, lines, Arrangement(Mode.TREE))) == 60
    assert workers.passes == before + 1


def test_a_filter_looks_where_it_says() -> None:
    glance = glance_of(
        fleet_worker("login", "a", agent="explore", driver="claude"),
        fleet_worker("login", "b", status="failed", reason="timed_out"),
        fleet_worker("docs", "login-page", asks="2026-01-01T11:00:00.000Z", status="blocked"),
    )

    def found(text: str) -> set[str]:
        shows = filter_of(text)
        return {key.instance for key, one in glance.workers.items() if shows is None or shows(glance, one)}

    assert found("t:login") == {"a", "b"}
    assert found("login") == {"a", "b", "login-page"}
    assert found("login -t:login") == {"login-page"}
    assert found("s:blocked") == found("s:needs") == {"login-page"}
    assert found("s:timed_out") == {"b"}
    assert found("a:EXPLORE t:log") == {"a"}
    assert found("a:claude s:failed") == set()
    assert found("") == {"a", "b", "login-page"}
