"""At stake: no lock outlives its holder, counts on a file that is gone, or is kept by a process stopped with Ctrl-Z."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agentctl.adapters import locks
from agentctl.adapters.files import write_in_place
from agentctl.errors import LockTimeout
from tests.life import stands
from tests.ready import ended_task
from tests.steps import new_task, spawn, statuses
from tests.support import REPOSITORY, run, start, start_argv, wait_until, worker

HOLD = """
import os, sys
sys.path.insert(0, sys.argv[1])
from agentctl.adapters import locks
kind, path = sys.argv[2:4]
if kind == "lock":
    with locks.locked(path):
        print("held", flush=True)
        sys.stdin.readline()
    print("free", flush=True)
    sys.stdin.readline()
else:
    fd = locks.hold_alive(path)
    print("held" if fd is not None else "refused", flush=True)
    sys.stdin.readline()
"""


NAME = """
import os, sys
sys.path.insert(0, sys.argv[1])
from agentctl.adapters.files import write_in_place
for _ in range(30_000):
    write_in_place(int(sys.argv[2]), os.fsencode(sys.argv[3]))
"""


ASK = """
import sys
sys.path.insert(0, sys.argv[1])
from agentctl.adapters import locks
print("asking", flush=True)
while True:
    locks.is_alive_held(sys.argv[2])
"""


def hold(kind: str, path: Path | str) -> subprocess.Popen[str]:
    """Start a process that holds a lock until it reads a line."""
    process = start_argv([sys.executable, "-c", HOLD, str(REPOSITORY), kind, str(path)], stdin=subprocess.PIPE, group=0)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def let_go(process: subprocess.Popen[str]) -> None:
    process.communicate("\n\n", timeout=20)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "some.lock"


def test_a_lock_excludes_others_and_is_free_when_it_is_given_back(path: Path) -> None:
    holder = hold("lock", path)
    assert locks.try_lock(str(path)) is None
    let_go(holder)
    fd = locks.try_lock(str(path))
    assert fd is not None
    os.close(fd)


def test_who_waits_in_vain_is_told_who_has_it_and_what_to_do(path: Path) -> None:
    holder, hints = hold("lock", path), []
    for number in (None, signal.SIGSTOP):
        if number is not None:
            os.kill(holder.pid, number)
            stands(holder.pid)
        with pytest.raises(LockTimeout) as caught, locks.locked(str(path), limit_s=0.05):
            pass
        assert caught.value.message.startswith(f"{path} is still locked after 0.05 s, by pid {holder.pid} (")
        assert sys.executable in caught.value.message
        hints.append(caught.value.hint)
    os.kill(holder.pid, signal.SIGCONT)
    let_go(holder)
    assert hints == [None, f"kill -CONT {holder.pid} continues it: it is stopped"]


def test_a_killed_holder_frees_it(path: Path) -> None:
    for kind in ("lock", "alive"):
        file = path.with_suffix(f".{kind}")
        holder = hold(kind, file)
        holder.kill()
        holder.wait()
        if kind == "lock":
            with locks.locked(str(file), limit_s=5):
                pass
        else:
            assert not locks.is_alive_held(str(file))


def test_a_lock_on_a_file_that_was_replaced_guards_nothing(path: Path) -> None:
    """The holder has the old file. The next process locks the new one, and must be the only one to hold that."""
    holder = hold("lock", path)
    path.unlink()
    fd = locks.try_lock(str(path))
    assert fd is not None
    assert os.path.samestat(os.fstat(fd), path.stat())
    assert locks.try_lock(str(path)) is None
    os.close(fd)
    let_go(holder)


def test_who_waited_for_a_file_that_is_replaced_meanwhile_gets_the_new_one(path: Path) -> None:
    holder = hold("lock", path)
    waiter = start_argv([sys.executable, "-c", HOLD, str(REPOSITORY), "lock", str(path)], stdin=subprocess.PIPE)
    wait_until(lambda: holds_off_ctrl_z(waiter.pid), what="the waiter to try")
    path.unlink()
    path.touch()
    assert waiter.stdout is not None
    assert waiter.stdout.readline() == "held\n"
    assert locks.try_lock(str(path)) is None, "the file that the path names now is the one that is locked"
    let_go(holder)
    let_go(waiter)


RACE = """
import os, sys
sys.path.insert(0, sys.argv[1])
from agentctl.adapters import locks
path, rounds = sys.argv[2], int(sys.argv[3])
for _ in range(rounds):
    with locks.locked(path):
        os.close(os.open(path + ".inside", os.O_CREAT | os.O_EXCL))  # fails where another is inside
        os.unlink(path + ".inside")
        os.unlink(path)  # from here on others take the new file
