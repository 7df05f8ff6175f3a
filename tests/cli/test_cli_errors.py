"""Every way a command can fail tells what, where and what next, with its exit code, and nothing on stdout."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.inside import call
from tests.ready import made_once
from tests.snapshots import snapshot
from tests.support import Completed, alike, run, start, wait_until, worker

#: args -> exit code, what the message must say, what the hint must say
REFUSED: dict[str, tuple[int, str, str]] = {
    "lst": (2, "there is no command 'lst'", "did you mean list?"),
    "stopp": (2, "there is no command 'stopp'", "did you mean stop?"),
    "zzzz": (2, "there is no command 'zzzz'", "agentctl help all"),
    "xyzzy": (2, "there is no command 'xyzzy'", "agentctl help all"),
    "list --wat": (2, "--wat", "agentctl list --help"),
    "attach": (2, "there is no command 'attach'", "agentctl watch WORKER"),
    "answer --id q1": (2, "--id and --reason are about the question of a worker", "agentctl answer --help"),
    "answer a1 --hosts h": (2, "with --hosts the answer follows the worker", "agentctl answer --help"),
    "answer a1": (1, "a1 has ended (completed)", ""),
    "answer nobody": (3, "no worker or sub-task 'nobody'", "agentctl interact list"),
    "help lst": (2, "there is no command 'lst'", "did you mean list?"),
    "interact wat": (2, "wat", "agentctl interact --help"),
    "show": (2, "no worker is named", "--failed"),
    "show nobody": (3, "no worker 'nobody'", "known: a1"),
    "show ../x": (2, "'../x' is not a name", "1 to 64"),
    "list --task other": (3, "no task 'other'", "known: t1"),
    "list --task ../t1": (2, "'../t1' is not a name", "1 to 64"),
    "list --root /proc/nonexistent": (3, "/proc/nonexistent", "--root"),
    "use other": (3, "no task 'other'", "agentctl tasks"),
    "new": (2, "a task needs a title", "agentctl new"),
    "new T --set a=b": (2, "--set is for templates", "agentctl templates"),
    "new T --start": (2, "--start is for templates", "agentctl templates"),
    "new --template nope": (3, "no template 'nope'", "survey"),
    "new --template survey --set nonsense": (2, "'nonsense' is not of the form K=V", ""),
    "new --template survey --max-depth 2": (2, "a template brings its own limits", "task.yaml"),
    "new T --id t1": (2, "task 't1' exists already", "agentctl use t1"),
    "spawn": (2, "give one of PROMPT, -- CMD", "agentctl spawn --help"),
    "spawn true": (2, "a command follows --", "agentctl spawn -- true"),
    "spawn true --name x": (2, "a command follows --", "agentctl spawn [OPTIONS] -- CMD"),
    "spawn --agent general -- look": (2, "--agent is for an agent, and there is no prompt", "goes before --"),
    "spawn --shell true -- true": (2, "give one of PROMPT, -- CMD", "agentctl spawn --help"),
    "spawn --name b --batch -": (2, "an option for one worker", "--"),
    "spawn --after-any -- true": (2, "--after-any goes with --after", ""),
    "spawn --env NOPE -- true": (2, "--env 'NOPE' is not of the form K=V", ""),
    "spawn --after nobody -- true": (3, "no worker 'nobody'", "agentctl list"),
    "spawn --timeout-seconds nan -- true": (2, "'nan' is not a number of seconds", "agentctl spawn --help"),
    "spawn --name a1 -- true": (1, "'a1' exists already", "--name"),
    "spawn --batch /proc/nonexistent": (2, "cannot read /proc/nonexistent", ""),
    "spawn -- no-such-program-here": (2, "there is no program 'no-such-program-here'", "installed"),
    "spawn --roster": (1, "made from no template", "agentctl new --template"),
    "wait": (2, "no worker is named", "--all"),
    "wait --all a1": (2, "--all goes with no other worker", "agentctl wait --help"),
    "wait --all --any": (2, "--all goes with no other worker", "agentctl wait --help"),
    "wait nobody": (3, "no worker 'nobody'", "known: a1"),
    "wait-any --timeout-seconds -1": (2, "'-1' is not a number of seconds", "agentctl wait-any --help"),
    "wait-any --for sunday": (2, "--for cannot wait for sunday", "completed, failed, cancelled, blocked"),
    "wait-any --for completed --consumer ../x": (2, "'../x' is not a name", "1 to 64"),
    "cancel": (2, "no worker is named or selected", "or give --all"),
    "cancel a1 --all": (2, "all workers are meant, and some by name", "leave out --all"),
    "tree a1 --recursive": (2, "one worker is named", "leave out its name, or --recursive"),
    "tree --recursive --follow": (2, "--recursive shows all tasks once", "leave --follow out"),
    "search x --archived --task t1": (2, "--archived searches all", "leave --task out"),
    "retry": (2, "no worker is named", "or select them by --failed, --status, --agent or --filter"),
    "rm": (2, "no worker is named", "or select them by --ended, --failed, --status, --agent or --filter"),
    "pause a1": (1, "a1 cannot be paused", ""),
    "send a1 hello": (1, "a1 has ended", "agentctl result a1"),
    "logs a1 --raw --json": (2, "exclude each other", ""),
    "interact respond yes": (3, "no question is open", "agentctl interact list"),
    "interact respond a b c": (2, "3 words", "quotes"),
    "interact ask Really?": (1, "interact ask is for workers", "agentctl spawn"),
    "report progress 5": (1, "report progress is for workers", "agentctl spawn"),
    "report progress 5 a b": (2, "after 5 there is more than one text", "agentctl report progress"),
    "report result": (2, "a summary, a file, or both", "agentctl report result --summary TEXT"),
    "inbox": (1, "inbox is for workers", "agentctl spawn"),
}


@pytest.fixture
def ended(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with one task, `t1`, and one worker that has completed, `a1`."""
    made_once(tmp_path_factory, make_ended)
    return root


