"""At stake: each key of the screen does to real workers what the help says of it."""

from __future__ import annotations

import errno
import os
import re
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from textual.binding import Binding
from textual.events import Key
from textual.widgets import Input

from agentctl.adapters.taskdir import Root, TaskDir
from agentctl.domain.worker.need import Need
from agentctl.errors import Refused, StorageError
from agentctl.interfaces.screen.acting.commands import OnceOnly
from agentctl.interfaces.screen.search_screen import SearchScreen
from agentctl.interfaces.screen.texts.pager import Pager
from agentctl.interfaces.screen.worker.logs_screen import LogWall
from agentctl.interfaces.screen.worker.worker_screen import WorkerScreen
from agentctl.operations.fleet.glance import FleetTask, FleetWorker
from agentctl.operations.fleet.seen import SeenEnds
from agentctl.operations.show.listing import list_workers
from agentctl.operations.start import again
from agentctl.operations.start.again import Retried, retry_workers
from agentctl.operations.stop import holding, pausing
from agentctl.operations.stop.pausing import pause_workers
from tests.advice import follow
from tests.agent_steps import agent, agent_world
from tests.life import kill_shims, leader_of
from tests.screens import Screen, watching
from tests.snapshots import snapshot
from tests.steps import new_task, spawn, statuses
from tests.support import alike, run, wait_until, worker


def test_new_work_is_started_from_the_screen(root: Path) -> None:
    task = new_task()

    async def steps(screen: Screen) -> None:
        await screen.shows("Nothing here yet")
        await screen.press("n")
        await screen.write("name:first ! true")
        await screen.press("enter")
        await screen.shows("first of t1: ", "1 done")
        await screen.press("escape", "exclamation_mark")
        await screen.write("sh -c 'exit 3'")
        await screen.press("enter")
        await screen.shows("failed (exit_code 3)")
        await screen.write("nobody-knows-me do it")
        await screen.press("enter")
        await screen.shows("nobody-knows-me")
        await screen.press("escape", "j")

    watching(steps)
    task.ended("first")
    assert sorted(statuses().values()) == ["completed", "failed"]


def test_in_a_new_folder_the_line_is_open_and_the_first_start_makes_the_root(root: Path) -> None:
    def check_none_is_made() -> None:
        assert not root.exists()

    async def steps(screen: Screen) -> None:
        await screen.shows("Nothing here yet", "needs you ", "ready for review ", "start:")
        check_none_is_made()
        await screen.write("name:first ! true")
        await screen.press("enter")
        await screen.shows("first of true: ", "1 done")
        await screen.shows_no("Nothing here yet")

    watching(steps, size=(80, 24))
    assert statuses() == {"first": "completed"}


def test_a_root_that_somebody_put_there_meanwhile_is_not_used(root: Path, tmp_path: Path) -> None:
    def plant() -> None:
        (tmp_path / "theirs").mkdir()
        root.symlink_to(tmp_path / "theirs")

    async def steps(screen: Screen) -> None:
        await screen.shows("Nothing here yet")
        plant()
        await screen.write("! true")
        await screen.press("enter")
        await screen.shows(".agentctl is a link", "hint: --root")

    watching(steps)
    assert not list((tmp_path / "theirs").iterdir())


def test_why_a_worker_is_as_it_is(root: Path) -> None:
    new_task()
    spawn(worker("exits", 3), "--wait", name="a1", check=False)

    async def steps(screen: Screen) -> None:
        await screen.go_to("a1")
        await screen.press("y")
        await screen.shows("a1 is failed", "It failed: its program exited with 3.", "exit.json")
        await screen.press("escape")
        await screen.shows("1 done (1 failed)")

    watching(steps)


