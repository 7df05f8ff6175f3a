"""At stake: a wait loses no end, gives each end to exactly one of a consumer's waiters, and always returns."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.steps import held, kill, new_task, row, spawn, spawn_batch, statuses
from tests.support import PROGRAM, REPOSITORY, alike, run, start, start_argv, wait_until, worker


def next_end(*options: str) -> str:
    """Run `wait-any`, and return what it prints."""
    return run("wait-any", *options).out.strip()


def test_ends_are_given_in_their_order_each_once_to_each_consumer(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn_batch([held(tmp_path / name, name) for name in "abc"])
    for name in "cab":
        (tmp_path / name).touch()
        task.ended(name)
    assert [next_end() for _ in range(3)] == ["c completed", "a completed", "b completed"]
    assert [next_end("--consumer", "other") for _ in range(3)] == ["c completed", "a completed", "b completed"]
    for consumer in ("default", "other"):
        empty = run("wait-any", "--consumer", consumer, check=False)
        assert empty.code == 6
        assert "nothing is left to wait for" in empty.err


NOTED = """
import os, sys
from agentctl.interfaces.cli.app import main
def noted(name):
    real = getattr(os, name)
    def call(target, *more):
        path = os.readlink(f"/proc/self/fd/{target}") if isinstance(target, int) else more[0]
        print(name, os.path.basename(path), file=sys.stderr)
        return real(target, *more)
    setattr(os, name, call)
noted("fdatasync"), noted("rename")
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_an_end_is_on_disk_before_it_counts_as_given(root: Path) -> None:
    """If a power cut removed the end from the log, another end would get its seq, and would never be given out."""
    new_task()
    spawn(["true"], "--wait", name="a")
    done = subprocess.run(
        [sys.executable, "-c", NOTED, "wait-any"], capture_output=True, text=True, check=True, cwd=REPOSITORY
    )
    assert done.stdout == "a completed\n"
    steps = [line for line in done.stderr.splitlines() if line in ("fdatasync events.jsonl", "rename default.json")]
    assert steps[-2:] == ["fdatasync events.jsonl", "rename default.json"], done.stderr


