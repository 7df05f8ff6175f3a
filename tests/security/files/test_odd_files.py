"""At stake: whatever a worker puts into its own folder, limits hold, a cancel ends it, everybody reads on."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from agentctl.adapters.taskdir import WorkerDir
from tests.life import is_settled, read, says_ready, stands
from tests.steps import Task, new_task, row, spawn, statuses
from tests.support import PROGRAM, alike, by_turns, run, start, start_argv, wait_for_text, wait_until, worker

#: What the shim, the waits and the readers look at while a worker runs.
FILES = {
    "questions": "interactions/q1.json interactions/q1.lock progress.json result.json spent.json",
    "folders": "interactions children inbox control activity.jsonl outcome.json worktree.json",
    "identity": "shim.json worker.json spec.json children/t1.x inbox/000001.json stdout.log stderr.log",
    "end": "exit.json interactions/q1.answer.json session.json dialogue.jsonl",
    "task": "../../events.jsonl ../../task.yaml ../../config.json ../../cursors/default.json ../../observed.jsonl"
    " ../../roster.stale ../../shim.log ../../keys",
}
KINDS = ("fifo", "folder", "socket", "deep", "sparse", "link", "lease")
#: Each group of files in each form: every form and every group at once, the others among the slow tests.
PAIRS = [
    pytest.param(
        files,
        kind,
        marks=() if row % len(KINDS) == column or (files, kind) == ("task", "link") else pytest.mark.slow,
        id=f"{files}-{kind}",
    )
    for row, files in enumerate(FILES)
    for column, kind in enumerate(KINDS)
]
READERS = (
    ("list",), ("show", "w"), ("why", "w"), ("search", "w", "--logs"), ("logs", "w"), ("events",), ("tree",),
    ("tasks",), ("interact", "list"), ("usage",), ("result", "w"), ("activity", "w"), ("doctor",),
    ("timeline",),
)  # fmt: skip


def tampering(kind: str, *files: str, victim: Path | None = None, options: tuple[str, ...] = ()) -> None:
    """Start the worker `w`, and wait until it has tampered with these files."""
    done = Path("tampered").absolute()
    env = {"TAMPERS_VICTIM": str(victim)} if victim else {}
    argv = worker("tampers", kind, *files)
    shell = ["sh", "-c", 'exec "$@" >"$0"', str(done), *argv]
    given = [word for name, value in env.items() for word in ("--env", f"{name}={value}")]
    spawn(shell, *options, *given, name="w")
    wait_for_text(done, "ready")


@pytest.mark.parametrize(("files", "kind"), PAIRS)
@pytest.mark.slow
def test_a_limit_holds_whatever_a_worker_puts_into_its_folder(
    root: Path, tmp_path: Path, files: str, kind: str
) -> None:
    task = new_task(cap=1)
    victim = tmp_path / "victim"
    victim.write_text("of the person", encoding="ascii")
    tampering(kind, *FILES[files].split(), victim=victim, options=("--timeout-seconds", "1"))
    for command in READERS:
        run(*command, check=False, timeout=20)
    wait_until(lambda: leaders(task), what="the limit to hold", accept=lambda left: not left)
    wait_until(lambda: is_free(task.path / "slots" / "1"), what="its slot to be free")
    assert victim.read_text(encoding="ascii") == "of the person"


def leaders(task: Task) -> list[str]:
    """Return the processes of the tampering worker."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path("/proc", pid, "cmdline").read_bytes().split(b"\0")
            environ = Path("/proc", pid, "environ").read_bytes()
        except OSError:
            continue
        if any(word.endswith(b"tampers.py") for word in words) and os.fsencode(task.path) in environ:
            found.append(pid)
    return found


def is_free(slot: Path) -> bool:
    """Tell whether nobody holds a slot."""
    with slot.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def test_a_fifo_in_the_place_of_a_question_neither_stops_a_cancel_nor_holds_anybody_up(root: Path) -> None:
    task = new_task()
    tampering("fifo", "interactions/q1.json", "interactions/q1.lock")
    assert run("interact", "list", timeout=10).code == 0
    assert run("cancel", "--json", "w", timeout=15).json["status"] == "cancelled"
    assert task.exit("w") is not None


def test_a_lease_of_a_question_hides_no_other(root: Path) -> None:
    task = new_task()
    tampering("lease", "interactions/q1.json", "interactions/q1.lock")
    spawn(worker("asks", "--kind", "confirm", "Go?"), name="v")
    task.has("agent.blocked", "v")
    assert [row["agentInstance"] for row in run("interact", "list", "--json").json if row["waiting"]] == ["v"]
    run("cancel", "--all", timeout=15)
    assert set(statuses().values()) == {"cancelled"}