"""


def test_of_many_that_replace_the_file_as_they_leave_never_two_are_inside(path: Path) -> None:
    """A process that opens the file before it is replaced, and locks it afterwards, has a lock without effect."""
    racers = [start_argv([sys.executable, "-c", RACE, str(REPOSITORY), str(path), "400"]) for _ in range(4)]
    for racer in racers:
        _, told = racer.communicate(timeout=50)
        assert racer.returncode == 0, told


def holds_off_ctrl_z(pid: int) -> bool:
    """Return whether a process has SIGTSTP blocked, which it does before it tries to get a lock."""
    (mask,) = [line.split()[1] for line in Path(f"/proc/{pid}/status").read_text().splitlines() if "SigBlk" in line]
    return bool(int(mask, 16) >> (signal.SIGTSTP - 1) & 1)


def test_a_folder_can_be_its_own_lock(tmp_path: Path) -> None:
    holder = hold("lock", f"{tmp_path}/")
    assert locks.try_lock(f"{tmp_path}/") is None
    let_go(holder)


def test_a_ctrl_z_waits_until_the_lock_is_given_back(path: Path) -> None:
    """The holder stops only after it has released the lock, however early the Ctrl-Z came; others go on meanwhile."""
    holder = hold("lock", path)
    holder.send_signal(signal.SIGTSTP)
    assert state(holder.pid) != "T"
    assert locks.try_lock(str(path)) is None
    assert holder.stdin is not None
    holder.stdin.write("\n")
    holder.stdin.flush()
    wait_until(lambda: state(holder.pid), accept=lambda letter: letter == "T", what="the holder to stop")
    with locks.locked(str(path), limit_s=5):
        pass
    holder.send_signal(signal.SIGCONT)
    let_go(holder)


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]


def test_the_signal_mask_is_as_it_was_after_a_failure_too(path: Path) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    with contextlib.suppress(ZeroDivisionError), locks.locked(str(path)):
        assert signal.SIGTSTP in signal.pthread_sigmask(signal.SIG_BLOCK, ())
        raise ZeroDivisionError
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
    assert locks.try_lock(str(path)) is not None


def test_asking_whether_somebody_lives_disturbs_nobody(path: Path) -> None:
    assert not locks.is_alive_held(str(path))
    assert not path.exists()
    path.touch()
    askers = [start_argv([sys.executable, "-c", ASK, str(REPOSITORY), str(path)]) for _ in range(2)]
    for asker in askers:
        assert asker.stdout is not None
        assert asker.stdout.readline() == "asking\n"
    for _ in range(2000):
        fd = locks.hold_alive(str(path))
        assert fd is not None, "an asker held it"
        os.close(fd)
    for asker in askers:
        asker.kill()
        asker.wait()


def test_a_live_holder_is_seen_and_not_displaced(path: Path) -> None:
    holder = hold("alive", path)
    assert locks.is_alive_held(str(path))
    assert locks.hold_alive(str(path)) is None
    assert locks.is_alive_held(str(path)), "the attempt took nothing away"
    let_go(holder)
    assert not locks.is_alive_held(str(path))


def test_a_lock_that_is_handed_over_names_its_holder_at_every_moment(path: Path) -> None:
    """Who hands it over and who takes it have one open file, and both write down who holds it."""
    holder = '{"pid": 4711}\n'
    fd = locks.hold_alive(path)
    assert fd is not None
    write_in_place(fd, holder.encode())
    argv = [sys.executable, "-c", NAME, str(REPOSITORY), str(fd), holder]
    writers = [subprocess.Popen(argv, pass_fds=[fd]) for _ in range(2)]
    read = set()
    while writers[0].poll() is None:
        read.add(path.read_text())
    assert [writer.wait(20) for writer in writers] == [0, 0]
    os.close(fd)
    assert read == {holder}


def test_no_lock_is_inherited(path: Path) -> None:
    with locks.locked(str(path)) as fd:
        assert not os.get_inheritable(fd)
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert locks.try_lock(str(path)) is not None
    child.communicate(b"\n", timeout=20)


@pytest.mark.slow
def test_a_command_that_meets_a_stopped_holder_names_it_and_harms_nothing(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    task = ended_task(tmp_path_factory)
    holder = hold("lock", task.path / "queue.lock")
    holder.send_signal(signal.SIGSTOP)
    process = start("spawn", "--name", "b1", "--", "true")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert f"queue.lock is still locked after 20 s, by pid {holder.pid}" in err
    holder.send_signal(signal.SIGCONT)
    let_go(holder)
    assert "b1" not in statuses()
    assert not (task.path / "agents" / "b1").exists()
    assert run("spawn", "--wait", "--name", "b1", "--", "true").code == 0


def test_a_ctrl_z_of_a_waiting_command_stops_no_shim(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn(worker("exits", 0, "--after-file", tmp_path / "gate"), name="a1")
    waiting = start("wait-all", group=0)
    wait_until(lambda: has_inotify(waiting.pid), what="the wait to watch")
    waiting.send_signal(signal.SIGTSTP)
    wait_until(lambda: state(waiting.pid), accept=lambda letter: letter == "T", what="the command to stop")
    (tmp_path / "gate").touch()
    task.ended("a1")
    assert statuses() == {"a1": "completed"}
    waiting.send_signal(signal.SIGCONT)
    assert waiting.wait(timeout=20) == 0


def has_inotify(pid: int) -> bool:
    links = []
    for entry in os.scandir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            links.append(os.readlink(entry.path))
    return any("inotify" in link for link in links)
