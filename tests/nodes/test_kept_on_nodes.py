"""At stake: an agent on a node that was kept never works beside a guest in the place that it lends at the head."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentctl.adapters.files import make_folder
from agentctl.adapters.locks import hold_alive, try_lock
from agentctl.adapters.taskdir import LaunchDir, TaskDir, WorkerDir, names_in
from agentctl.adapters.treedir import tree_of
from agentctl.domain.question import Question
from agentctl.operations.start.on_node import make_task_on_node
from agentctl.operations.talk.asking import Asked, close_question, leave, put_question
from agentctl.operations.talk.messaging import mark_read
from agentctl.supervision.dispatch.slots import place_of
from agentctl.supervision.dispatch.standby import Standby
from agentctl.supervision.worker.inboxes import put_message
from agentctl.worker_programs.on_node.exchange.node_relay import Relay
from agentctl.worker_programs.on_node.exchange.to_node import Inbound
from tests.agent_steps import agent, agent_world, blocked, plays
from tests.life import passes
from tests.placed import ask_engine
from tests.steps import held, most_at_once, new_task, spawn, spawn_batch
from tests.support import run, wait_for_text, wait_until, worker

LOOPBACK = ("--runner", "loopback")
#: Of a turn that has been told to begin: the stand-in and the post have both looked by then, had it been passed on.
SOON_S = 2.5


# -- as people see it --------------------------------------------------------------------------------------------------


def works(folder: Path, notes: Path, gate: Path) -> str:
    """Return the prompt of a turn that is at work until a file is there, and notes it as `overlaps.py` does."""
    return plays(
        folder,
        f"""
import os, time
def note(mark):
    with open({str(notes)!r}, "a") as file: file.write(mark + " a\\n")
