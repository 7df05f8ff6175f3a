"""At stake: whatever fails of Slurm, of a node or of the head, a worker runs once, and what is told of it is true."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.life import Known, is_settled, known, living, members, passes
from tests.placed import ask_engine, counting, is_whole, launch_of, placement, post_of, script, stand_in_of
from tests.slurm.cluster import Cluster
from tests.slurm.conftest import use
from tests.slurm.on_nodes import POLL_S, SILENCE_S, SLURM, fill, job_of, jobs_of, nothing_is_left, on, says
from tests.steps import Task, kill, new_task, row, spawn, statuses
from tests.support import run, start, wait_until, worker

#: Until Slurm takes a node that is silent for dead, and agentctl its worker for lost.
NODE_FAILS_S = 100.0
#: Longer than the ten seconds between two signs of life of a node.
LONG_SILENCE_S = 15


def once(runs: Path, then: str) -> list[str]:
    """Return a worker that notes each run of its program in a file, and its end if it comes that far."""
    return script(f"echo begun >> {runs}; {then}; echo ended >> {runs}")


def until(gate: Path) -> str:
    """Return a command that waits for a file, but not for ever."""
    return f"timeout 100 sh -c 'until test -e {gate}; do sleep 0.05; done'"


def has_begun(task: Task, name: str, runs: Path) -> None:
    wait_until(runs.exists, what=f"{name} to run")
    task.has("agent.placed", name)


def ended_once(task: Task, name: str, runs: Path, timeout_s: float = 60) -> dict[str, Any]:
    """Wait for the end of a worker; check that its program ran once, and to its end if it is told completed."""
    wait_until(
        lambda: task.events("agent.completed", "agent.failed", "agent.cancelled", of=name), timeout_s, what="its end"
    )
    ended = is_settled(task, name)
    done = ["begun", "ended"] if ended["status"] == "completed" else ["begun"]
    assert runs.read_text().split()[: len(done)] == done
    assert runs.read_text().count("begun") == 1
    return ended


# -- the controller ----------------------------------------------------------------------------------------------------


def test_an_orderly_restart_of_the_controller_is_not_seen(nodes: Cluster, tmp_path: Path) -> None:
    task, runs, gate = new_task(), tmp_path / "runs", tmp_path / "gate"
    spawn(once(runs, until(gate)), *SLURM, name="a")
    has_begun(task, "a", runs)
    nodes.stop_controller(signal.SIGTERM)
    nodes.start_controller()
    gate.touch()
    assert ended_once(task, "a", runs)["status"] == "completed"


@pytest.mark.timeout(240)
@pytest.mark.parametrize("after_s", [0, 0.5, 1, 2, 3, 4, 6, 8])
def test_a_controller_that_is_killed_soon_after_the_start_lets_it_run_once(
    nodes: Cluster, tmp_path: Path, after_s: float
) -> None:
    """It has lost what it knew of the job: it may end the job, start it again, or forget it."""
    task, runs = new_task(), tmp_path / "runs"
    spawn(once(runs, "sleep 12"), *SLURM, name="a")
    job_of(nodes, task, "a", "RUNNING", "COMPLETED")
    passes(after_s)
    nodes.stop_controller()
    nodes.start_controller()
    ended_once(task, "a", runs, 150)
    nothing_is_left(nodes)
    assert runs.read_text().count("begun") == 1, "and it is not started again later"


def test_one_that_is_started_while_the_controller_is_down_runs_when_it_is_back(nodes: Cluster, tmp_path: Path) -> None:
    task, runs = new_task(), tmp_path / "runs"
    nodes.stop_controller(signal.SIGTERM)
    spawn(once(runs, "true"), *SLURM, name="a")
    told = wait_until(lambda: placement("a"), 60, what="the problem to be shown", accept=lambda told: told["problem"])
    assert "controller" in told["problem"]
    assert "slurm has not taken it yet" in run("why", "a").out
    assert statuses() == {"a": "queued"}
    nodes.start_controller()
    assert ended_once(task, "a", runs)["status"] == "completed"


def test_while_the_controller_is_down_it_is_unknown_and_never_lost_and_its_end_is_told(
    nodes: Cluster, tmp_path: Path
) -> None:
    task, runs, gate = new_task(), tmp_path / "runs", tmp_path / "gate"
    spawn(once(runs, until(gate)), *SLURM, name="a")
    has_begun(task, "a", runs)
    says("a", state="running")
    nodes.stop_controller(signal.SIGTERM)
    says("a", state="unknown", timeout_s=60)
    assert "slurm does not answer" in run("why", "a").out
    os.kill(post_of(task, "a").pid, signal.SIGSTOP)  # Its node is silent, too.
    passes(SILENCE_S + 3 * POLL_S)
    assert statuses() == {"a": "running"}
    os.kill(post_of(task, "a").pid, signal.SIGCONT)
    gate.touch()
    assert ended_once(task, "a", runs)["status"] == "completed"


def test_a_cancel_takes_effect_while_the_controller_is_down(nodes: Cluster, tmp_path: Path) -> None:
    task = new_task()
    spawn(worker("stubborn", tmp_path / "pids"), *SLURM, "--grace-seconds", "0.2", name="a")
    tree = members(tmp_path / "pids")
    task.has("agent.placed", "a")
    nodes.stop_controller(signal.SIGTERM)
    assert run("cancel", "a", "--json").json["cancelled"] is True
    assert living(tree.values()) == []
    assert is_settled(task, "a")["status"] == "cancelled"


def test_a_cancel_in_the_queue_while_the_controller_is_down_lets_it_never_begin(nodes: Cluster, tmp_path: Path) -> None:
    task, runs = new_task(), tmp_path / "runs"
    blocker = fill(nodes)
    spawn(once(runs, "true"), *SLURM, name="a")
    job_of(nodes, task, "a", "PENDING")
    nodes.stop_controller(signal.SIGTERM)
    assert run("cancel", "a", "--json").json["cancelled"] is True
    assert is_settled(task, "a")["status"] == "cancelled"
    nodes.start_controller()
    nodes.run("scancel", blocker)
    job_of(nodes, task, "a", "CANCELLED", "FAILED")
    assert not runs.exists()


# -- nodes -------------------------------------------------------------------------------------------------------------


def test_it_outlives_the_slurmd_of_its_node(nodes: Cluster, tmp_path: Path) -> None:
    task, runs, gate = new_task(), tmp_path / "runs", tmp_path / "gate"
    spawn(once(runs, until(gate)), *on("n1"), name="a")
    has_begun(task, "a", runs)
    nodes.stop_node("n1")
    nodes.start_node("n1")
    assert job_of(nodes, task, "a", "RUNNING").node == "n1"
    gate.touch()
    assert ended_once(task, "a", runs)["status"] == "completed"
    job_of(nodes, task, "a", "COMPLETED")


def test_its_end_is_told_while_the_slurmd_of_its_node_is_down(nodes: Cluster, tmp_path: Path) -> None:
    task, runs, gate = new_task(), tmp_path / "runs", tmp_path / "gate"
    spawn(once(runs, until(gate)), *on("n1"), name="a")
    has_begun(task, "a", runs)
    nodes.stop_node("n1")
    gate.touch()
    assert ended_once(task, "a", runs)["status"] == "completed"
    nodes.start_node("n1")


@pytest.mark.timeout(240)
def test_a_node_that_is_lost_loses_its_worker_and_no_other(nodes: Cluster, tmp_path: Path) -> None:
    task, gate = new_task(), tmp_path / "gate"
    for name, node in (("a", "n1"), ("b", "n2")):
        spawn(once(tmp_path / name, until(gate)), *on(node), name=name)
    for name in ("a", "b"):
        has_begun(task, name, tmp_path / name)
    nodes.lose_node("n1")
    passes(SILENCE_S + 2 * POLL_S)
    if "NODE_FAIL" not in {job.state for job in jobs_of(nodes, task, "a")}:
        assert statuses() == {"a": "running", "b": "running"}, "its silence alone does not lose it"
    ended = ended_once(task, "a", tmp_path / "a", NODE_FAILS_S)
    assert (ended["status"], ended["reason"]) == ("failed", "lost")
    assert ended["message"] == "slurm says NODE_FAIL, and n1 is silent; the exit was not seen"
    assert "NODE_FAIL" in run("why", "a", check=False).out
    assert statuses() == {"a": "failed", "b": "running"}
    gate.touch()
    assert ended_once(task, "b", tmp_path / "b")["status"] == "completed"


@pytest.mark.timeout(240)
def test_a_node_that_is_cut_off_from_slurm_alone_tells_the_end_of_its_worker(parted: Cluster, tmp_path: Path) -> None:
    """It still shares the file system with the head. Slurm takes the job for failed; nobody else has to."""
    ask_engine("slurm", pollSeconds=POLL_S, silenceSeconds=LONG_SILENCE_S)
    task, runs, gate = new_task(), tmp_path / "runs", tmp_path / "gate"
    spawn(once(runs, until(gate)), *on("n2"), name="a")
    has_begun(task, "a", runs)
    parted.partition("n2")
    says("a", NODE_FAILS_S, state="dropped", words="NODE_FAIL")
    passes(LONG_SILENCE_S + 3 * POLL_S)
    assert statuses() == {"a": "running"}
    assert "n2 has reported no end" in run("why", "a").out
    gate.touch()
    assert ended_once(task, "a", runs)["status"] == "completed"


@pytest.mark.timeout(240)
def test_an_end_that_is_seen_only_after_slurm_has_given_the_job_up_counts(parted: Cluster, tmp_path: Path) -> None:
    ask_engine("slurm", pollSeconds=POLL_S, silenceSeconds=NODE_FAILS_S)
    task, runs, gate = new_task(), tmp_path / "runs", tmp_path / "gate"
    spawn(once(runs, until(gate)), *on("n2"), name="a")
    has_begun(task, "a", runs)
    os.kill(post_of(task, "a").pid, signal.SIGSTOP)
    parted.partition("n2")
    gate.touch()
    says("a", NODE_FAILS_S, state="dropped", words="NODE_FAIL")
    assert not (launch_of(task, "a") / "ended.json").exists()
    os.kill(post_of(task, "a").pid, signal.SIGCONT)
    assert ended_once(task, "a", runs)["status"] == "completed"


@pytest.mark.timeout(240)
def test_one_that_is_lost_with_its_node_and_comes_back_ends_late_and_that_is_told(
    parted: Cluster, tmp_path: Path
) -> None:
    task, runs = new_task(), tmp_path / "runs"
    spawn(once(runs, "exec sleep 100"), *on("n2"), name="a")
    has_begun(task, "a", runs)
    post = post_of(task, "a")
    os.kill(post.pid, signal.SIGSTOP)
    parted.partition("n2")
    ended = ended_once(task, "a", runs, NODE_FAILS_S)
    assert (ended["status"], ended["reason"]) == ("failed", "lost")
    assert living([post]) == [post]
    parted.rejoin("n2")  # Slurm lets it go on, and ends what it has given up.
    wait_until((launch_of(task, "a") / "ended.json").exists, 60, what="the end that comes late")
    found = row("a")
    assert (found["status"], found["reason"], found["placement"]["lateExit"]) == ("failed", "lost", "cancelled")
    run("list")
    assert len(task.events("agent.late_exit")) == 1


# -- the head ----------------------------------------------------------------------------------------------------------


def test_a_stand_in_that_is_killed_is_replaced_and_nothing_is_lost_or_doubled(nodes: Cluster, tmp_path: Path) -> None:
    task = new_task()
    spawn(counting(tmp_path / "gate"), *SLURM, name="a")
    task.has("agent.placed", "a")
    before = stand_in_of(task, "a")
    kill(before)
    wait_until(lambda: stand_in_of(task, "a") != before, what="another stand-in")
    (tmp_path / "gate").touch()
    run("wait", "a", check=False)
    assert (is_settled(task, "a")["exitCode"], is_whole(run("logs", "a").out)) == (4, True)
    assert len(jobs_of(nodes, task, "a")) == 1


def test_a_head_that_was_killed_is_replaced_by_whoever_waits(nodes: Cluster, tmp_path: Path) -> None:
    task = new_task()
    spawn(counting(tmp_path / "gate"), *SLURM, name="a")
    task.has("agent.placed", "a")
    kill(task.shim_of("a"), stand_in_of(task, "a"))
    assert (row("a")["status"], row("a")["health"]) == ("running", "unfollowed")
    waiting = start("wait", "a", "--json")
    task.has("agent.adopted", "a")
    (tmp_path / "gate").touch()
    waiting.communicate()
    assert (is_settled(task, "a")["exitCode"], is_whole(run("logs", "a").out)) == (4, True)


def killing_sbatch(folder: Path, when: str) -> Path:
    """Make an `sbatch` that kills who calls it, once: before or after the job is submitted; return its folder."""
    real, programs = shutil.which("sbatch"), folder / "programs"
    programs.mkdir()
    submits = f'{real} "$@" > {folder}/said' if when == "after" else ":"
    lines = ["#!/bin/sh", f'mkdir {folder}/killed 2>/dev/null || exec {real} "$@"', submits, "kill -KILL $PPID", ""]
    (programs / "sbatch").write_text("\n".join(lines), encoding="utf-8")
    (programs / "sbatch").chmod(0o755)
    return programs


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_head_that_is_killed_around_the_submission_has_it_run_once(
    nodes: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    task, runs = new_task(), tmp_path / "runs"
    blocker = fill(nodes)
    monkeypatch.setenv("PATH", f"{killing_sbatch(tmp_path, when)}:{os.environ['PATH']}")
    spawn(once(runs, "sleep 2"), *SLURM, name="a")
    has_jobs(nodes, task, ["PENDING"] if when == "before" else ["PENDING", "PENDING"])
    assert (tmp_path / "killed").exists()
    nodes.run("scancel", blocker)
    assert ended_once(task, "a", runs)["status"] == "completed"
    has_jobs(nodes, task, ["COMPLETED"] if when == "before" else ["COMPLETED", "FAILED"])


def has_jobs(cluster: Cluster, task: Task, states: list[str]) -> None:
    """Wait until the launch has jobs in exactly these states."""
    wait_until(
        lambda: sorted(job.state for job in jobs_of(cluster, task, "a")),
        what=f"its jobs to be {states}",
        accept=lambda found: found == states,
    )


# -- disks -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte; nodes that come up later see it too."""
    place = tmp_path / "small"
    place.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs", place], check=True)
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