def test_a_search_opens_what_it_found(root: Path) -> None:
    task = new_task()
    spawn(["sh", "-c", "exit 0 # the needle of it"], "--wait", name="a1")
    spawn(worker("exits", 0), "--wait", name="b1")
    task.ended("a1", "b1")

    async def steps(screen: Screen) -> None:
        await screen.shows("done 2")
        await screen.press("S")
        await screen.press("enter")
        await screen.shows("there is nothing to look for")
        await screen.write("needle")
        await screen.press("enter")
        await screen.shows("1 line in 1 worker", "t1/a1", "the needle of it")
        assert isinstance(screen.app.screen, SearchScreen)
        await screen.press("down", "enter")
        await screen.shows("a1 of t1", "1 transcript")
        await screen.press("escape")
        await screen.shows("1 line in 1 worker")
        await screen.press("escape")
        await screen.shows("done 2")
        await screen.press("S")
        await screen.write("nowhere-at-all")
        await screen.press("enter")
        await screen.shows("nothing was found")

    watching(steps)


@pytest.mark.slow
def test_an_ended_worker_is_tried_again(root: Path) -> None:
    task = new_task()
    spawn(worker("exits", 3), "--wait", name="a1", check=False)

    async def steps(screen: Screen) -> None:
        await screen.go_to("a1")
        await screen.press("r")
        await screen.shows("Start the work of a1 again?")
        await screen.press("n")
        await screen.press("r", "y")
        await screen.shows("a1 is tried again as a1-2", "✗ a1-2")

    watching(steps)
    task.ended("a1-2")
    assert set(statuses()) == {"a1", "a1-2"}


