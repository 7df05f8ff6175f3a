"""At stake: a person is told of each question and each end once on every target, whoever looks and whoever is killed,
and no target ever holds up the work.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone, tzinfo
from pathlib import Path
from typing import Any

import psutil
import pytest

from agentctl.adapters.clock import now_iso
from agentctl.adapters.treedir import tree_of
from agentctl.domain.notice.quiet import QuietHours
from agentctl.operations.notify.senders import Senders, _started
from agentctl.operations.where.locating import find_task
from agentctl.supervision.notify.armed import Armed
from agentctl.supervision.notify.sender import is_quiet
from tests.listener import Listener, configure
from tests.processes import words_of
from tests.steps import Task, new_task, spawn
from tests.support import PROGRAM, run, start, start_argv, text_in, wait_for_json, wait_for_text, wait_until, worker
from tests.terminal import on_a_terminal

ASK = [*PROGRAM, "interact", "ask", "--kind", "input"]


def senders(task: Task) -> list[psutil.Process]:
    """Return the live senders of a task."""
    lines = {process: words_of(process) for process in psutil.process_iter()}
    return [process for process, words in lines.items() if "--tell" in words and words[-1] == str(task.path)]


def left(task: Task) -> None:
    """Wait until the task has no sender."""
    wait_until(lambda: senders(task), what="the sender to leave", accept=lambda found: not found)


@pytest.fixture
def hook(root: Path) -> Iterator[Listener]:
    listener = Listener()
    yield listener
    listener.close()
    task = Task(root / "tasks" / "t1")
    if task.path.exists():
        left(task)


@pytest.fixture
def home(root: Path, tmp_path: Path) -> Path:
    return tmp_path / "home"


def webhook(listener: Listener, **more: Any) -> dict[str, Any]:
    return {"type": "webhook", "url": listener.url(), **more}


def steps(task: Task) -> list[dict[str, Any]]:
    """Return the lines of the book."""
    return [json.loads(line) for line in text_in(task.path / "notices.jsonl").splitlines()]


def answer(instance: str, text: str = "yes") -> None:
    run("interact", "respond", instance, "--id", "q1", text)


# -- what is told ------------------------------------------------------------------------------------------------------


def test_a_question_a_failure_and_the_end_of_all_are_told(hook: Listener, home: Path) -> None:
    configure(home, {"hook": webhook(hook, token="tk_1")})
    new_task()
    spawn([*ASK, "Which branch?"], name="a")
    (asked,) = hook.told(1)
    assert (asked["event"], asked["agentInstance"], asked["question"]) == ("blocked", "a", "Which branch?")
    assert asked["text"] == "a asks: Which branch?"
    assert hook.headers[0]["Authorization"] == "Bearer tk_1"
    spawn(worker("exits", 3), name="b")
    failed = hook.told(2)[1]
    assert (failed["event"], failed["reason"], failed["exitCode"]) == ("failed", "exit_code", 3)
    answer("a")
    ended = hook.told(3)[2]
    assert (ended["event"], ended["counts"]) == ("ended", {"completed": 1, "failed": 1})
    assert not any(post["repeated"] for post in hook.posts)


@pytest.mark.slow
def test_each_worker_that_completes_is_told_while_others_work_if_that_is_wanted(hook: Listener, home: Path) -> None:
    configure(home, {"hook": webhook(hook, events=["completed"]), "other": webhook(hook)})
    new_task(cap=2)
    spawn([*ASK, "Which branch?"], name="slow")
    hook.told(1)
    spawn(worker("exits", 0), name="fast")
    done = hook.told(2)[1]
    assert (done["event"], done["agentInstance"], done["status"]) == ("completed", "fast", "completed")
    answer("slow")
    assert sorted(post["event"] for post in hook.told(4)) == ["blocked", "completed", "completed", "ended"]
    rows = {row["target"]: row["events"] for row in run("notify", "list", "--json").json}
    assert rows == {"hook": ["completed"], "other": ["blocked", "failed", "ended", "limit"]}


def test_ntfy_gets_its_own_form(hook: Listener, home: Path) -> None:
    configure(home, {"phone": {"type": "ntfy", "url": hook.url("above/mine"), "events": ["failed"]}})
    new_task()
    spawn(worker("exits", 3), name="b")
    post = hook.told(1)[0]
    assert hook.paths[0] == "/above/"
    assert post["topic"] == "mine"
    assert post["message"] == "b failed (exit_code 3)"


def test_a_command_gets_the_event_as_json(root: Path, home: Path, tmp_path: Path) -> None:
    out = tmp_path / "told.jsonl"
    script = f"import os, sys; open({str(out)!r}, 'a').write(sys.stdin.read()); print(os.environ.get('SECRET'))"
    configure(home, {"desk": {"type": "command", "command": [sys.executable, "-c", script], "events": ["failed"]}})
    task = new_task()
    spawn(worker("exits", 3), name="b")
    told = wait_for_json(out)
    assert (told["event"], told["agentInstance"], told["taskId"]) == ("failed", "b", "t1")
    left(task)


@pytest.mark.slow
def test_a_parallel_script_is_told_only_when_all_is_over(hook: Listener, home: Path) -> None:
    configure(home, {"hook": webhook(hook, events=["ended"])})
    new_task()
    spawn(worker("sleeps", 60), name="long")
    for name in ("x", "y"):
        spawn(["true"], name=name)
        run("wait", name)
    run("cancel", "long")
    (ended,) = hook.told(1)
    assert ended["counts"] == {"completed": 2, "cancelled": 1}


def test_a_sub_task_is_told_of_with_its_tree(hook: Listener, home: Path, root: Path) -> None:
    configure(home, {"hook": webhook(hook, events=["failed", "ended"])})
    task = new_task(depth=2)
    spawn([*PROGRAM, "spawn", "--wait", "--name", "child", "--", *worker("exits", 4)], name="parent")
    task.ended("parent")
    posts = hook.told(3)
    assert sorted(post["event"] for post in posts) == ["ended", "failed", "failed"]


@pytest.mark.slow
def test_no_sweep_takes_a_sender(hook: Listener, home: Path) -> None:
    configure(home, {"hook": webhook(hook, events=["failed"])})
    hook.may_answer.clear()
    task = new_task(depth=2)
    spawn([*PROGRAM, "spawn", "--wait", "--name", "child", "--", *worker("exits", 4)], name="parent")
    hook.told(1)  # By the sender of the child's shim, which is below the parent, and then among its orphans.
    task.ended("child", "parent")
    assert len(senders(task)) == 1
    exit_ = task.exit("parent")
    assert exit_ is not None
    assert "swept" not in exit_
    hook.may_answer.set()
    wait_until(lambda: set(hook.keys()), what="both to be told", accept=lambda found: len(found) == 2)
    left(task)
    assert not any(post["repeated"] for post in hook.posts)


@pytest.mark.parametrize(
    "text", ["notify: {targets: {hook: {type: webhook, url: 'https://not.listed/x'}}}", "notify: ["]
)
def test_a_person_who_is_told_nothing_for_a_fault_of_theirs_learns_that_from_each_start(
    root: Path, home: Path, text: str
) -> None:
    file = configure(home, {})
    file.write_text(text, encoding="utf-8")
    new_task()
    started = run("spawn", "--name", "a", "--", "true")
    assert "you are not told what happens: " in started.err
    assert str(file) in started.err
    run("wait", "a")


# -- once --------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_several_shims_and_waits_tell_each_event_once(hook: Listener, home: Path) -> None:
    configure(home, {"hook": webhook(hook, events=["failed"]), "other": webhook(hook, events=["failed"])})
    task = new_task(cap=4)
    spawn(worker("sleeps", 60), name="keeps-the-waits")
    waits = [start("wait-all", "--timeout-seconds", "30") for _ in range(3)]
    names = [f"w{number}" for number in range(12)]
    lines = "".join(json.dumps({"name": name, "argv": worker("exits", 1)}) + "\n" for name in names)
    run("spawn", "--queue", "--batch", "-", stdin=lines)
    task.ended(*names)
    wait_until(lambda: sorted(hook.keys()), what="all keys twice", accept=lambda keys: len(keys) >= 24)
    run("cancel", "keeps-the-waits")
    for wait in waits:
        wait.wait(20)
    left(task)
    keys = [f"t1:{seq}" for seq, event in enumerate(task.events(), 1) if event["type"] == "agent.failed"]
    assert sorted(hook.keys()) == sorted([*keys, *keys])


@pytest.mark.slow
def test_a_question_that_is_taken_up_again_is_told_once(hook: Listener, home: Path) -> None:
    configure(home, {"hook": webhook(hook, events=["blocked", "failed"])})
    task = new_task()
    again = shlex.join(["timeout", "1", *ASK, "--id", "q1", "Again?"])
    spawn(["sh", "-c", f"{again}; {again}; {again}; exit 3"], name="a")
    task.ended("a")
    posts = hook.told(2)
    assert [post["event"] for post in posts] == ["blocked", "failed"]
    assert len(task.events("agent.blocked")) == 3


@pytest.mark.parametrize("point", ["notify.before-send", "notify.after-send"])
def test_a_sender_that_was_killed_before_it_noted_it_is_repeated_and_says_so(
    point: str, hook: Listener, home: Path
) -> None:
    configure(home, {"hook": webhook(hook, events=["failed"])})
    task = new_task()
    run("spawn", "--name", "b", "--", *worker("exits", 3), env={"AGENTCTL_FAILPOINT": point})
    wait_until(lambda: steps(task), what="the claim")
    left(task)
    before = len(hook.posts)
    assert before == (1 if point == "notify.after-send" else 0)
    spawn(["true"], name="c")  # Whoever comes next tells.
    post = hook.told(before + 1)[-1]
    assert post["repeated"]
    assert post["text"] == "(repeated) b failed (exit_code 3)"
    left(task)
    assert len(hook.posts) == before + 1


# -- retried -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_server_that_was_down_is_tried_again(root: Path, home: Path) -> None:
    first = Listener()
    port = first.port
    configure(home, {"hook": webhook(first, events=["failed"])})
    first.close()
    task = new_task()
    spawn(worker("exits", 3), name="b")
    wait_until(lambda: [step["step"] for step in steps(task)], what="a failure", accept=lambda found: "failed" in found)
    second = Listener(port)
    try:
        (post,) = second.told(1)
        assert not post["repeated"], "nothing can have arrived"
        left(task)
        assert len(second.posts) == 1
    finally:
        second.close()


@pytest.mark.slow
def test_what_a_server_refuses_is_not_tried_again_and_what_it_fails_at_is(hook: Listener, home: Path) -> None:
    configure(home, {"hook": webhook(hook, events=["failed"])})
    task = new_task()
    hook.statuses = [503, 200, 404]
    spawn(worker("exits", 3), name="b")
    hook.told(2)
    left(task)
    spawn(worker("exits", 3), name="c")
    hook.told(3)
    left(task)
    assert [post["agentInstance"] for post in hook.posts] == ["b", "b", "c"]
    (row,) = run("notify", "list", "--json").json
    assert (row["sent"], row["refused"], row["lastError"]) == (1, 1, "HTTP 404 Not Found")
    assert "the target hook did not get 1 notice: HTTP 404" in run("doctor", check=False).out


def test_a_wait_tells_what_a_killed_shim_cannot(hook: Listener, home: Path) -> None:
    configure(home, {"hook": webhook(hook, events=["failed"])})
    task = new_task()
    spawn(worker("sleeps", 60), name="a")
    leader = json.loads((task.agent("a") / "worker.json").read_bytes())["pid"]
    os.kill(task.shim_of("a"), signal.SIGKILL)
    os.kill(leader, signal.SIGKILL)
    run("wait", "a", check=False)
    assert hook.told(1)[0]["text"].startswith("a failed (")


# -- never in the way --------------------------------------------------------------------------------------------------


def test_a_target_that_hangs_holds_nobody_up(hook: Listener, home: Path) -> None:
    configure(home, {"hook": webhook(hook, events=["failed"])})
    task = new_task(cap=1)
    hook.may_answer.clear()
    lines = [{"name": name, "argv": worker("exits", 1)} for name in ("a", "b", "c")]
    run("spawn", "--queue", "--batch", "-", stdin="".join(json.dumps(line) + "\n" for line in lines))
    hook.told(1)
    task.ended("a", "b", "c")
    assert run("wait-all", check=False).code == 7
    assert senders(task), "it still waits for the answer"
    assert len(hook.posts) == 1
    hook.may_answer.set()
    wait_until(lambda: len(set(hook.keys())), what="the others to be told", accept=lambda found: found == 3)


@pytest.mark.slow
def test_a_target_that_is_slow_holds_up_no_other(hook: Listener, home: Path, tmp_path: Path) -> None:
    may_end, begun = tmp_path / "may-end", tmp_path / "begun"
    script = f"echo >> {begun}; until [ -e {may_end} ]; do sleep 0.05; done"
    slow = {"type": "command", "command": ["sh", "-c", script], "events": ["failed"]}
    configure(home, {"slow": slow, "hook": webhook(hook, events=["failed"])})
    task = new_task()
    for number, name in enumerate(("a", "b", "c"), 1):
        spawn(worker("exits", 1), name=name)
        assert hook.told(number)[-1]["agentInstance"] == name
        wait_for_text(begun)
    assert text_in(begun) == "\n", "it is told of one notice at a time"
    assert len(senders(task)) == 1, "nobody leaves while a target is busy"
    may_end.touch()
    wait_until(
        lambda: text_in(begun), what="the slow one to be told of the others", accept=lambda text: text == "\n" * 3
    )
    left(task)
    assert [step["step"] for step in steps(task) if step["target"] == "slow"] == ["claimed", "sent"] * 3


def test_nothing_is_started_where_nothing_is_configured(root: Path, home: Path) -> None:
    task = new_task()
    spawn([*ASK, "Go?"], name="a")
    task.has("agent.blocked", "a")
    spawn(worker("exits", 3), name="b")
    task.ended("b")
    answer("a")
    run("wait-all", check=False)
    assert not (task.path / "sender.json").exists()
    assert not (task.path / "notices.jsonl").exists()
    configure(home, {"hook": {"type": "command", "command": ["true"]}}, always=[])
    spawn(worker("exits", 3), name="c")
    task.ended("c")
    run("wait-all", check=False)
    assert not (task.path / "sender.json").exists(), "none of the targets applies"


# -- not now, and not that ---------------------------------------------------------------------------------------------


def hours_around_now(hours: int, zone: tzinfo | None = None) -> str:
    """Return quiet hours that begin an hour ago and end in some hours; in this place, if no other is named."""
    now = datetime.now(zone)
    return f"{now - timedelta(hours=1):%H:%M}-{now + timedelta(hours=hours):%H:%M}"


@pytest.mark.slow
def test_in_quiet_hours_nothing_is_sent_and_after_them_it_is(hook: Listener, home: Path) -> None:
    target = {"hook": webhook(hook, events=["failed"])}
    configure(home, target, quiet=hours_around_now(2))
    task = new_task()
    spawn(worker("exits", 3), name="b")
    task.ended("b")
    wait_until((task.path / "sender.json").exists, what="a sender")
    left(task)
    assert not hook.posts
    found = run("notify", "list", "--json").json[0]
    assert (found["waiting"], found["isQuietNow"], found["sent"]) == (1, True, 0)
    assert run("notify", "test", "hook").out == "hook: delivered (HTTP 200 OK)\n"
    configure(home, target, quiet=hours_around_now(0))
    spawn(["true"], name="c")
    posts = hook.told(2)
    assert [post["event"] for post in posts] == ["test", "failed"]


def test_the_quiet_hours_are_those_of_the_person_and_not_of_the_shim(hook: Listener, home: Path) -> None:
    here = datetime.now().astimezone().utcoffset()
    assert here is not None
    offset = here + timedelta(hours=9 if here < timedelta() else -9)
    far = f"UTC{-int(offset.total_seconds() // 3600):+d}"  # West is positive.
    configure(home, {"hook": webhook(hook, events=["failed"])}, quiet=hours_around_now(2, timezone(offset)))
    task = new_task()
    run("spawn", "--name", "b", "--", *worker("exits", 3), env={"TZ": far})
    task.ended("b")
    wait_until((task.path / "sender.json").exists, what="a sender")
    left(task)
    assert not hook.posts


def test_whoever_asks_for_quiet_hours_stays_in_their_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TZ", raising=False)
    before = time.tzname
    is_quiet(Armed((), quiet=QuietHours(0, 1), environ={"TZ": "XYZ+7"}))
    assert (os.environ.get("TZ"), time.tzname) == (None, before)


@pytest.mark.slow
def test_what_is_looked_at_is_not_told_until_the_screen_is_gone(hook: Listener, home: Path) -> None:
    configure(home, {"hook": webhook(hook, events=["blocked"])})
    task = new_task()
    code = (
        "import sys; from agentctl.adapters.taskdir import TaskDir\n"
        "from agentctl.operations.notify.terminal_notices import looking\n"
        f"look = looking(); look.at(TaskDir({str(task.path)!r}), 'a'); print('looks', flush=True); sys.stdin.read()"
    )
    screen = start_argv([sys.executable, "-c", code], stdin=-1)
    assert screen.stdout is not None
    assert screen.stdout.readline() == "looks\n"
    spawn([*ASK, "Seen?"], name="a")
    spawn([*ASK, "Unseen?"], name="b")
    (post,) = hook.told(1)
    assert post["agentInstance"] == "b"
    screen.kill()
    screen.wait()
    answer("a")
    spawn([*ASK, "And now?"], name="c")
    assert hook.told(2)[1]["agentInstance"] == "c"
    seqs = {e["agentInstance"]: n for n, e in enumerate(task.events(), 1) if e["type"] == "agent.blocked"}
    assert {step["step"] for step in steps(task) if f"t1:{seqs['a']}" in step["keys"]} == {"seen"}
    assert not list((home / ".local/state/agentctl/looking").glob("*.json")), "a killed screen leaves nothing"
    for name in ("b", "c"):
        answer(name)


@pytest.mark.slow
def test_a_wait_on_a_terminal_rings_once(root: Path, home: Path) -> None:
    configure(home, {"here": {"type": "terminal", "ways": ["bell", "osc9", "osc777"], "events": ["failed"]}})
    task = new_task()
    spawn([*ASK, "Go?"], name="keeps")
    spawn(["sh", "-c", f"sleep 1; {shlex.join(worker('exits', 3))}"], name="b")
    _, sent = on_a_terminal([*PROGRAM, "wait", "b"])
    assert sent.count(b"\x1b]9;agentctl: A task: b failed (exit_code 3)\x1b\\") == 1
    assert sent.count(b"\x1b]777;notify;agentctl: A task;b failed (exit_code 3)\x1b\\") == 1
    assert b"\a" in sent
    _, again = on_a_terminal([*PROGRAM, "wait", "b"])
    assert b"\x1b]9;" not in again
    answer("keeps")
    task.ended("keeps")
    left(task)


@pytest.mark.slow
def test_a_process_that_stays_collects_its_senders(hook: Listener, home: Path) -> None:
    configure(home, {"hook": webhook(hook, events=["failed"])})
    task = new_task()
    spawn(worker("exits", 3), "--wait", name="b", check=False)
    hook.told(1)
    left(task)
    place, me = find_task(None), psutil.Process()
    senders, before = Senders(tree_of(place)), set(me.children())
    senders.look([place])
    (child,) = set(me.children()) - before
    wait_until(child.status, accept=lambda status: status == psutil.STATUS_ZOMBIE, what="its end")
    senders.look([place])
    assert child not in me.children()
    assert child.pid not in _started, "its pid may come to be that of another child"


# -- where it is told --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_targets_are_named_for_a_task_and_for_a_root(hook: Listener, home: Path) -> None:
    configure(home, {"one": webhook(hook), "two": webhook(hook)}, always=["one"])
    new_task()

    def named() -> dict[str, tuple[str | None, list[str]]]:
        return {row["target"]: (row["by"], row["events"]) for row in run("notify", "list", "--json").json}

    every = ["blocked", "failed", "ended", "limit"]
    assert named() == {"one": ("always", every), "two": (None, every)}
    run("notify", "on", "two:failed", "--all")
    assert named()["two"] == ("root", ["failed"])
    run("notify", "off", "one")
    assert named()["one"][0] is None
    run("notify", "on", "one:blocked")
    assert named()["one"] == ("task", ["blocked"])
    run("new", "other", "--notify", "two:limit")
    assert named() == {"one": ("always", every), "two": ("task.yaml", ["limit"])}
    assert run("new", "bad", "--notify", "three", check=False).code == 3


@pytest.mark.slow
def test_what_happened_before_a_target_was_named_is_not_told(hook: Listener, home: Path) -> None:
    configure(home, {"hook": webhook(hook, events=["failed"])}, always=[])
    task = new_task()
    spawn(worker("exits", 3), name="old")
    task.ended("old")
    ended = now_iso()  # Events have milliseconds.
    wait_until(now_iso, what="the next millisecond", accept=lambda now: now != ended)
    run("notify", "on", "hook")
    spawn(worker("exits", 3), name="new")
    (post,) = hook.told(1)
    assert post["agentInstance"] == "new"
