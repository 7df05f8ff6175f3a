"""At stake: whoever does what agentctl advises is helped by it, in the very state in which it was advised."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.advice import follow
from tests.agent_steps import define
from tests.fakessh import FAR_END, put_ssh
from tests.life import set_config, state_of
from tests.steps import Task, kill, new_task, row, spawn, spawn_batch, statuses
from tests.support import is_alive, run, start, wait_until, worker

pytestmark = pytest.mark.slow


def other_task() -> Task:
    """Return a task that is not the chosen one."""
    chosen = new_task()
    run("new", "Another", "--id", "other", "--no-use")
    return Task(chosen.path.parent / "other")


# -- what has not ended, what has ended --------------------------------------------------------------------------------


@pytest.mark.follows("operations/show/further_runs._of_retry: agentctl cancel")
def test_what_has_not_ended_is_cancelled_and_then_retried(root: Path) -> None:
    new_task()
    spawn(worker("sleeps", 60), name="a")

    follow(run("retry", "a", check=False), "agentctl cancel a")

    assert row("a")["status"] == "cancelled"
    run("retry", "a")
    run("cancel", "--all")


@pytest.mark.follows("interfaces/commands/show/result._code: agentctl wait")
def test_a_result_that_is_not_there_yet_is_waited_for(root: Path, tmp_path: Path) -> None:
    new_task()
    spawn(worker("exits", 0, "--after-file", tmp_path / "gate"), name="a")
    early = run("result", "a", check=False)
    (tmp_path / "gate").touch()

    follow(early, "agentctl wait a")

    assert run("result", "a").code == 0


def test_what_asks_is_answered(root: Path) -> None:
    new_task()
    spawn(worker("asks", "--kind", "confirm", "Go on?"), name="a")
    run("wait-any", "a", "--for", "blocked", "--timeout-seconds", "20")

    listed = follow(run("result", "a", check=False), "agentctl interact list")

    assert "Go on?" in listed.out
    (command,) = (command for command in ways_out("a") if command.startswith("agentctl answer"))
    answering = command.replace("ANSWER", "yes")
    follow(answering, answering)
    run("wait", "a")


# -- in another place --------------------------------------------------------------------------------------------------


def test_advice_is_about_the_task_that_was_named(root: Path) -> None:
    other_task()
    spawn(worker("sleeps", 60), "--task", "other", name="a")
    spawn(worker("sleeps", 60), name="a")

    follow(run("retry", "a", "--task", "other", check=False), "agentctl cancel --task other a")
    assert run("show", "a", "--task", "other", "--json").json["status"] == "cancelled"
    assert row("a")["status"] == "running"

    run("cancel", "a")


def test_advice_is_about_the_root_that_was_named(root: Path, tmp_path: Path) -> None:
    new_task()
    spawn(worker("sleeps", 60), name="a")
    elsewhere = {"AGENTCTL_ROOT": None}

    refused = run("retry", "a", "--root", root, check=False, cwd=tmp_path, env=elsewhere)
    follow(refused, f"agentctl cancel --root {root} a", cwd=tmp_path, env=elsewhere)

    assert row("a")["status"] == "cancelled"
    unknown = run("cancel", "--root", root, check=False, cwd=tmp_path, env=elsewhere)
    assert "cancelled" in follow(unknown, f"agentctl list --root {root}", cwd=tmp_path, env=elsewhere).out


def test_advice_is_about_the_host_that_was_named(root: Path, tmp_path: Path) -> None:
    put_ssh(tmp_path / "bin", f"exec {FAR_END}")
    new_task()
    run("--host", "build", "spawn", "--name", "a", "--", *worker("sleeps", 60))

    follow(run("--host", "build", "retry", "a", check=False), "agentctl --host build cancel a")

    assert row("a")["status"] == "cancelled"


@pytest.mark.follows("operations/start/interruption.interrupted: agentctl cancel")
def test_an_interrupted_spawn_names_what_is_left_as_it_can_be_stopped(root: Path, tmp_path: Path) -> None:
    other_task()
    lines = "".join(json.dumps({"name": f"n{i}", "argv": worker("sleeps", 60)}) + "\n" for i in range(5))
    file = tmp_path / "batch.jsonl"
    file.write_text(lines)
    process = start("spawn", "--task", "other", "--batch", file, "--wait")
    wait_until(lambda: len(run("list", "--task", "other", "--json").json), accept=lambda n: n == 5, what="five")
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=20)

    follow(told, "agentctl cancel n0 n1 n2 n3 n4 --task other")

    assert {one["status"] for one in run("list", "--task", "other", "--json").json} == {"cancelled"}


# -- tasks -------------------------------------------------------------------------------------------------------------


@pytest.mark.follows("operations/where/locating.find_root: agentctl new")
def test_a_root_without_a_chosen_task_gets_one(root: Path) -> None:
    told = run("list", check=False)

    follow(told, 'agentctl new "TITLE"')

    assert run("list").code == 0


@pytest.mark.follows("operations/start/new_task._make_folder: agentctl use")
def test_a_task_of_that_name_is_used(root: Path) -> None:
    other_task()

    follow(run("new", "Again", "--id", "other", check=False), "agentctl use other")

    assert run("spawn", "--json", "--", "true").json["taskId"] == "other"


@pytest.mark.follows("interfaces/commands/start/tasks._made: agentctl spawn-template")
def test_the_workers_of_a_template_are_started(root: Path) -> None:
    told = run("new", "--template", "survey", "--set", "path=.", "--no-use", "--id", "made")

    follow(told, "agentctl spawn-template --task made")

    run("wait-all", "--task", "made")


@pytest.mark.follows("operations/where/ownership.taking_over: agentctl trust")
def test_a_task_of_somebody_else_is_trusted(root: Path) -> None:
    task = new_task()
    for mark in (Path(os.environ["HOME"]) / ".config" / "agentctl" / "own").iterdir():
        mark.unlink()
    refused = run("spawn", "--task", "t1", "--", "true", check=False)
    assert refused.code != 0

    follow(refused, f"agentctl trust {task.path}")

    run("spawn", "--task", "t1", "--wait", "--", "true")


# -- limits and gates --------------------------------------------------------------------------------------------------


def test_at_the_cap_the_queue_takes_it(root: Path) -> None:
    new_task(cap=1)
    spawn(worker("sleeps", 60), name="a")
    refused = spawn(["true"], name="b", check=False)

    assert "--queue" in refused.err
    run("spawn", "--name", "b", "--queue", "--", "true")
    assert statuses() == {"a": "running", "b": "queued"}
    run("cancel", "--all")


@pytest.mark.follows("operations/start/admission.refuse_broken: agentctl doctor --close-breaker")
def test_an_open_breaker_is_closed(root: Path) -> None:
    task = new_task()
    set_config(task, breakerFailures=2, breakerCooldownSeconds=60)
    define(root, "weak", "exit 1")
    for name in ("x", "y"):
        run("spawn", "--agent", "weak", "--name", name, "--wait", "do", check=False)
    refused = run("spawn", "--agent", "weak", "do", check=False)
    assert refused.code != 0, refused

    follow(refused, "agentctl doctor --close-breaker weak")

    assert run("spawn", "--agent", "weak", "do").code == 0
    run("wait-all", check=False)


def test_settings_that_others_can_write_are_closed_to_them(root: Path) -> None:
    new_task()
    file = Path(os.environ["HOME"]) / ".config" / "agentctl" / "config.yaml"
    file.write_text("config: {permissions: own}\n", encoding="utf-8")
    file.chmod(0o666)

    follow(run("new", "Another", check=False), f"chmod go-w {file}")

    run("new", "Another")


# -- doctor ------------------------------------------------------------------------------------------------------------


@pytest.mark.follows("operations/doctor/examining._agent_files: agentctl doctor --fix")
@pytest.mark.parametrize("name", ["spec.json", "cancel.json", "exit.json"])
def test_a_damaged_file_is_set_aside(root: Path, name: str) -> None:
    task = new_task()
    run("spawn", "--name", "a", "--wait", "--", "true")
    (task.agent("a") / name).write_bytes(b"{")
    told = run("doctor", check=False)

    follow(told, "agentctl doctor --fix")

    assert "error" not in run("doctor").out


@pytest.mark.follows("operations/doctor/examining._conditions: agentctl cancel")
def test_an_unsupervised_worker_is_cancelled_in_whatever_task_it_is(root: Path) -> None:
    task = other_task()
    spawn(worker("sleeps", 60), "--task", "other", name="a")
    pid = run("show", "a", "--task", "other", "--json").json["pid"]
    kill(task.shim_of("a"))
    told = run("doctor", check=False)

    follow(told, "agentctl cancel a --task other")

    wait_until(lambda: is_alive(pid), accept=lambda alive: not alive, what="its end")


@pytest.mark.follows("operations/where/odd_files._deaf: kill -CONT")
def test_a_shim_that_is_stopped_goes_on(root: Path) -> None:
    task = new_task()
    spawn(worker("sleeps", 60), name="a")
    shim = task.shim_of("a")
    os.kill(shim, signal.SIGSTOP)
    try:
        told = run("doctor", check=False)
        follow(told, f"kill -CONT {shim}")
    finally:
        os.kill(shim, signal.SIGCONT)
    assert state_of(shim) != "T"
    run("cancel", "a")


@pytest.mark.follows("operations/doctor/examining._standstill: agentctl resume --lost")
def test_a_queue_that_lost_its_environment_gets_another(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    spawn(worker("exits", 0, "--after-file", tmp_path / "gate"), name="a")
    run("spawn", "--name", "b", "--queue", "--", "true")
    for blob in (tmp_path / "run" / "agentctl").iterdir():
        blob.unlink()
    told = run("doctor", check=False)

    follow(told, "agentctl resume --lost")

    (tmp_path / "gate").touch()
    run("wait-all")
    assert statuses() == {"a": "completed", "b": "completed"}
    assert task.tickets() == []


# -- why ---------------------------------------------------------------------------------------------------------------


def ways_out(name: str) -> dict[str, str]:
    """Return what would change a worker's state, by the command."""
    return {one["command"]: one["text"] for one in run("why", name, "--json").json["waysOut"] if one["command"]}