note("+")
while not os.path.exists({str(gate)!r}): time.sleep(0.02)
note("-")
me.answer("two")
""",
    )


@pytest.mark.slow
@pytest.mark.parametrize("told", [("send", "a"), ("answer", "a", "--id", "q1")], ids=["message", "answer"])
def test_an_agent_on_a_node_goes_on_alone_in_the_place_that_it_has_lent(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: tuple[str, ...]
) -> None:
    ask_engine("loopback", pollSeconds=0.5, silenceSeconds=1)
    task = agent_world(tmp_path, monkeypatch, cap=1)
    notes = tmp_path / "notes"
    agent("hello", "--keep", *LOOPBACK)
    blocked()
    for name in ("first", "second"):
        spawn(worker("overlaps", notes, "--until", tmp_path / name), "--queue", name=name)
    wait_for_text(notes)
    run(*told, works(tmp_path, notes, tmp_path / "turn"))
    passes(SOON_S)
    assert notes.read_text().count("\n") == 1, "its guest is at work"
    (tmp_path / "first").touch()
    wait_for_text(notes, "+ a")
    passes(SOON_S)
    assert task.tickets() == ["second"]
    (tmp_path / "turn").touch()
    (tmp_path / "second").touch()
    task.ended("second")
    assert most_at_once(notes) == 1
    run("send", "a", "--close", "")
    task.ended("a")


# -- what the stand-in does at each look -------------------------------------------------------------------------------


class Node:
    """An agent on a node, by its files there: it is at work, or waits for a message."""

    def __init__(self, launch: LaunchDir, task_id: str) -> None:
        self.worker = make_task_on_node(launch, task_id).worker("a")
        for place in (self.worker.path, self.worker.inbox):
            make_folder(place)
        self._asked: list[Asked] = []

    def waits(self) -> str:
        """Begin to wait for a message; return the id of its question."""
        self._asked.append(put_question(self.worker, Question("", "input", "what next?", idle=True)))
        return self._asked[-1].question_id

    def reads(self) -> None:
        """Go on with a message, as an agent does: its wait ends before the message counts as read."""
        close_question(self.worker, self._asked[-1].question_id, None, "it goes on with a message")
        mark_read(self.worker)

    def close(self) -> None:
        """Let go of its questions."""
        for asked in self._asked:
            leave(self.worker, asked)


class StandIn:
    """The part of a stand-in that passes on what is said, here and there."""

    def __init__(self, here: WorkerDir, launch: LaunchDir) -> None:
        self.relay, self.inbound = Relay(here, launch), Inbound(here, launch)

    def look(self) -> None:
        """Look at both sides once."""
        self.relay.step()
        self.inbound.step(self.relay)

    def close(self) -> None:
        """Let go of what it holds, as its end does."""
        for asked in self.relay._open.values():
            if asked is not None:
                os.close(asked.lock)
        self.relay._open.clear()
        if self.inbound._place is not None:
            self.inbound._place.end_loan()


class Kept:
    """A task with a cap of 1: `a` has the slot, `first` and `second` are in the queue, each until a file is there."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.task = folder, new_task(cap=1)
        self.here = TaskDir(self.task.path).worker("a")
        self.place = Standby(self.here, tree_of(self.here.task))
        self.launch = LaunchDir(str(folder / "launch"))
        for place in (self.launch.path, self.launch.to_node, self.launch.inbound.inbox):
            make_folder(place)
        self.node = Node(self.launch, self.task.path.name)
        self.stand_ins: list[StandIn] = []
        spawn_batch([held(folder / name, name) for name in ("a", "first", "second")])

    def stand_in(self) -> StandIn:
        """Start a stand-in; the one before was killed."""
        if self.stand_ins:
            self.stand_ins[-1].close()
        self.stand_ins.append(StandIn(self.here, self.launch))
        return self.stand_ins[-1]

    def has_guest(self) -> None:
        """Let a stand-in before have lent the place of `a` to `first`, which is at work."""
        assert self.place.lend()
        self.place.end_loan()
        self.task.has("agent.started", "first")

    def end_guest(self) -> None:
        """Let `first` end; who may start then is started."""
        (self.folder / "first").touch()
        wait_until(self.place.has_own, what="the place to come back")

    def has_place(self, name: str) -> bool:
        """Return whether a worker has a place, though its shim may be on its way to it."""
        return place_of(self.place.tree, self.here.task.worker(name).id) is not None

    def passed(self) -> list[str]:
        """Return the names of all that was said to the node: messages and answers."""
        inbound = self.launch.inbound
        return sorted(name for folder in (inbound.inbox, inbound.answers) for name in names_in(folder, 100))

    def close(self) -> None:
        """Let everything end."""
        for stand_in in self.stand_ins[-1:]:
            stand_in.close()
        self.node.close()
        for name in ("a", "first", "second"):
            (self.folder / name).touch()
        self.task.ended("a", "first", "second")


@pytest.fixture
def kept(root: Path, tmp_path: Path) -> Iterator[Kept]:
    world = Kept(tmp_path)
    try:
        yield world
    finally:
        world.close()


@contextlib.contextmanager
def hidden(path: str | Path) -> Iterator[None]:
    """Let a file of the node not be seen at the head yet."""
    os.rename(path, f"{path}.hidden")
    yield
    os.rename(f"{path}.hidden", path)


@contextlib.contextmanager
def locked_by_another(fd: int | None) -> Iterator[None]:
    assert fd is not None
    yield
    os.close(fd)


@pytest.mark.parametrize("is_replaced", [False, True], ids=["the same stand-in", "another one"])
def test_nothing_is_lent_while_a_message_is_on_its_way_to_the_agent(kept: Kept, *, is_replaced: bool) -> None:
    """It was sent while the agent was at work, and is read only after the agent has answered."""
    stand_in = kept.stand_in()
    put_message(kept.here, "user", "go on")
    stand_in.look()
    assert kept.passed() == ["000001.json"], "an agent at work needs no place"
    kept.node.waits()
    if is_replaced:
        stand_in = kept.stand_in()
    for _ in range(3):
        stand_in.look()
    assert not kept.has_place("first"), "the agent has yet to read it"
    kept.node.reads()
    stand_in.look()
    assert not kept.has_place("first"), "the agent is at work"
    kept.node.waits()
    stand_in.look()
    assert kept.has_place("first")


