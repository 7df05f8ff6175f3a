"""At stake: whatever dies in mid-wait, workers go on, no end is lost, and none is given twice without saying so."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from tests.hosts.machines import Machine
from tests.processes import children_of, name_of
from tests.support import run, start, wait_until, worker

Both = tuple[Machine, Machine]


def ssh_below(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """Return the ssh processes that a command of ours has started."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return [one for one in children_of(psutil.Process(process.pid), recursive=True) if name_of(one) == "ssh"]
    return []


def waits(machine: Machine) -> None:
    """Wait until a far end there has begun its command."""
    wait_until(lambda: any(children_of(one) for one in machine.far_ends()), what=f"a command on {machine.name}")


def statuses(machine: Machine) -> dict[str, str]:
    return {row["agentInstance"]: row["status"] for row in machine.run("list", "--json").json}


def test_ctrl_c_leaves_the_worker_running(both: Both, tmp_path: Path) -> None:
    a, b = both
    for machine in both:
        machine.run("spawn", "--name", "w1", "--", *worker("waits_for_file", tmp_path / "gate"))
    gate = worker("waits_for_file", tmp_path / "gate")
    spawn = ["--host", "a", "spawn", "--wait", "--name", "w2", "--", *gate]
    for args in (["--host", "a", "wait", "w1"], spawn, ["wait-any", "--hosts", "a,b"]):
        process = start(*args, group=0)
        waits(a)
        if "w2" in args:
            wait_until(lambda: statuses(a).get("w2"), accept=lambda status: status == "running")
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=20)
        assert process.returncode == 130, (out, err)
        assert "interrupted" in err
        a.is_left_alone()
        b.is_left_alone()
    assert statuses(a) == {"w1": "running", "w2": "running"}
    (tmp_path / "gate").touch()
    assert run("--host", "a", "wait", "w1", "w2").code == 0
    assert run("--host", "b", "wait", "w1").code == 0


@pytest.mark.parametrize("victim", ["ssh", "here", "sshd", "far end"])
def test_whatever_is_killed_in_mid_wait_the_worker_goes_on(both: Both, tmp_path: Path, victim: str) -> None:
    a, _ = both
    a.run("spawn", "--name", "w1", "--", *worker("waits_for_file", tmp_path / "gate"))
    process = start("--host", "a", "wait-any")
    waits(a)
    if victim == "ssh":
        for one in ssh_below(process):
            one.kill()
    elif victim == "here":
        process.kill()
    elif victim == "sshd":
        a.kill()
    else:
        for one in a.far_ends():
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
    out, err = process.communicate(timeout=20)
    assert out == ""
    if victim != "here":
        assert process.returncode == 1
        assert "the connection to a broke" in err
        assert "workers go on without it" in err
    a.is_left_alone()
    if victim == "sshd":
        a.start()
    assert statuses(a) == {"w1": "running"}
    (tmp_path / "gate").touch()
    assert run("--host", "a", "wait-any").out == "w1 completed\n"


def test_one_wait_over_two_machines_gives_each_end_once(both: Both, tmp_path: Path) -> None:
    for machine in both:
        for number in range(2):
            machine.run("spawn", "--name", f"w{number}", "--", *worker("exits", number))
    found = []
    while (ended := run("wait-any", "--hosts", "a,b", "--json", check=False)).code == 0:
        found.append((ended.json["host"], ended.json["agentInstance"], ended.json.get("redelivered")))
    assert ended.code == 6
    assert sorted(found) == [(host, f"w{number}", None) for host in "ab" for number in range(2)]
    assert run("--host", "a", "wait-any", check=False).code == 6, "the cursor is that of the machine"
    late = run("wait-any", "--hosts", "a,b", "--consumer", "other", "--json").json
    assert late["agentInstance"].startswith("w")


def test_a_machine_that_dies_in_mid_wait_holds_up_nobody_and_loses_nothing(both: Both, tmp_path: Path) -> None:
    a, b = both
    for machine in both:
        machine.run("spawn", "--name", f"on-{machine.name}", "--", *worker("waits_for_file", tmp_path / machine.name))
    process = start("wait-any", "--hosts", "a,b")
    waits(a)
    waits(b)
    b.kill()
    (tmp_path / "b").touch()
    assert process.stderr is not None
    assert process.stderr.readline() == "warning: the connection to b broke; it is tried again\n"
    (tmp_path / "a").touch()
    assert process.communicate(timeout=20)[0] == "a: on-a completed\n"
    assert process.returncode == 0
    partly = run("wait-any", "--hosts", "a,b", check=False)
    assert partly.code == 1, "not 6: the other one may have more"
    assert "but b may have more" in partly.err
    b.start()
    assert run("wait-any", "--hosts", "a,b").out == "b: on-b completed\n"
    assert run("wait-any", "--hosts", "a,b", check=False).code == 6


def test_a_machine_that_comes_back_takes_part_again(both: Both, tmp_path: Path) -> None:
    _, b = both
    for machine in both:
        machine.run("spawn", "--name", f"on-{machine.name}", "--", *worker("waits_for_file", tmp_path / machine.name))
    process = start("wait-any", "--hosts", "a,b")
    waits(b)
    b.kill()
    assert process.stderr is not None
    process.stderr.readline()
    b.start()
    assert process.stderr.readline() == "b answers again\n"
    (tmp_path / "b").touch()
    assert process.communicate(timeout=30)[0] == "b: on-b completed\n"
    (tmp_path / "a").touch()
    assert run("wait-any", "--hosts", "a,b").out == "a: on-a completed\n"


def test_time_runs_out_for_all(both: Both, tmp_path: Path) -> None:
    for machine in both:
        machine.run("spawn", "--name", "w1", "--", *worker("waits_for_file", tmp_path / "gate"))
    timed = run("wait-any", "--hosts", "a,b", "--timeout-seconds", "0.5", check=False)
    assert (timed.code, timed.out) == (4, "")
    assert "nothing ended within 0.5 s" in timed.err
    both[1].kill()
    timed = run("wait-any", "--hosts", "a,b", "--timeout-seconds", "0.5", check=False)
    assert timed.code == 4
    assert "without an answer from b" in timed.err
    (tmp_path / "gate").touch()
    both[0].run("wait-all")
    both[1].run("wait-all")


def test_waits_that_are_killed_at_any_moment_lose_no_end(both: Both) -> None:
    """Each end comes once without a mark at most, and at least once in all, whoever is killed."""
    count, chance = 6, random.Random(os.environ.get("PYTEST_RANDOM_SEED"))
    for machine in both:
        rows = "".join(f'{{"name": "w{n}", "argv": ["true"]}}\n' for n in range(count))
        run("--host", machine.name, "spawn", "--batch", "-", stdin=rows)
        machine.run("wait-all")
    given: list[str] = []
    for _ in range(12):
        process = start("wait-any", "--hosts", "a,b")
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=chance.uniform(0.2, 1.2))
        if process.poll() is None:
            victims = [psutil.Process(process.pid), *ssh_below(process)]
            with contextlib.suppress(psutil.NoSuchProcess):
                chance.choice(victims).kill()
        given += process.communicate(timeout=30)[0].splitlines()
    give_up_at = time.monotonic() + 40
    while (ended := run("wait-any", "--hosts", "a,b", check=False)).code != 6 and time.monotonic() < give_up_at:
        given += ended.out.splitlines()
    names = [line.removesuffix(" [given again]") for line in given]
    assert set(names) == {f"{host}: w{n} completed" for host in "ab" for n in range(count)}
    unmarked = [line for line in given if not line.endswith("[given again]")]
    assert len(unmarked) == len(set(unmarked)), given