@pytest.mark.parametrize("argv", [["true"], ["false"]], ids=["completed", "failed"])
def test_each_way_out_of_an_end_is_accepted(root: Path, argv: list[str]) -> None:
    new_task()
    spawn(argv, name="a", check=False)
    run("wait", "a", check=False)

    for command in ways_out("a"):
        done = follow(command, command, check=False)
        assert not done.err.startswith("error"), done
    run("wait-all", check=False)


@pytest.mark.follows("operations/show/end_reasons._ways: agentctl retry")
def test_what_was_awaited_in_vain_is_proposed_with_the_work_that_waited(root: Path, tmp_path: Path) -> None:
    new_task()
    made = tmp_path / "made"
    spawn_batch(
        [
            {"name": "first", "argv": ["test", "-e", str(made)]},
            {"name": "then", "argv": ["cat", str(made)], "after": ["first"]},
        ]
    )
    run("wait-all", check=False)
    assert row("then")["reason"] == "dependency"
    commands = [command for command in ways_out("then") if "retry" in command]
    assert commands == ["agentctl retry first then"]

    made.write_text("it is there", encoding="utf-8")
    follow(commands[0], commands[0])
    run("wait-all")

    assert {"first-2": "completed", "then-2": "completed"}.items() <= statuses().items()


def test_each_way_out_of_work_is_accepted(root: Path, tmp_path: Path) -> None:
    new_task(cap=1)
    spawn(worker("sleeps", 60), name="a")
    run("spawn", "--name", "q", "--queue", "--", "true")

    for name in ("q", "a"):
        for command in ways_out(name):
            if " wait" not in command:
                done = follow(command, command, check=False)
                assert not done.err.startswith("error"), done
    run("cancel", "--all", check=False)
