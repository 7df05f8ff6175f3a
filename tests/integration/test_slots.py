"""At stake: never more than `maxConcurrentAgents` workers at work, in spite of races, kills and changes of the cap."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.steps import held, kill, most_at_once, new_task, row, spawn, spawn_batch, statuses
from tests.support import PROGRAM, alike, is_alive, run, start, start_argv, text_in, wait_for_json, wait_until, worker


def test_at_the_cap_spawn_is_refused_and_names_who_has_the_slots(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=2)
    spawn_batch([held(tmp_path / "gate", "explore-1"), held(tmp_path / "gate", "explore-2")])
    before = task.events()

    refused = spawn(["true"], name="third", check=False)

    assert refused.code == 5
    assert "error: 2 of 2 slots are in use: explore-1, explore-2\n" in refused.err
    assert "hint: --queue" in refused.err
    assert task.events() == before
    assert not task.agent("third").exists()
    assert set(task.roster()) == {"explore-1", "explore-2"}
    (tmp_path / "gate").touch()
    task.ended("explore-1", "explore-2")
    wait_until(lambda: spawn(["true"], name="third", check=False).code, accept=lambda code: code == 0)
    task.ended("third")


def test_a_batch_larger_than_the_cap_waits_in_the_queue(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    told = spawn_batch([held(tmp_path / "gate", "a"), {"name": "b", "argv": ["true"]}])
    assert [one["status"] for one in told] == ["running", "queued"]
    assert task.tickets() == ["b"]
    (tmp_path / "gate").touch()
    task.ended("a", "b")


@pytest.mark.slow
def test_a_refused_key_is_free_again(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    spawn_batch([held(tmp_path / "gate", "a")])
    assert spawn(["true"], "--key", "k", name="b", check=False).code == 5
    (tmp_path / "gate").touch()
    task.ended("a")
    again = wait_until(lambda: spawn(["true"], "--key", "k", name="b", check=False), accept=lambda done: done.code == 0)
    assert again.json["reused"] is False
    task.ended("b")


@pytest.mark.slow
def test_sixteen_spawners_at_a_cap_of_three_are_never_four_at_work(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=3)
    notes, gate = tmp_path / "notes", tmp_path / "gate"
    notes.touch()
    argv = worker("overlaps", notes, "--until", gate)
    spawners = [start("spawn", "--queue", "--name", f"w{number}", "--", *argv) for number in range(16)]
    assert [spawner.wait(timeout=60) for spawner in spawners] == [0] * 16
    wait_until(lambda: text_in(notes), what="three at work", accept=lambda text: text.count("+") == 3)
    gate.touch()
    run("wait-all", timeout=60)

    names = {f"w{number}" for number in range(16)}
    assert most_at_once(notes) == 3
    assert sorted(task.order("agent.queued")) == sorted(names)
    assert sorted(task.order("agent.started")) == sorted(names)
    assert statuses() == dict.fromkeys(names, "completed")
    wait_until(task.roster, accept=lambda rows: rows == dict.fromkeys(names, "completed"), what="the roster to follow")


def test_spawners_that_do_not_queue_never_pass_the_cap_and_each_is_told(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=3)
    gate = tmp_path / "gate"
    spawners = [
        start("spawn", "--name", f"w{number}", "--", *worker("exits", 0, "--after-file", gate)) for number in range(8)
    ]
    codes = [spawner.wait(timeout=60) for spawner in spawners]
    assert sorted(codes) == [0] * 3 + [5] * 5
    started = [f"w{number}" for number, code in enumerate(codes) if code == 0]
    assert sorted(task.order("agent.queued")) == started
    assert sorted(path.name for path in (task.path / "agents").iterdir()) == started
    gate.touch()
    task.ended(*started)


@pytest.mark.slow
def test_a_raised_cap_is_used_by_the_next_command_that_waits(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    gate = tmp_path / "gate"
    spawn_batch([held(gate, name) for name in ("a", "b", "c")])
    assert task.order("agent.started") == ["a"]

    task.set_cap(3)
    run("wait-any", "--timeout-seconds", "0.01", check=False)

    task.has("agent.started", "b")
    task.has("agent.started", "c")
    gate.touch()
    task.ended("a", "b", "c")


@pytest.mark.slow
def test_a_cap_raised_while_a_wait_sleeps_is_seen_by_it(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    gate = tmp_path / "gate"
    spawn_batch([held(gate, name) for name in ("a", "b")])
    waiter = start("wait-all")
    task.set_cap(2)
    task.has("agent.started", "b")
    gate.touch()
    assert waiter.wait(timeout=30) == 0


def test_a_lowered_cap_ends_nobody_and_starts_nobody_until_there_is_room(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=3)
    spawn_batch([held(tmp_path / name, name) for name in ("a", "b", "c", "d")])
    assert sorted(task.order("agent.started")) == ["a", "b", "c"]

    task.set_cap(1)
    refused = spawn(["true"], name="e", check=False)
    assert refused.code == 5
    assert "3 of 1 slots are in use: a, b, c" in refused.err
    for name in ("a", "b"):
        (tmp_path / name).touch()
        task.ended(name)
        run("wait-any", "--timeout-seconds", "0", "--consumer", name, check=False)
        assert "d" not in task.order("agent.started")

    (tmp_path / "c").touch()
    task.has("agent.started", "d")
    (tmp_path / "d").touch()
    task.ended("c", "d")


def test_an_unsupervised_worker_keeps_its_slot_until_it_is_gone(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    gate = tmp_path / "gate"
    spawn_batch([held(gate, "a"), {"name": "b", "argv": ["true"]}])
    kill(task.shim_of("a"))

    assert row("a")["health"] == "unsupervised"
    assert spawn(["true"], check=False).code == 5
    run("wait-any", "--timeout-seconds", "0", check=False)
    assert task.order("agent.started") == ["a"]

    pid = row("a")["pid"]
    gate.touch()
    wait_until(lambda: is_alive(pid), accept=lambda alive: not alive, what="a to end")
    run("wait", "b")
    assert (row("a")["status"], row("a")["reason"]) == ("failed", "lost")


@pytest.mark.slow
def test_a_slot_is_free_for_who_was_told_that_its_worker_ended(root: Path) -> None:
    new_task(cap=1)
    for number in range(3):
        run("spawn", "--wait", "--name", f"w{number}", "--", "true")


@pytest.mark.parametrize("slots", [*alike(["1"]), ["7", "x", "1.guest", "1.loan", "t1.a.loan", "99999999999"]])
def test_a_strange_file_among_the_slots_is_no_slot_more_or_less(root: Path, tmp_path: Path, slots: list[str]) -> None:
    task = new_task(cap=1)
    for name in slots:
        (task.path / "slots" / name).write_bytes(b"\xff{")
    gate = tmp_path / "gate"
    spawn_batch([held(gate, "a"), held(gate, "b")])
    assert task.order("agent.started") == ["a"]
    gate.touch()
    task.ended("a", "b")


@pytest.mark.slow
def test_an_unsupervised_worker_that_is_being_cancelled_keeps_its_slot(root: Path, tmp_path: Path) -> None:
    """Its undertaker guards it and holds no slot, but the worker counts as long as it lives."""
    task = new_task(cap=1)
    spawn(worker("stubborn", tmp_path / "pids"), name="a")
    wait_for_json(tmp_path / "pids")
    kill(task.shim_of("a"))
    run("cancel", "a", "--grace-seconds", "30", "--no-wait")
    wait_until(lambda: row("a")["health"], accept=lambda health: health == "supervised", what="its undertaker")
    assert spawn(["true"], check=False).code == 5
    run("cancel", "a", "--grace-seconds", "0")
    wait_until(lambda: spawn(["true"], name="b", check=False).code, accept=lambda code: code == 0)
    run("wait", "b")


def test_a_huge_cap_costs_no_descriptors(root: Path) -> None:
    task = new_task(cap=10_000)
    few = start_argv(["sh", "-c", 'ulimit -n 64; exec "$@" spawn --wait -- true', "sh", *PROGRAM])
    out, err = few.communicate(timeout=30)
    assert few.returncode == 0, (out, err)
    assert len(list((task.path / "slots").iterdir())) < 5
