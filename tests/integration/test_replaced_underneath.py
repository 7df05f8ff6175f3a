"""At stake: an upgrade kills workers: their shims and hosts need files that are gone, or are of another version."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentctl.adapters.taskdir import WorkerDir
from agentctl.worker_programs.agent_host.main import order_and_driver
from tests.agent_steps import agent_world, blocked, plays
from tests.installed import Installed, without
from tests.placed import ask_engine, there
from tests.repositories import new_repository
from tests.steps import Task, kill, new_task, statuses
from tests.support import is_alive, remove, run, wait_for_json, wait_until

pytestmark = pytest.mark.slow

#: The status of a worker that has ended, and the reason.
End = tuple[str, str | None]


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    return Installed(tmp_path / "installed")


def after(gate: Path, then: str = "true") -> list[str]:
    """Return a worker that waits for a file, and then runs a line of shell."""
    return ["/bin/sh", "-c", f'until test -e "$0"; do sleep 0.05; done; {then}', str(gate)]


def running(*names: str) -> None:
    wait_until(statuses, what=f"{names} to run", accept=lambda found: all(found[one] == "running" for one in names))


def pid_of(task: Task, name: str) -> int:
    return int(wait_for_json(task.agent(name) / "worker.json")["pid"])


def ending_of(task: Task, name: str) -> End:
    ended = task.exit(name) or {}
    return ended["status"], ended.get("reason")


def not_kept(found: dict[str, str]) -> list[str]:
    """Return what of agentctl was loaded later although it was not kept."""
    return [name for name, loader in found.items() if name.startswith("agentctl") and loader != "_KeptCode"]


def test_every_kind_of_end_is_right_without_the_files_of_the_package(
    root: Path, tmp_path: Path, installed: Installed
) -> None:
    task, gate = new_task(cap=30, grace=0.2), tmp_path / "gate"
    installed.note_what_is_loaded()
    tried = tmp_path / "tried"
    ends = {
        "fine": (after(gate), [], ("completed", None)),
        "code": (after(gate, "exit 3"), [], ("failed", "exit_code")),
        "killed": (after(gate, "kill -9 $$"), [], ("failed", "signal")),
        "leaves": (after(gate, "sleep 600 &"), [], ("completed", None)),
        "retried": (after(gate, f"test -e {tried} || {{ touch {tried}; exit 1; }}"),
                    ["--retries", "2", "--retry-delay-seconds", "0.1"], ("completed", None)),
        "late": (["sleep", "600"], ["--timeout-seconds", "4"], ("failed", "timed_out")),
        "floods": (after(gate, "yes"), [], ("failed", "output_limit")),
        "obeys": (["sleep", "600"], [], ("cancelled", None)),
        "stubborn": (["/bin/sh", "-c", "trap '' INT TERM; while :; do sleep 0.1; done"], [], ("cancelled", None)),
        "paused": (["sleep", "600"], [], ("cancelled", None)),
    }  # fmt: skip
    head, _, rest = (task.path / "task.yaml").read_text().partition("\n")
    (task.path / "task.yaml").write_text(f"{head}\nmaxOutputBytes: 100000\n{rest}")
    for name, (argv, options, _) in ends.items():
        installed.spawn(argv, *options, name=name)
    installed.spawn(["true"], "--after", "fine", name="follows")
    installed.spawn(["true"], "--after", "code", name="bereft")
    with without(installed.package):
        run("pause", "paused")
        gate.touch()
        for name in ("obeys", "stubborn", "paused"):
            run("cancel", name)
        task.ended(*ends, "bereft")
    assert {name: ending_of(task, name) for name in ends} == {name: end for name, (_, _, end) in ends.items()}
    assert ending_of(task, "bereft") == ("failed", "dependency")
    run("wait", "follows")
    assert not (task.path / "shim.log").exists()
    found = wait_until(installed.loaded_later, accept=lambda found: "agentctl.supervision.dispatch.dispatch" in found)
    assert not_kept(found) == []


def test_every_kind_of_end_of_an_agent_is_right_without_them(
    root: Path, tmp_path: Path, installed: Installed, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = agent_world(tmp_path, monkeypatch, cap=30, grace=0.5)
    installed.note_what_is_loaded()
    repository = new_repository(tmp_path / "repository")
    gate = tmp_path / "gate"
    waits = f"import os, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.05)\n"
    ends: dict[str, tuple[str, list[str | Path], End]] = {
        "fine": (plays(tmp_path, f"{waits}me.answer('done')"), [], ("completed", None)),
        "asks": ("question", [], ("completed", None)),
        "allowed": ("permit ls", [], ("completed", None)),
        "crashes": (plays(tmp_path, f"{waits}raise SystemExit(3)"), [], ("failed", "truncated")),
        "kept": ("say one", ["--keep"], ("completed", None)),
        "hangs": ("hang", [], ("cancelled", None)),
        "deaf": (f"deaf {tmp_path / 'pids'}", [], ("cancelled", None)),
        "late": ("hang", ["--timeout-seconds", "6"], ("failed", "timed_out")),
        "worktree": (plays(tmp_path, f"{waits}open('new', 'w').close()\nme.answer('done')"),
                     ["--worktree", "--cwd", repository], ("completed", None)),
    }  # fmt: skip
    for name, (prompt, options, _) in ends.items():
        done = installed.run("spawn", "--agent", "general", "--name", name, *options, prompt)
        assert done.code == 0, done
    questions = {name: blocked(name)["id"] for name in ("asks", "allowed")}
    blocked("kept")
    with without(installed.package):
        gate.touch()
        run("interact", "respond", "asks", "--id", questions["asks"], "blue")
        run("interact", "respond", "allowed", "--id", questions["allowed"], "allow")
        run("send", "kept", "say two")
        for name in ("hangs", "deaf"):
            run("cancel", name)
        run("send", "kept", "--close")
        task.ended(*(ends.keys() - {"worktree"}))
    task.ended("worktree")  # What it changed is recorded by a program of its own, which had to wait.
    assert {name: ending_of(task, name) for name in ends} == {name: end for name, (_, _, end) in ends.items()}
    assert not (task.path / "shim.log").exists()
    found = wait_until(installed.loaded_later, accept=lambda found: "agentctl.supervision.dispatch.dispatch" in found)
    assert not_kept(found) == []


def test_a_worker_on_a_node_ends_right_without_them(root: Path, tmp_path: Path, installed: Installed) -> None:
    ask_engine("loopback", pollSeconds=0.5, silenceSeconds=1)
    task, gate = new_task(cap=30, grace=0.2), tmp_path / "gate"
    installed.note_what_is_loaded()
    ends = {
        "fine": (after(gate, "echo out"), ("completed", None)),
        "code": (after(gate, "exit 3"), ("failed", "exit_code")),
        "stopped": (["sleep", "600"], ("cancelled", None)),
    }
    for name, (argv, _) in ends.items():
        installed.spawn(argv, "--runner", "loopback", name=name)
    running(*ends)
    for name in ends:
        wait_until((there(task, name) / "worker.json").exists, what=f"{name} to run on its node")
    with without(installed.package):
        gate.touch()
        run("cancel", "stopped")
        task.ended(*ends)
    assert {name: ending_of(task, name) for name in ends} == {name: end for name, (_, end) in ends.items()}
    assert run("logs", "fine").out == "out\n"
    assert not (task.path / "shim.log").exists()
    found = wait_until(installed.loaded_later, accept=lambda found: "agentctl.supervision.dispatch.dispatch" in found)
    assert not_kept(found) == []


def test_an_agent_that_would_start_meanwhile_starts_once_the_files_are_there_again(
    root: Path, tmp_path: Path, installed: Installed, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, gate = agent_world(tmp_path, monkeypatch, cap=1), tmp_path / "gate"
    installed.spawn(after(gate), name="first")
    done = installed.run("spawn", "--queue", "--agent", "general", "--name", "next", "say hello")
    assert done.code == 0, done
    with without(installed.package):
        gate.touch()
        task.has("agent.retrying", "next", times=2)
    task.ended("next")
    assert ending_of(task, "next") == ("completed", None)
    assert run("result", "next").out == "hello\n"


def test_an_agent_that_waited_while_its_program_moved_within_the_package_starts(
    root: Path, tmp_path: Path, installed: Installed, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, gate = agent_world(tmp_path, monkeypatch, cap=1), tmp_path / "gate"
    starts, now = installed.package / "operations" / "start", {}
    for module, here, before in (
        ("agent_order.py", '"worker_programs" / "agent_host"', '"driving"'),
        ("agent_server.py", '"interfaces" / "cli"', '"cli"'),
    ):
        now[module] = (starts / module).read_text()
        assert here in now[module]
        (starts / module).write_text(now[module].replace(here, before))
    installed.spawn(after(gate), name="first")
    done = installed.run("spawn", "--queue", "--agent", "general", "--name", "next", "say hello")
    assert done.code == 0, done
    spec = (task.agent("next") / "spec.json").read_text()
    assert ("agentctl/driving/__main__.py" in spec, "agentctl/cli/early.py" in spec) == (True, True)
    for module, text in now.items():
        (starts / module).write_text(text)
    gate.touch()
    task.ended("next")
    assert ending_of(task, "next") == ("completed", None)
    assert run("result", "next").out == "hello\n"
    order, _ = order_and_driver(WorkerDir(task.agent("next")))
    assert str(installed.package / "interfaces/cli/early.py") in order.mcp_servers["agentctl"]["args"]


def test_a_host_half_of_which_is_there_is_started_again(
    root: Path, tmp_path: Path, installed: Installed, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = agent_world(tmp_path, monkeypatch)
    module = installed.package / "worker_programs/agent_host/busy_program.py"
    with without(module):
        module.write_text("def cut(", encoding="utf-8")
        installed.run("spawn", "--agent", "general", "--name", "a", "--retries", "1", "say hello")
        task.has("agent.retrying", "a")
        module.unlink()
        task.has("agent.retrying", "a", times=2)
    task.ended("a")
    assert ending_of(task, "a") == ("completed", None)
    assert "agentctl is being replaced" in (task.agent("a") / "stderr.log").read_text()


def test_what_a_worktree_holds_is_recorded_once_the_files_are_there_again(
    root: Path, tmp_path: Path, installed: Installed
) -> None:
    task, gate = new_task(), tmp_path / "gate"
    repository = new_repository(tmp_path / "repository")
    installed.spawn(after(gate, "echo new > new; sleep 0.1"), "--worktree", "--cwd", repository, name="a")
    with without(installed.package / "supervision" / "worktree"):
        gate.touch()
        wait_until((task.agent("a") / "worktree.json").exists)
        pid = pid_of(task, "a")
        wait_until(lambda: not is_alive(pid), what="the worker to end")
    task.ended("a")
    assert "new" in (task.agent("a") / "changes.patch").read_text()


def test_a_shim_that_leaves_starts_the_next_one_once_the_files_are_there_again(
    root: Path, tmp_path: Path, installed: Installed
) -> None:
    task, gate = new_task(cap=1), tmp_path / "gate"
    installed.spawn(after(gate, "sleep 600 & exit 0"), "--keep-children", name="first")  # Its shim takes no other one.
    installed.spawn(["true"], "--queue", name="next")
    shim = task.shim_of("first")
    with without(installed.package):
        gate.touch()
        task.ended("first")
        kill(*(one["pid"] for one in (task.exit("first") or {})["kept"]))
        assert is_alive(shim)
    task.ended("next")
    assert ending_of(task, "next") == ("completed", None)


def test_a_removed_task_takes_its_workers_along_without_them(root: Path, installed: Installed) -> None:
    task = new_task()
    installed.spawn(["sleep", "600"], name="a")
    installed.spawn(["true"], "--after", "a", name="b")
    pid, shim = pid_of(task, "a"), task.shim_of("a")
    with without(installed.package):
        remove(task.path)
        wait_until(lambda: not is_alive(pid) and not is_alive(shim), what="worker and shim to end")