def test_an_end_before_the_wait_and_one_during_it_are_both_given(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn_batch([{"name": "early", "argv": ["false"]}, held(tmp_path / "gate", "late")])
    task.ended("early")
    assert run("wait-any", "--json").json == {
        "agentInstance": "early", "status": "failed", "reason": "exit_code", "exitCode": 1, "signal": None,
    }  # fmt: skip
    waiter = start("wait-any")
    (tmp_path / "gate").touch()
    assert waiter.communicate(timeout=30)[0] == "late completed\n"


def test_the_timeout_of_a_wait_kills_nobody(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn_batch([held(tmp_path / "gate", "a")])
    late = run("wait-any", "--timeout-seconds", "0.05", check=False)
    assert (late.code, late.out) == (4, "")
    assert statuses() == {"a": "running"}
    assert task.events("agent.cancel_requested") == []
    (tmp_path / "gate").touch()
    assert next_end() == "a completed"


def test_the_task_has_the_time_limit_of_a_wait_without_one(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn_batch([held(tmp_path / "gate", "a")])
    text = (task.path / "task.yaml").read_text()
    (task.path / "task.yaml").write_text(text.replace("config: {", "config: {timeoutSeconds: 0.05, "))
    assert run("wait-any", check=False).code == 4
    (tmp_path / "gate").touch()
    task.ended("a")


def test_nothing_to_wait_for_is_told_at_once(root: Path) -> None:
    new_task()
    nobody = run("wait-any", check=False)
    assert (nobody.code, nobody.out) == (6, "")
    assert "there is no worker to wait for" in nobody.err
    assert run("wait-any", "nobody", check=False).code == 3


def test_for_gives_some_kinds_and_leaves_the_others(root: Path) -> None:
    task = new_task()
    spawn_batch([{"name": "bad", "argv": ["false"]}])
    task.ended("bad")
    spawn_batch([{"name": "good", "argv": ["true"]}])
    task.ended("good")
    assert next_end("--for", "completed") == "good completed"
    assert run("wait-any", "--for", "completed,cancelled", check=False).code == 6
    assert next_end() == "bad failed (exit_code 1)"
    assert run("wait-any", "--for", "running", check=False).code == 2


def test_named_workers_are_given_and_others_left(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn_batch([{"name": name, "argv": ["true"]} for name in "ab"])
    task.ended("a", "b")
    assert next_end("b") == "b completed"
    assert run("wait-any", "b", check=False).code == 6
    assert next_end() == "a completed"


def test_waiters_of_one_consumer_share_and_two_consumers_both_get_all(root: Path, tmp_path: Path) -> None:
    new_task(cap=8)
    names = [f"w{number}" for number in range(4)]
    spawn_batch([held(tmp_path / "gate", name) for name in names])
    waiters = [start("wait-any", "--consumer", consumer) for consumer in ("one", "one", "one", "one", "two")]
    (tmp_path / "gate").touch()
    given = [waiter.communicate(timeout=30)[0].strip() for waiter in waiters]
    assert sorted(given[:4]) == [f"{name} completed" for name in names]
    assert sorted([given[4], *(next_end("--consumer", "two") for _ in range(3))]) == sorted(given[:4])


def test_who_is_slow_to_print_takes_nothing_back_from_those_who_were_faster(root: Path, tmp_path: Path) -> None:
    """It read the log before the other ends were in it: its mark must not undo the marks of others."""
    task = new_task()
    spawn_batch([{"name": "a", "argv": ["true"]}, held(tmp_path / "gate", "b")])
    task.ended("a")
    slow = subprocess.Popen(
        [*PROGRAM[:1], "-c", SLOW, str(tmp_path / "printing"), str(tmp_path / "go-on")],
        stdout=subprocess.PIPE,
        text=True,
    )
    wait_until((tmp_path / "printing").exists)
    (tmp_path / "gate").touch()
    assert next_end() == "b completed"
    (tmp_path / "go-on").touch()
    assert slow.communicate(timeout=30)[0] == "a\n"
    assert run("wait-any", check=False).code == 6


SLOW = """
import os, sys, time
from agentctl.operations.where.locating import find_task
from agentctl.operations.wait.waiting import next_end
with next_end(find_task(None), [], timeout_s=30, consumer=None, kinds=None) as end:
    open(sys.argv[1], "w").close()
    while not os.path.exists(sys.argv[2]): time.sleep(0.01)
    print(end.agent_instance, flush=True)
"""


@pytest.mark.parametrize(
    ("point", "printed"), [("wait.after-claim", ""), *alike(("wait.after-print", "a completed\n"))]
)
def test_what_a_killed_waiter_had_claimed_is_given_again(root: Path, point: str, printed: str) -> None:
    new_task()
    run("spawn", "--wait", "--name", "a", "--", "true")
    killed = run("wait-any", env={"AGENTCTL_FAILPOINT": point}, check=False)
    assert (killed.code, killed.out) == (-9, printed)
    assert run("wait-any", "--json").json["redelivered"] is True
    assert run("wait-any", check=False).code == 6


def test_what_could_not_be_printed_is_given_again(root: Path) -> None:
    new_task()
    run("spawn", "--wait", "--name", "a", "--", "true")
    with open("/dev/full", "w") as full:
        refused = start("wait-any", stdout=full.fileno())
        assert refused.wait(timeout=30) != 0
    assert next_end() == "a completed [given again]"


def test_a_waiter_behind_a_stopped_one_gets_what_that_one_had_claimed(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn_batch([{"name": "a", "argv": ["true"]}])
    task.ended("a")
    argv = [*PROGRAM[:1], "-c", SLOW, str(tmp_path / "printing"), str(tmp_path / "never")]
    slow = subprocess.Popen(argv, stdout=subprocess.PIPE)
    wait_until((tmp_path / "printing").exists)
    second = start("wait-any")
    assert run("wait-any", "--timeout-seconds", "0.1", check=False).code == 4
    slow.kill()
    slow.communicate()
    assert second.communicate(timeout=30)[0] == "a completed [given again]\n"


def test_a_wait_returns_when_shims_and_workers_are_all_killed(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn_batch([held(tmp_path / "never", name) for name in "abc"])
    waiters = [start("wait-any", "--json", "--consumer", name) for name in "xy"]
    everybody = start("wait-all", "--json")
    pids = [row(name)["pid"] for name in "abc"]
    kill(*(task.shim_of(name) for name in "abc"), *pids)
    for waiter in waiters:
        told = json.loads(waiter.communicate(timeout=30)[0])
        assert told["status"] == "failed"
        assert told["reason"] in ("lost", "signal")
    assert {end["status"] for end in json.loads(everybody.communicate(timeout=30)[0])} == {"failed"}
    assert everybody.returncode == 7


def test_a_killed_shim_alone_does_not_end_the_wait_for_its_worker(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn_batch([held(tmp_path / "gate", "a")])
    waiter = start("wait-any")
    kill(task.shim_of("a"))
    assert run("wait-any", "--timeout-seconds", "0.1", check=False).code == 4
    assert row("a")["health"] == "unsupervised"
    (tmp_path / "gate").touch()
    out, _ = waiter.communicate(timeout=30)
    assert out == "a completed\n" or out.startswith("a failed (lost): ")


def in_a_user_namespace(script: str) -> list[str]:
    """Return the argv of a shell in a new user namespace, with its own limits; skip the test if that is not allowed."""
    argv = ["unshare", "-Ur", "sh", "-c", script, "sh", *PROGRAM]
    if subprocess.run(["unshare", "-Ur", "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip("no user namespace available here")
    return argv


def test_without_an_inotify_instance_a_wait_still_wakes(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn_batch([held(tmp_path / "gate", "a")])
    script = 'echo 0 > /proc/sys/user/max_inotify_instances && exec "$@" wait-any'
    waiter = start_argv(in_a_user_namespace(script), cwd=REPOSITORY)
    (tmp_path / "gate").touch()
    out, err = waiter.communicate(timeout=30)
    assert (waiter.returncode, out) == (0, "a completed\n"), err
    assert task.events("agent.completed")


@pytest.mark.slow
def test_with_hardly_a_descriptor_left_a_wait_still_wakes(root: Path, tmp_path: Path) -> None:
    """The wait would watch each live worker with one descriptor, but must keep some for reading the log."""
    task = new_task(cap=26)
    names = [f"w{number}" for number in range(26)]
    spawn_batch([{"name": name, "argv": ["sleep", "100"]} for name in names])
    waiter = start_argv(["sh", "-c", 'ulimit -n 24; exec "$@" wait-any', "sh", *PROGRAM])
    run("cancel", "w7")
    out, err = waiter.communicate(timeout=30)
    assert (waiter.returncode, out) == (0, "w7 cancelled\n"), err
    kill(task.shim_of("w8"), row("w8")["pid"])
    last = start_argv(["sh", "-c", 'ulimit -n 24; exec "$@" wait-any w8', "sh", *PROGRAM])
    out, err = last.communicate(timeout=30)
    assert (last.returncode, out.partition(":")[0]) == (0, "w8 failed (lost)"), err
    run("cancel", "--all")


def test_a_bad_consumer_is_refused(root: Path) -> None:
    new_task()
    spawn(worker("exits", 0), name="a")
    assert run("wait-any", "--consumer", "../x", check=False).code == 2
    assert next_end() == "a completed"