def test_nothing_is_lent_of_an_agent_that_goes_on_while_the_stand_in_looks(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in = kept.stand_in()
    put_message(kept.here, "user", "go on")
    stand_in.look()
    kept.node.waits()
    read_log = stand_in.relay._read_log

    def goes_on_behind_its_log() -> bool:
        has_come = read_log()
        kept.node.reads()
        return has_come

    with monkeypatch.context() as patched:
        patched.setattr(stand_in.relay, "_read_log", goes_on_behind_its_log)
        stand_in.look()
    assert not kept.has_place("first")


@pytest.mark.parametrize("unknown", ["its log", "its question", "who else asks it", "who is in the places"])
def test_a_new_stand_in_passes_no_message_on_beside_a_guest_whatever_it_does_not_know(kept: Kept, unknown: str) -> None:
    kept.has_guest()
    name = kept.node.waits()
    put_message(kept.here, "user", "go on")
    make_folder(kept.here.interactions)
    hides: dict[str, Callable[[], contextlib.AbstractContextManager[None]]] = {
        "its log": lambda: hidden(kept.node.worker.task.events),
        "its question": lambda: hidden(kept.node.worker.question(name)),
        "who else asks it": lambda: locked_by_another(hold_alive(kept.here.asker_lock(name))),
        "who is in the places": lambda: locked_by_another(try_lock(kept.task.path / "queue.lock")),
    }
    stand_in = kept.stand_in()
    with hides[unknown]():
        stand_in.look()
    assert (kept.passed(), stand_in.inbound.is_held_up) == ([], True)
    stand_in.look()
    assert kept.passed() == [], "its guest is at work"
    kept.end_guest()
    stand_in.look()
    assert (kept.passed(), stand_in.inbound.is_held_up) == (["000001.json"], False)
    assert not kept.has_place("second")


def test_a_stand_in_that_has_seen_nothing_yet_passes_no_message_on_beside_a_guest(kept: Kept) -> None:
    """The first look at the log has failed; what is to be passed on is looked at all the same."""
    kept.has_guest()
    kept.node.waits()
    put_message(kept.here, "user", "go on")
    stand_in = kept.stand_in()
    stand_in.inbound.step(stand_in.relay)
    assert kept.passed() == []
    kept.end_guest()
    stand_in.look()
    assert kept.passed() == ["000001.json"]


@pytest.mark.parametrize("then", ["a message", "it goes on"])
def test_a_loan_that_was_begun_ends_although_its_start_has_failed(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    """As where the disk fails behind the loan, while workers are started."""
    lend = Standby.lend
    monkeypatch.setattr(Standby, "lend", lambda self: lend(self) and False)
    stand_in = kept.stand_in()
    kept.node.waits()
    stand_in.look()
    kept.task.has("agent.started", "first")
    if then == "a message":
        put_message(kept.here, "user", "go on")
        stand_in.look()
        assert kept.passed() == [], "its guest is at work"
    else:
        kept.node.reads()
        stand_in.look()
    kept.end_guest()
    stand_in.look()
    assert not kept.has_place("second")


def test_an_answer_is_carried_over_once_the_place_has_come_back_and_ends_the_loan_for_good(kept: Kept) -> None:
    stand_in = kept.stand_in()
    name = kept.node.waits()
    stand_in.look()
    kept.task.has("agent.started", "first")
    close_question(kept.here, name, "go on")
    for _ in range(2):
        stand_in.look()
    assert kept.passed() == [], "its guest is at work"
    kept.end_guest()
    stand_in.look()
    assert kept.passed() == [f"{name}.json"]
    for _ in range(2):
        stand_in.look()
    kept.stand_in().look()
    assert not kept.has_place("second"), "the node has yet to say that its agent goes on"


def test_what_a_killed_stand_in_was_writing_does_not_count_as_a_message(kept: Kept) -> None:
    (Path(kept.launch.inbound.inbox) / "000001.json.1.0a1b2c3d.tmp").touch()
    put_message(kept.here, "user", "go on")
    kept.stand_in().look()
    assert "000001.json" in kept.passed()