@pytest.mark.slow
def test_an_end_that_a_worker_wrote_for_itself_and_nobody_can_read_is_set_aside(root: Path) -> None:
    task = new_task(cap=1)
    tampering("fifo", "exit.json", options=("--timeout-seconds", "1"))
    wait_until(lambda: task.events("agent.failed"), what="its end to be told")
    decision = json.loads((task.agent("w") / "exit.json").read_bytes())
    assert (decision["status"], decision["reason"]) == ("failed", "timed_out")
    assert statuses() == {"w": "failed"}


NO_ENDS = {
    "empty": "",
    "odd": '{"agentInstance": 1}\n',
    "no end": '{"status": "fine"}\n',
    "odd duration": '{"status": "completed", "durationSeconds": "long"}\n',
    "odd message": '{"status": "failed", "message": {"a": 1}}\n',
    "odd reason": '{"status": "failed", "reason": ["x"]}\n',
}


@pytest.mark.parametrize("text", by_turns(NO_ENDS.values(), 3), ids=NO_ENDS)
def test_an_end_that_is_none_keeps_nobody_from_starting_looking_and_cancelling(root: Path, text: str) -> None:
    """The spawn is held until the worker has written it, and tells of a worker that runs."""
    task = new_task()
    said = Path("said").absolute()
    script = 'printf %s "$1" >"$AGENTCTL_AGENT_DIR/exit.json"; echo >"$2"; exec sleep 1000'
    starting = start(
        "spawn", "--json", "--name", "w", "--", "sh", "-c", script, "sh", text, said,
        env={"AGENTCTL_FAILPOINT": "spawn.after-orders:stop"},
    )  # fmt: skip
    wait_until(said.exists, what="it to write an end")
    stands(starting.pid)
    starting.send_signal(signal.SIGCONT)
    out, err = starting.communicate(timeout=20)
    assert (json.loads(out)["status"], err) == ("running", "")
    assert row("w")["status"] == "running"
    for command in ("show", "result", "join", "usage"):
        assert "a bug in agentctl" not in run(command, *(["w"] if command != "usage" else []), check=False).err
    assert run("cancel", "w", "--json").json["status"] == "cancelled"
    ended = json.loads((task.path / "agents/w/exit.json").read_text(encoding="utf-8"))
    assert ended["status"] == "cancelled"


#: Root may read everything; without two of its capabilities it is a user like others.
_AS_A_USER = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search"]


def _as_a_user(*args: str) -> tuple[int, str, str]:
    argv = [*(_AS_A_USER if os.geteuid() == 0 else ()), *PROGRAM, *args]
    process = start_argv(argv)
    out, err = process.communicate(timeout=30)
    return process.returncode, out, err


@pytest.mark.skipif(os.geteuid() == 0 and shutil.which("setpriv") is None, reason="root reads everything")
@pytest.mark.parametrize("text", ["", '{"status": "completed"}'], ids=["no end", "an end"])
def test_an_end_that_nobody_may_read_keeps_nobody_from_looking_and_cancelling(root: Path, text: str) -> None:
    task = new_task()
    script = 'cd "$AGENTCTL_AGENT_DIR"; printf %s "$1" >exit.json; chmod 0 exit.json; echo ready; exec sleep 1000'
    assert _as_a_user("spawn", "--name", "w", "--", "sh", "-c", script, "sh", text)[0] == 0
    says_ready(task, "w")
    _, listed, err = _as_a_user("list", "--json")
    assert ([one["status"] for one in json.loads(listed)], err) == (["running"], "")
    for command in (["show", "w"], ["result", "w"], ["join"], ["usage"], ["doctor"]):
        assert "a bug in agentctl" not in _as_a_user(*command)[2]
    code, cancelled, _ = _as_a_user("cancel", "w", "--json")
    assert (code, json.loads(cancelled)["status"]) == (0, "cancelled")
    assert read(task.agent("w") / "exit.json")["status"] == "cancelled"


def test_a_link_in_the_place_of_the_control_is_not_written_to(root: Path, tmp_path: Path) -> None:
    new_task()
    victim = tmp_path / "victim"
    victim.write_text("of the person", encoding="ascii")
    tampering("link", "control", victim=victim)
    run("cancel", "w", timeout=15)
    assert victim.read_text(encoding="ascii") == "of the person"