def fill_up(place: Path) -> Path:
    """Fill a file system to the last byte; return the file that does."""
    filler = place / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError as error:
            assert error.errno == errno.ENOSPC  # noqa: PT017 - anything else is a mistake of this test.
    return filler


def test_a_full_disk_of_the_launch_delays_the_end_and_loses_nothing(
    root: Path, small: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Cluster(tmp_path_factory.mktemp("cluster"), 1) as cluster:
        for _ in use(cluster, monkeypatch):
            ends_on_full_disk(small, tmp_path)


def ends_on_full_disk(small: Path, tmp_path: Path) -> None:
    ask_engine("slurm", pollSeconds=POLL_S, silenceSeconds=LONG_SILENCE_S, folder=str(small))
    task, runs, gate = new_task(), tmp_path / "runs", tmp_path / "gate"
    spawn(once(runs, until(gate)), *SLURM, name="a")
    has_begun(task, "a", runs)
    assert launch_of(task, "a").parent.parent == small
    process = worker_there(task)
    filler = fill_up(small)
    gate.touch()
    wait_until(lambda: living([process]), accept=lambda left: not left, what="it to end there")
    passes(2 * POLL_S)
    assert statuses() == {"a": "running"}, "its end cannot be written yet"
    filler.unlink()
    assert ended_once(task, "a", runs)["status"] == "completed"


def worker_there(task: Task) -> Known:
    """Return the worker's own process on its node."""
    (found,) = launch_of(task, "a").glob("node/tasks/*/agents/a/worker.json")
    return known(json.loads(found.read_bytes())["pid"])