def make_ended() -> None:
    run("new", "Task one", "--id", "t1")
    run("spawn", "--wait", "--name", "a1", "--", *worker("exits", 0))


def error_of(done: Completed) -> tuple[str, str]:
    """The message and the hint on stderr, which hold nothing else."""
    lines = done.err.splitlines()
    assert lines, done
    assert lines[0].startswith("error: "), done
    hint = lines[1] if len(lines) > 1 else "hint: "
    assert hint.startswith("hint: "), done
    assert len(lines) <= 2, done
    return lines[0].removeprefix("error: "), hint.removeprefix("hint: ")


def test_what_cannot_be_done_says_what_where_and_what_next(ended: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One test for the whole table: none of it may change anything, so one task serves all."""
    before = run("events").out
    for line, (code, message, hint) in REFUSED.items():
        done = call(capsys, *line.split())
        assert (done.code, done.out) == (code, ""), done
        told, next_step = error_of(done)
        assert message in told, done
        assert hint in next_step, done
        assert not told.endswith("."), done
    assert run("events").out == before


def test_without_any_task_the_way_to_one_is_told(root: Path) -> None:
    done = run("list", check=False)

    assert done.code == 3
    assert "agentctl new" in error_of(done)[1]
    assert not root.exists()


def test_a_bad_line_of_a_batch_is_named_and_nothing_is_started(ended: Path) -> None:
    done = run("spawn", "--batch", "-", stdin='{"argv": ["true"]}\n{"argv": "true"}\n', check=False)

    assert done.code == 2
    assert "stdin:2" in error_of(done)[0]
    assert [row["agentInstance"] for row in run("list", "--json").json] == ["a1"]


def test_control_characters_in_an_error_are_shown_not_obeyed(ended: Path) -> None:
    for args in (
        ["show", "\x1b[31mx"],
        ["li\x1bst"],
        ["spawn", "--", "\x1b]0;x\x07"],
        ["list", "--wat\x1b[1m"],
    ):
        done = run(*args, check=False)
        assert done.code == 2, done
        assert "\x1b" not in done.err, done
        assert "\\x1b" in done.err, done


# -- exit codes that tell of workers -------------------------------------------------------------------------


@pytest.mark.slow
def test_the_end_of_a_worker_decides_the_exit_code(ended: Path) -> None:
    run("spawn", "--name", "bad", "--", *worker("exits", 3))

    assert run("wait", "a1").code == 0
    assert run("wait", "bad", check=False).code == 7
    assert run("wait-all", check=False).code == 7
    assert run("result", "a1").code == 0
    assert run("result", "bad", check=False).code == 7
    given = [run("wait-any", check=False) for _ in range(3)]
    assert [done.code for done in given] == [0, 0, 6]
    assert {done.out.strip() for done in given[:2]} == {"a1 completed", "bad failed (exit_code 3)"}


@pytest.mark.parametrize(
    ("argv", "code"),
    [(worker("dies_by_signal", "SIGKILL"), 137), *alike((worker("exits", 0), 0), (worker("exits", 3), 3))],
    ids=["signal", "completed", "exit code"],
)
def test_spawn_wait_passes_the_exit_code_on(root: Path, argv: list[str], code: int) -> None:
    assert run("spawn", "--wait", "--", *argv, check=False).code == code


@pytest.mark.slow
def test_spawn_wait_of_a_worker_whose_time_is_up_does_not_end_like_ctrl_c(root: Path) -> None:
    limit = ("--timeout-seconds", "0.2")
    assert run("spawn", "--wait", *limit, "--", *worker("sleeps", 60), check=False).code == 124
    assert run("spawn", "--wait", *limit, "--shell", "trap 'exit 0' INT; sleep 60", check=False).code == 124


def test_spawn_wait_has_its_own_code_where_the_worker_has_none(root: Path) -> None:
    run("new", "Task", "--id", "t1")
    run("spawn", "--name", "bad", "--", *worker("exits", 3))

    done = run("spawn", "--wait", "--json", "--after", "bad", "--", *worker("exits", 0), check=False)

    assert done.code == 7
    assert (done.json["status"], done.json["reason"]) == ("failed", "dependency")


@pytest.mark.slow
def test_what_is_not_over_has_no_result_yet(root: Path) -> None:
    run("spawn", "--name", "a1", "--", *worker("sleeps", 60))
    wait_until(lambda: "ready" in run("logs", "a1").out, what="a1 to be ready")

    done = run("result", "a1", check=False)

    assert (done.code, done.out) == (1, "ready\n")
    assert "a1 is running" in error_of(done)[0]
    assert run("wait", "a1", "--timeout-seconds", "0.1", check=False).code == 4
    assert run("wait-any", "--timeout-seconds", "0.1", check=False).code == 4
    run("cancel", "a1")


def test_at_the_cap_the_exit_code_is_its_own(root: Path) -> None:
    run("new", "Task", "--max-concurrent", "1")
    run("spawn", "--name", "a1", "--", *worker("sleeps", 60))

    done = run("spawn", "--", *worker("exits", 0), check=False)

    assert done.code == 5
    assert error_of(done)[0] == "1 of 1 slots are in use: a1"
    assert "--queue" in error_of(done)[1]
    run("cancel", "--all")


# -- interrupts ----------------------------------------------------------------------------------------------


def watches(process: subprocess.Popen[str]) -> bool:
    """Whether a command sleeps in its wait: it watches a folder, or has been asleep for a while."""
    folder = Path(f"/proc/{process.pid}/fd")
    if not folder.exists():
        return psutil.Process(process.pid).status() == psutil.STATUS_SLEEPING
    links = []
    for descriptor in folder.iterdir():
        try:
            links.append(os.readlink(descriptor))
        except FileNotFoundError:
            continue  # closed between the two looks
    return any("inotify" in link for link in links)


@pytest.mark.parametrize("command", ["wait-any", *alike("wait", "wait-all")])
def test_ctrl_c_ends_a_wait_and_nothing_else(root: Path, command: str) -> None:
    run("spawn", "--name", "a1", "--", *worker("sleeps", 60))
    waiting = start(command, *(["a1"] if command == "wait" else []))
    wait_until(lambda: watches(waiting), what="the command to wait")

    waiting.send_signal(signal.SIGINT)
    out, err = waiting.communicate(timeout=20)

    assert (waiting.returncode, out, err) == (130, "", "interrupted\n")
    assert run("list", "--json").json[0]["status"] == "running"
    run("cancel", "a1")


def test_ctrl_c_of_spawn_wait_leaves_the_worker_and_says_so(root: Path) -> None:
    waiting = start("spawn", "--wait", "--name", "a1", "--", *worker("sleeps", 60))
    assert waiting.stdout is not None
    assert waiting.stdout.readline().startswith("a1 running (pid ")

    waiting.send_signal(signal.SIGINT)
    _, err = waiting.communicate(timeout=20)

    assert waiting.returncode == 130
    assert "a1 left running" in err
    assert "agentctl cancel a1" in err
    assert run("list", "--json").json[0]["status"] == "running"
    run("cancel", "a1")


# -- nobody reads, nothing can be written --------------------------------------------------------------------


def without_reader(*args: str) -> tuple[int | None, str]:
    """Run a command whose stdout is a pipe that nobody reads; return its exit code and stderr."""
    reader, writer = os.pipe()
    os.close(reader)
    process = start(*args, stdout=writer)
    os.close(writer)
    _, err = process.communicate(timeout=20)
    return process.returncode, err


@pytest.mark.parametrize(
    "args", [("list",), ("--help",), *alike((("list", "--json"),), (("show", "a1"),), (("events",),))], ids=" ".join
)
def test_a_reader_that_left_is_no_error_to_tell(ended: Path, args: tuple[str, ...]) -> None:
    assert without_reader(*args) == (1, "")


def test_an_end_that_nobody_read_is_given_again(ended: Path) -> None:
    assert without_reader("wait-any")[0] == 1

    assert run("wait-any").out.startswith("a1 completed")
    assert run("wait-any", check=False).code == 6


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_below_stdout_is_told_and_loses_nothing(ended: Path) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        process = start("wait-any", stdout=full.fileno())
        _, err = process.communicate(timeout=20)

    assert process.returncode == 1
    assert err.startswith("error: No space left on device\nhint: ")
    assert run("wait-any").out.startswith("a1 completed")


def test_closed_standard_streams_harm_no_file(ended: Path) -> None:
    """With 1 and 2 closed, the first files opened would get these numbers, and be printed into."""
    run("list")  # It may have mended the roster.
    before = snapshot(ended)
    for closed in ("1>&-", "1>&- 2>&-", "0<&- 1>&- 2>&-"):
        line = f'exec "$@" {closed}'
        argv = ["sh", "-c", line, "sh", sys.executable, "-m", "agentctl", "list", "--json"]
        assert subprocess.run(argv, check=False).returncode == 0
    assert snapshot(ended) == before


# -- bugs ----------------------------------------------------------------------------------------------------

_BUG = """
import sys
from agentctl.interfaces.cli import app
def broken(argv):
    raise LookupError("this was not\\nforeseen")
app._dispatch = broken
sys.exit(app.main(["spawn", "--env", "TOKEN=secret", "--", "true"]))
"""


def run_with_a_bug(**env: str) -> subprocess.CompletedProcess[str]:
    """Run the program with an error in it that nothing foresees."""
    return subprocess.run(
        [sys.executable, "-c", _BUG], env={**os.environ, **env}, capture_output=True, text=True, check=False
    )


def test_a_bug_is_one_line_and_a_traceback_in_a_private_file(root: Path, tmp_path: Path) -> None:
    log = tmp_path / "home" / ".local" / "state" / "agentctl" / "bugs.log"

    done = [run_with_a_bug(), run_with_a_bug()]

    for each in done:
        assert (each.returncode, each.stdout) == (1, "")
        message, hint = each.stderr.splitlines()
        assert message == "error: this is a bug in agentctl: LookupError: this was not"
        assert hint == f"hint: the traceback is in {log}"
    text = log.read_text(encoding="utf-8")
    assert text.count("Traceback (most recent call last):") == 2
    assert "secret" not in text
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert stat.S_IMODE(log.parent.stat().st_mode) == 0o700


def test_a_traceback_goes_through_no_link_and_never_gets_lost(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "somebody-else"
    other.write_text("theirs")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    fallback = temporary / f"agentctl-{os.geteuid()}-bugs.log"
    state = tmp_path / "state"
    state.write_text("not a folder")

    written = run_with_a_bug(XDG_STATE_HOME=str(state), TMPDIR=str(temporary))
    assert f"hint: the traceback is in {fallback}" in written.stderr
    assert "LookupError" in fallback.read_text(encoding="utf-8")

    fallback.unlink()
    fallback.symlink_to(other)
    printed = run_with_a_bug(XDG_STATE_HOME=str(state), TMPDIR=str(temporary))
    assert printed.returncode == 1
    assert "Traceback (most recent call last):" in printed.stderr
    assert other.read_text() == "theirs"


def test_windows_is_refused_before_anything_is_loaded(root: Path) -> None:
    code = (
        "import os, sys; from agentctl.interfaces.cli.app import main; os.name = 'nt'; code = main(['list']);"
        "os.name = 'posix'; assert 'typer' not in sys.modules; sys.exit(code)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: agentctl does not run on Windows\n")