def test_a_retry_whose_answer_was_lost_is_one_try(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has been carried out, and then an error was told: the same worker is tried again from a dialog opened anew."""
    task = new_task()
    spawn(worker("exits", 3), "--wait", name="a1", check=False)
    keys: list[str | None] = []

    def loses_the_first(*given: Any, key: str | None, **how: Any) -> Retried:
        done = retry_workers(*given, key=key, **how)
        keys.append(key)
        if len(keys) == 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return done

    monkeypatch.setattr(again, "retry_workers", loses_the_first)

    async def steps(screen: Screen) -> None:
        await screen.go_to("a1")
        await screen.press("r", "y")
        await screen.shows("No space left on device", "✗ a1-2")
        await screen.go_to("a1-2")  # By now this stands for the work.
        await screen.press("r")
        await screen.shows("Start the work of a1-2 again?")
        await screen.press("n")  # No is no answer: it is the same request still.
        await screen.press("r", "y")
        await screen.shows("a1 was tried again before as a1-2 (failed)")
        assert set(statuses()) == {"a1", "a1-2"}
        await screen.press("r", "y")  # What was answered is done: this is another one.
        await screen.shows("a1-2 is tried again as a1-3")

    watching(steps)
    task.ended("a1-2", "a1-3")
    assert (keys[0] == keys[1] != keys[2], set(statuses())) == (True, {"a1", "a1-2", "a1-3"})


def test_a_pause_whose_answer_was_lost_is_not_undone_by_its_key(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has been carried out, and then an error was told: by now the worker is shown as it has made it."""
    new_task()
    spawn(worker("sleeps", 600), name="a1")
    lost: list[str] = []

    def losing(name: str) -> None:
        done_by = getattr(pausing, name)

        def loses_the_first(*given: Any) -> Any:
            done = done_by(*given)
            if name not in lost:
                lost.append(name)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return done

        monkeypatch.setattr(pausing, name, loses_the_first)

    for name in ("pause_workers", "unpause_workers"):
        losing(name)

    async def steps(screen: Screen) -> None:
        await screen.go_to("a1")
        for effect, said in (("paused", "a1 is paused"), ("working", "a1 continues")):
            await screen.press("p")
            await screen.shows("No space left on device", effect)
            await screen.press("p")
            await screen.shows(said)
        assert lost == ["pause_workers", "unpause_workers"]

    watching(steps)
    run("cancel", "a1")


def test_a_pause_that_was_refused_has_no_meaning_left(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was done: by the time that the worker is paused from elsewhere, the key lets it continue."""
    new_task()
    spawn(worker("sleeps", 600), name="a1")

    def refuses(*_: Any) -> Any:
        raise Refused("a1 cannot be paused now")

    async def steps(screen: Screen) -> None:
        await screen.go_to("a1")
        monkeypatch.setattr(pausing, "pause_workers", refuses)
        await screen.press("p")
        await screen.shows("a1 cannot be paused now")
        run("pause", "a1")
        await screen.shows("paused")
        await screen.press("p")
        await screen.shows("a1 continues")

    watching(steps)
    run("cancel", "a1")


def test_what_is_asked_of_several_is_what_a_yes_does(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first pause is done while the second one is asked about: by then all are paused."""
    new_task()
    for name in ("a1", "b1"):
        spawn(worker("sleeps", 600), name=name)
    is_asked = threading.Event()

    def answers_late(*given: Any) -> Any:
        done = pause_workers(*given)
        assert is_asked.wait(20)
        return done

    async def marks_both(screen: Screen) -> None:
        for name in ("a1", "b1"):
            await screen.go_to(name)
            await screen.press("m")
        await screen.shows("2 marked")

    async def steps(screen: Screen) -> None:
        monkeypatch.setattr(pausing, "pause_workers", answers_late)
        await marks_both(screen)
        await screen.press("p", "y")
        await screen.until(lambda: screen.text().count("‖") == 2, "that both are paused")
        await marks_both(screen)
        await screen.press("p")
        await screen.shows("Pause 2 marked workers (a1, b1)?")
        is_asked.set()
        await screen.shows("2 workers are paused")
        screen.app.say("")
        await screen.shows_no("2 workers are paused")
        await screen.press("y")
        await screen.shows_no("Pause 2 marked workers")
        await screen.shows("2 workers are paused")

    watching(steps)
    assert all(row["paused"] for row in list_workers(TaskDir(root / "t1"))[0])
    run("cancel", "a1", "b1")


@pytest.mark.parametrize(
    ("error", "is_meant"),
    [(OSError(errno.ENOSPC, "No space left"), True), (StorageError("No space left"), True), (Refused("no"), False)],
)
def test_what_may_have_been_done_is_meant_still(
    root: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, is_meant: bool
) -> None:
    task, once = TaskDir(new_task().path), OnceOnly()
    spawn(["true"], "--wait", name="a1")
    row: Any = {**list_workers(task)[0][0], "paused": True}
    workers, held = [FleetWorker(task, row, Need.WORKING, (), None, 0)], FleetTask(task, "", "", True, None, None)

    def fails(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(pausing, "pause_workers", fails)
    monkeypatch.setattr(holding, "let_task_go", fails)
    with pytest.raises(type(error)):
        once.turn_pauses(workers, pauses=True)
    with pytest.raises(type(error)):
        once.turn_hold(held, holds=False)
    assert (once.pauses(workers), once.holds(held)) == (is_meant, not is_meant)


def test_a_press_that_met_an_error_is_meant_still_after_another_one_was_carried_out(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, once = TaskDir(new_task().path), OnceOnly()
    spawn(worker("sleeps", 600), name="a1")

    def seen() -> list[FleetWorker]:
        return [FleetWorker(task, row, Need.WORKING, (), None, 0) for row in list_workers(task)[0]]

    def loses_its_answer(*_: Any) -> Any:
        monkeypatch.setattr(pausing, "pause_workers", pause_workers)
        once.turn_pauses(seen(), pauses=True)  # The second press, which ends before the first one does.
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(pausing, "pause_workers", loses_its_answer)
    with pytest.raises(OSError, match="Input/output error"):
        once.turn_pauses(seen(), pauses=True)
    assert once.pauses(seen())
    run("cancel", "a1")


def test_what_a_key_has_meant_is_not_what_it_means_for_another_worker_of_the_name(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, once = TaskDir(new_task().path), OnceOnly()

    def started() -> list[FleetWorker]:
        spawn(worker("sleeps", 600), name="a1")
        run("pause", "a1")
        return [FleetWorker(task, row, Need.WORKING, (), None, 0) for row in list_workers(task)[0]]

    def fails(*_: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    first = started()
    monkeypatch.setattr(pausing, "pause_workers", fails)
    with pytest.raises(OSError, match="No space left"):
        once.turn_pauses(first, pauses=True)
    assert once.pauses(first)
    run("cancel", "a1")
    run("rm", "a1")
    assert not once.pauses(started())
    run("cancel", "a1")


def test_works_whose_newest_tries_have_another_order_are_tried_again_once(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Marked workers come in the order of their names; the first try of `build-1` comes before that of `build`."""
    task, once = TaskDir(new_task().path), OnceOnly()
    for name in ("build", "build-1"):
        spawn(worker("exits", 3), "--wait", name=name, check=False)
    told: list[Retried] = []

    def loses_the_first(*given: Any, **how: Any) -> Retried:
        told.append(retry_workers(*given, **how))
        if len(told) == 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return told[-1]

    def marked(*names: str) -> list[FleetWorker]:
        rows = {row["agentInstance"]: row for row in list_workers(task)[0]}
        return [FleetWorker(task, rows[name], Need.FAILED, (), None, 0) for name in sorted(names)]

    monkeypatch.setattr(again, "retry_workers", loses_the_first)
    with pytest.raises(OSError, match="No space left"):
        once.start_again(marked("build", "build-1"))
    before = set(statuses())
    newest = before - {"build", "build-1"}
    run("wait", *newest, check=False)
    assert once.start_again(marked(*newest)) == "2 works were tried again before"
    assert set(statuses()) == before


def test_what_was_tried_again_is_said_of_those_of_which_it_is_true(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error behind the first of two tasks: the second one is tried again only now."""
    first, once = TaskDir(new_task().path), OnceOnly()
    run("new", "Another", "--id", "t2")
    tasks = first, first.root.task("t2")
    for task in tasks:
        for name in ("a", "b"):
            spawn(worker("exits", 3), "--wait", "--task", task.id, name=name, check=False)
    workers = [
        FleetWorker(task, row, Need.FAILED, (), None, 0)
        for task in tasks
        for row in sorted(list_workers(task)[0], key=lambda row: row["agentInstance"])
    ]
    calls: list[str] = []

    def fails_at_the_second(task: TaskDir, names: list[str], **how: Any) -> Retried:
        calls.append(task.id)
        if len(calls) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return retry_workers(task, names, **how)

    monkeypatch.setattr(again, "retry_workers", fails_at_the_second)
    with pytest.raises(OSError, match="No space left"):
        once.start_again(workers)
    assert once.start_again(workers) == "2 works are tried again, and 2 were before"
    assert calls == ["t1", "t2", "t1", "t2"]
    for task in tasks:
        run("wait", "a-2", "b-2", "--task", task.id, check=False)


def test_a_retry_that_is_pressed_again_before_it_is_done_is_one_try(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first try has ended by the time that the second press is carried out, so nothing else would hold that up."""
    task, came_again = new_task(), threading.Event()
    spawn(worker("exits", 3), "--wait", name="a1", check=False)
    calls: list[str | None] = []

    def answers_late(*given: Any, key: str | None, **how: Any) -> Retried:
        calls.append(key)
        if len(calls) == 1:
            done = retry_workers(*given, key=key, **how)
            task.ended("a1-2")
            assert came_again.wait(20)
            return done
        came_again.set()
        task.ended("a1-2")
        return retry_workers(*given, key=key, **how)

    monkeypatch.setattr(again, "retry_workers", answers_late)

    async def steps(screen: Screen) -> None:
        await screen.go_to("a1")
        await screen.press("r", "y", "r", "y")
        await screen.until(lambda: len(calls) == 2, "that both were pressed")
        await screen.shows("as a1-2 (")

    watching(steps)
    assert set(statuses()) == {"a1", "a1-2"}


@pytest.mark.slow
def test_the_output_of_several_workers_at_once(root: Path) -> None:
    task = new_task()
    for name in ("a1", "b1", "c1"):
        spawn(["sh", "-c", f"echo the words of {name}; exit 3"], "--wait", name=name, check=False)
    task.ended("a1", "b1", "c1")

    async def steps(screen: Screen) -> None:
        for name in ("a1", "c1"):
            await screen.go_to(name)
            await screen.press("m")
        await screen.shows("2 marked")
        await screen.press("L")
        await screen.shows("the words of a1", "the words of c1", "t1/a1", "t1/c1")
        assert len(screen.app.screen.query(LogWall)) == 1
        assert "the words of b1" not in screen.text()
        await screen.press("escape")
        await screen.shows("✗ b1")

    watching(steps)


@pytest.mark.slow
def test_what_was_looked_at_is_noted_among_the_persons_files(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = agent_world(tmp_path, monkeypatch)
    for name in ("a", "b"):
        agent("say something", name=name)
    task.ended("a", "b")
    wait_until(task.roster, accept=lambda rows: rows == dict.fromkeys("ab", "completed"), what="the roster to follow")
    before = snapshot(task.path)

    async def steps(screen: Screen) -> None:
        await screen.shows("ready for review 2")
        await screen.go_to("a")
        await screen.press("v")
        await screen.press("g")
        await screen.shows("ready for review 1", "done 1")
        await screen.go_to("b")
        await screen.press("enter")
        await screen.shows("b of t1", "something")
        await screen.press("escape", "g")
        await screen.shows_no("ready for review")

    watching(steps)
    seen = SeenEnds(Root(str(root)))
    assert Path(seen.path).is_relative_to(Path.home())
    assert snapshot(task.path) == before

    async def look_again(screen: Screen) -> None:
        await screen.shows("done 2")
        await screen.shows_no("ready for review")

    watching(look_again)


def test_a_name_and_a_folder_are_copied(root: Path) -> None:
    task = new_task()
    spawn(worker("exits", 3), "--wait", name="a1", check=False)

    async def steps(screen: Screen) -> None:
        await screen.go_to("a1")
        await screen.press("c")
        assert screen.app.clipboard == "a1 --task t1"
        await screen.press("C")
        assert screen.app.clipboard == str(task.agent("a1"))

    watching(steps)


@pytest.mark.slow
def test_each_view_has_its_keys_in_the_help(root: Path) -> None:
    new_task()
    spawn(worker("exits", 3), "--wait", name="a1", check=False)

    async def steps(screen: Screen) -> None:
        await screen.go_to("a1")
        await screen.press("enter", "question_mark")
        shown = screen.text()
        for binding in (*WorkerScreen.BINDINGS, *Pager.BINDINGS):
            assert isinstance(binding, Binding)
            if not binding.key.isdigit():
                assert (binding.tooltip or binding.description) in shown
        await screen.press("escape", "escape")
        await screen.shows("1 done (1 failed)")

    watching(steps, size=(120, 90))


def test_a_call_of_an_agent_is_shown_with_its_arguments(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = agent_world(tmp_path, monkeypatch)
    agent("permit rm -rf build", "--permissions", "allow", name="a")
    task.ended("a")

    async def steps(screen: Screen) -> None:
        await screen.go_to("a")
        await screen.press("l")
        await screen.shows("Bash rm -rf build")
        while screen.app.fleet_list.line is not None and "Bash" not in str(screen.app.fleet_list.line.node):
            await screen.press("j")
        await screen.shows("command: rm -rf build")

    watching(steps)


def test_without_colours_and_with_a_light_background(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new_task()
    spawn(worker("exits", 3), "--wait", name="a1", check=False)

    async def steps(screen: Screen) -> None:
        await screen.go_to("a1")
        assert screen.app.animation_level == "none"
        colours = {
            style.color for strip in screen.app.screen._compositor.render_strips() for _, style, _ in strip
            if style is not None and style.color is not None and not style.color.is_default
        }  # fmt: skip
        assert (colours == set()) == bare, colours

    bare = False
    monkeypatch.setenv("COLORFGBG", "0;15")
    watching(steps)
    bare = True
    monkeypatch.setenv("NO_COLOR", "1")
    watching(steps)


@pytest.mark.slow
def test_the_footer_names_only_what_a_key_does_now(root: Path) -> None:
    task = new_task()
    spawn(worker("exits", 3), "--wait", name="a1", check=False)
    spawn(worker("asks", "Which?"), name="b1")
    task.has("agent.blocked", "b1")

    async def steps(screen: Screen) -> None:
        await screen.go_to("a1")
        await screen.until(lambda: re.search(r"r Retry", screen.rows()[-1]), "Retry in the footer")
        assert not re.search(r"Answer|Pause|Cancel", screen.rows()[-1])
        await screen.go_to("b1")
        await screen.until(lambda: re.search(r"i Answer.*x Cancel.*p Pause", screen.rows()[-1]), "Answer in the footer")
        assert "Retry" not in screen.rows()[-1]

    watching(steps, size=(140, 30))
    run("cancel", "--all")


@pytest.mark.slow
@pytest.mark.follows("interfaces/screen/fleet/drawing._WAYS_OUT: agentctl resume --lost")
def test_a_stranded_worker_goes_on_by_what_its_row_says(root: Path) -> None:
    task = new_task(cap=1)
    spawn(worker("sleeps", 60), name="a1")
    spawn(["true"], "--queue", name="b1")
    leader = leader_of(task, "a1")
    kill_shims(task, "a1")
    os.kill(leader.pid, signal.SIGKILL)
    seen = []

    async def steps(screen: Screen) -> None:
        await screen.shows("stranded: agentctl resume --lost")
        seen.append(screen.text())

    watching(steps, size=(140, 30))
    follow(next(line for line in seen[0].splitlines() if "stranded:" in line).rstrip() + "\n", "agentctl resume --lost")
    task.ended("b1")


@pytest.mark.slow
def test_a_further_run_that_would_be_refused_is_not_offered(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What continues an earlier run is no work of its own, and a command has no session."""
    task = agent_world(tmp_path, monkeypatch)
    agent("say one", name="a1")
    run("wait", "a1")
    run("resume", "a1", "say two")
    spawn(["false"], "--wait", name="b1", check=False)
    task.ended("a1-1", "b1")

    async def steps(screen: Screen) -> None:
        await screen.go_to("a1-1")
        await screen.until(
            lambda: "s Send" in screen.rows()[-1] and "Retry" not in screen.rows()[-1], "Send, and no Retry"
        )
        await screen.go_to("b1")
        await screen.until(
            lambda: "r Retry" in screen.rows()[-1] and "Send" not in screen.rows()[-1], "Retry, and no Send"
        )

    watching(steps, size=(140, 30))


@pytest.mark.slow
def test_what_is_typed_before_the_line_is_there_does_nothing_to_a_worker(root: Path) -> None:
    task = new_task()
    spawn(worker("sleeps", 60), name="a1")
    task.has("agent.started", "a1")

    async def steps(screen: Screen) -> None:
        for opens in ("n", "slash", "s"):
            await screen.go_to("a1")
            for key in (opens, "x", "y", "p"):
                screen.app.post_message(Key(key, "/" if key == "slash" else key))
            await screen.until(lambda: isinstance(screen.app.focused, Input), "a line to write in")
            await screen.pilot.pause()
            assert "Cancel a1?" not in screen.text()
            await screen.press("escape")
            await screen.until(lambda: screen.app.focused is screen.app.fleet_list, "the list again")

    watching(steps)
    assert [(row["status"], row["paused"]) for row in run("list", "--json").json] == [("running", False)]
    run("cancel", "--all")


def test_p_on_a_task_holds_its_queue_and_lets_it_go(root: Path) -> None:
    task = new_task(cap=1)
    run("pause")
    spawn(["true"], "--queue", name="a1")

    async def steps(screen: Screen) -> None:
        await screen.shows("held in the queue: why says by whom")
        await screen.press("t")
        await screen.shows("t1 held")
        await screen.press("g", "p")
        await screen.shows("the queue of t1 goes on", "t1 completed")
        await screen.press("p")
        await screen.shows("the queue of t1 is held: nothing is started")
        await screen.shows("t1 completed held")

    watching(steps)
    task.ended("a1")
    assert [event["type"] for event in task.events("queue.held", "queue.let_go")] == [
        "queue.held", "queue.let_go", "queue.held"
    ]  # fmt: skip


def test_a_key_acts_on_what_is_marked_and_names_it_before(root: Path) -> None:
    """The cursor has moved on by then: what it stands on is left alone."""
    task = new_task(cap=4, grace=0.2)
    for name in "abcd":
        spawn(worker("sleeps", 600), name=name)

    async def steps(screen: Screen) -> None:
        await screen.go_to("b")
        await screen.press("m", "m")
        await screen.shows("2 marked")
        await screen.press("x")
        await screen.shows("Cancel 2 marked workers (b, c)?")
        await screen.press("y")
        await screen.shows("2 workers are cancelled")
        await screen.shows_no("2 marked")

    watching(steps)
    task.ended("b", "c")
    assert statuses() == {"a": "running", "b": "cancelled", "c": "cancelled", "d": "running"}
    run("cancel", "--all")


@pytest.mark.slow
def test_what_is_marked_is_paused_and_redone_together_as_far_as_that_is_possible(root: Path) -> None:
    task = new_task(cap=4, grace=0.2)
    for name in ("bad-1", "bad-2"):
        spawn(["false"], "--wait", name=name, check=False)
    for name in ("run-1", "run-2"):
        spawn(worker("sleeps", 600), name=name)

    async def steps(screen: Screen) -> None:
        await screen.shows("run-1", "bad-1")
        await screen.press("M")
        await screen.shows("4 marked")
        await screen.press("p")
        await screen.shows("Pause 2 marked workers (run-1, run-2)?")
        await screen.press("n")
        await screen.shows("4 marked")
        await screen.press("r")
        await screen.shows("Start the work of 2 marked workers (bad-1, bad-2) again?")
        await screen.press("y")
        await screen.shows("2 works are tried again", "earlier tries 1")  # The one under the cursor stays.
        await screen.press("slash")
        await screen.write("n:run-")
        await screen.press("enter", "M")
        await screen.shows("2 marked")
        await screen.press("slash")
        await screen.write("x")
        await screen.press("enter", "p")
        await screen.shows("the filter hides all marked workers")
        await screen.press("escape", "slash")
        await screen.shows_no("2 marked")

    watching(steps)
    task.ended("bad-1-2", "bad-2-2")
    assert {name for name, status in statuses().items() if status == "running"} == {"run-1", "run-2"}
    run("cancel", "--all")


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("s", "a is failed: there is nothing to send to"),
        *alike(
            ("x", "a is failed: there is nothing to cancel"),
            ("p", "a is failed: there is nothing to pause"),
            ("i", "a asks nothing"),
            ("D", "a asks for no permission"),
            ("3", "a asks nothing"),
            ("z", "z does nothing here: ? shows the keys"),
        ),
    ],
)
def test_a_key_that_does_nothing_says_why_and_what_is_typed_then_does_nothing(root: Path, key: str, why: str) -> None:
    new_task()
    spawn(["false"], "--wait", name="a", check=False)
    spawn(worker("sleeps", 600), name="b")
    before = statuses()

    async def steps(screen: Screen) -> None:
        await screen.go_to("a")
        await screen.press(key)
        await screen.shows(why)
        await screen.press(*"yxoqrn", "space")
        await screen.shows(why)
        screen.app.said.say("")  # As after its time, while somebody types on.
        await screen.press("y")
        await screen.shows(why)
        assert not isinstance(screen.app.screen, WorkerScreen)
        assert not isinstance(screen.app.focused, Input)

    watching(steps)
    assert statuses() == before
    run("cancel", "b")


@pytest.mark.slow
def test_keys_act_again_once_nothing_was_typed_for_a_moment_or_another_key_was_pressed(root: Path) -> None:
    new_task()
    spawn(["false"], "--wait", name="a", check=False)

    async def steps(screen: Screen) -> None:
        await screen.go_to("a")
        await screen.press("x")
        await screen.shows("there is nothing to cancel")
        key = Key("y", "y")
        key.time = screen.app.pressed_at + 1.01
        screen.app.post_message(key)
        await screen.shows("a is failed, since")
        await screen.press("escape", "x", "down", "y")
        await screen.shows("a is failed, since")

    watching(steps)