@pytest.mark.parametrize("place", ["slots/1", "events.jsonl"])
def test_a_link_that_lies_there_before_a_start_is_not_written_to(root: Path, tmp_path: Path, place: str) -> None:
    task = new_task(cap=1)
    victim = tmp_path / "victim"
    victim.write_text("of the person", encoding="ascii")  # Without a last newline: nothing may cut it.
    (task.path / place).parent.mkdir(exist_ok=True)
    (task.path / place).unlink(missing_ok=True)
    (task.path / place).symlink_to(victim)
    run("spawn", "--wait", "--", "true", check=False)
    assert victim.read_text(encoding="ascii") == "of the person"


def test_a_log_of_a_terabyte_without_content_is_read_and_appended_to(root: Path) -> None:
    task = new_task()
    spawn(worker("exits", 0), name="first")
    task.ended("first")
    os.truncate(task.path / "events.jsonl", 1 << 40)
    assert statuses() == {"first": "completed"}
    spawn(worker("exits", 0), name="second")
    task.ended("second")
    assert (task.path / "events.jsonl").stat().st_size < 1 << 20


def test_a_line_longer_than_any_of_ours_is_passed_over_and_named(root: Path) -> None:
    task = new_task()
    spawn(worker("exits", 0), name="first")
    task.ended("first")
    with (task.path / "events.jsonl").open("ab") as log:
        for _ in range(5):
            log.write(b"x" * (1 << 20))
        log.write(b"\n")
    spawn(worker("exits", 0), name="second")
    wait_until(statuses, what="both ends", accept=lambda found: found == {"first": "completed", "second": "completed"})
    assert "longer than" in run("list").err


@pytest.mark.parametrize("kind", ["ln -s /nowhere", *alike("ln -s /", "mkfifo")])
def test_a_worker_ends_as_it_did_whatever_it_has_put_into_its_folder(root: Path, kind: str) -> None:
    task = new_task(cap=4)
    names = {Path(path).name: f"w{number}" for number, (path, _) in enumerate(WorkerDir("/nowhere").entries())}
    if kind != "ln -s /nowhere":  # Whoever puts a request there, of whatever kind, asks for just that.
        del names["cancel.json"], names["pause.json"]
    for name, instance in names.items():
        put = f'cd "$AGENTCTL_AGENT_DIR" && rm -rf {name} && {kind} {name}; exit 7'
        spawn(["sh", "-c", put], "--queue", name=instance)
    run("wait-all", check=False)
    ends = {name: task.exit(instance) for name, instance in names.items()}
    assert {name: end for name, end in ends.items() if end is None or end.get("exitCode") != 7} == {}


@pytest.mark.parametrize("kind", ["ln -s /", "mkfifo", "mkdir"])
def test_a_worker_that_puts_a_request_of_any_kind_into_its_folder_has_asked_for_it(root: Path, kind: str) -> None:
    task = new_task(grace=0.2)
    for name, request in (("a", "cancel.json"), ("b", "pause.json")):
        put = f'cd "$AGENTCTL_AGENT_DIR" && {kind} {request} && exec sleep 60'
        spawn(["sh", "-c", put], name=name)
    task.ended("a")
    assert is_settled(task, "a")["status"] == "cancelled"
    task.has("agent.paused", "b")
    assert row("b")["paused"] is True
    run("cancel", "b")


@pytest.mark.slow
@pytest.mark.parametrize("body", ['{"after": -1}', '{"after": ["\\ud800"]}', '{"after": ["../x"]}', "[]", None])
def test_a_ticket_that_names_no_workers_stops_no_dispatch(root: Path, body: str | None) -> None:
    task = new_task()
    ticket = task.path / "queue" / "0000.000000000001.0.w.t1.x"
    ticket.mkdir() if body is None else ticket.write_text(body, encoding="ascii")
    spawn(worker("sleeps", 60), name="w")
    assert run("cancel", "--all", timeout=15).code == 0
    assert statuses()["w"] == "cancelled"


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["queue", "slots", "agents"])
def test_a_file_in_the_place_of_a_folder_ends_in_no_bug(root: Path, folder: str) -> None:
    task = new_task()
    spawn(worker("sleeps", 2), name="w")
    (task.path / folder).rename(task.path / "away")
    (task.path / folder).touch()
    for command in (("list",), ("cancel", "w"), ("spawn", "--", "true"), ("doctor",)):
        assert "a bug in agentctl" not in run(*command, check=False, timeout=40).err
    (task.path / folder).unlink()
    (task.path / "away").rename(task.path / folder)
    run("cancel", "w", check=False)
