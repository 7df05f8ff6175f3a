"""At stake: what lists, waits, screens and settings say comes next is accepted where they say it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.advice import follow
from tests.agent_steps import agent, agent_world, blocked, define, inside
from tests.life import kill_shims, set_config, state_of
from tests.shells import define_shells
from tests.steps import Task, new_task, row, spawn, statuses
from tests.support import PROGRAM, run, start, wait_until, worker
from tests.terminal import Terminal

pytestmark = pytest.mark.slow

LOST = "agentctl resume --lost"


def watched(word: str) -> str:
    """Return the first line of `watch --plain` that has a word."""
    process = start("watch", "--plain")
    assert process.stdout is not None
    line = next(line for line in process.stdout if word in line)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    return line


def stranded() -> Task:
    """Make a task in which nothing lives, and one worker could start at once, had it an environment."""
    task = new_task(cap=1)
    spawn(worker("sleeps", 100), name="a")
    spawn(["true"], "--queue", name="b")
    pid = run("show", "a", "--json").json["pid"]
    kill_shims(task, "a")
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: state_of(pid), accept=lambda state: state in "gone Z", what="its end")
    for blob in (Path(os.environ["XDG_RUNTIME_DIR"]) / "agentctl").iterdir():
        blob.unlink()
    return task


def told_by(*command: str) -> str:
    """Return the first line that a command says on stderr before it ends, and that names a way on."""
    process = start(*command)
    assert process.stderr is not None
    line = next(line for line in process.stderr if LOST in line)
    process.kill()
    process.communicate()
    return line


# -- a queue that stands still -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(
            ["list"], marks=pytest.mark.follows("interfaces/commands/show/list.list_task: agentctl resume --lost")
        ),
        pytest.param(
            ["wait", "b"], marks=pytest.mark.follows("interfaces/commands/wait/wait._following: agentctl resume --lost")
        ),
        pytest.param(
            ["wait-any", "b"],
            marks=pytest.mark.follows("interfaces/commands/wait/wait_any._next: agentctl resume --lost"),
        ),
        pytest.param(
            ["spawn", "--queue", "--wait", "--after", "b", "--", "true"],
            marks=pytest.mark.follows("interfaces/commands/start/spawn._stay: agentctl resume --lost"),
        ),
    ],
    ids=lambda command: command[0],
)
def test_who_is_stranded_goes_on(root: Path, command: list[str]) -> None:
    stranded()

    follow(told_by(*command), LOST)

    run("wait", "b")
    assert row("b")["status"] == "completed"


@pytest.mark.follows("interfaces/commands/watch/sentences.sentences_of: agentctl resume --lost")
def test_watch_says_who_is_stranded(root: Path) -> None:
    stranded()

    follow(watched("stranded"), f"{LOST} --task t1")

    run("wait", "b")


@pytest.mark.follows("interfaces/commands/watch/sentences._end: agentctl result")
def test_watch_says_what_is_ready_for_review(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent_world(tmp_path, monkeypatch)
    agent("say it")
    run("wait", "a")

    assert follow(watched("ready for review: "), "agentctl result a --task t1").out == "it\n"


@pytest.mark.follows("interfaces/commands/watch/fleet_changes.NO_WORKER: agentctl spawn")
def test_watch_of_nothing(root: Path) -> None:
    new_task()

    follow(watched("No worker yet"), "agentctl spawn -- COMMAND", put={"COMMAND": "true"})

    run("wait-all")


@pytest.mark.follows("interfaces/words/worker.respond_command: agentctl answer")
@pytest.mark.parametrize("command", [["interact", "list"], ["watch", "--plain"]], ids=["list", "watch"])
def test_a_question_is_answered_by_the_line_below_it(root: Path, command: list[str]) -> None:
    new_task()
    spawn(worker("asks", "--kind", "confirm", "Go on?"), name="q")
    blocked("q")
    shown = Terminal([*PROGRAM, *command], width=160)
    shown.until("ANSWER (ANSWER:")
    if command[0] == "watch":
        shown.interrupt()
    shown.end()
    text = shown.sent.decode()

    follow(text, "agentctl answer q --task t1 --id q1 ANSWER", put={"ANSWER": "yes"})

    run("wait", "q")


@pytest.mark.follows("interfaces/words/worker.respond_command: agentctl answer")
@pytest.mark.parametrize("command", [["list"], ["interact", "list"], ["watch", "--plain"]], ids=lambda words: words[0])
def test_a_question_of_a_root_that_was_named_is_answered_there(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    new_task()
    ask = "agentctl spawn --name child --wait -- agentctl interact ask --kind confirm 'Go on?'"
    spawn(["sh", "-c", ask], name="a")
    blocked("child")
    monkeypatch.delenv("AGENTCTL_ROOT")
    monkeypatch.chdir(tmp_path.parent)
    shown = Terminal([*PROGRAM, *command, "--root", str(root)], width=300)
    shown.until("ANSWER (ANSWER:")
    if command[0] == "watch":
        shown.interrupt()
    shown.end()

    line = f"agentctl answer child --task t1 --root {root} --id q1 ANSWER"
    follow(shown.sent.decode(), line, put={"ANSWER": "yes"})

    run("wait", "a", "--root", root)


@pytest.mark.follows("operations/show/queued_reasons.queued_part: agentctl wait")
def test_one_that_waits_for_nothing_that_is_seen_is_moved_by_a_wait(root: Path, tmp_path: Path) -> None:
    """Whoever has the queue's lock is about to start it."""
    task = new_task(cap=1)
    spawn(worker("exits", 0, "--after-file", tmp_path / "gate"), name="a")
    spawn(["true"], "--queue", name="b")
    os.kill(task.shim_of("a"), signal.SIGSTOP)
    pid = run("show", "a", "--json").json["pid"]
    (tmp_path / "gate").touch()
    wait_until(lambda: state_of(pid), accept=lambda state: state in "gone Z", what="its end")
    task.set_cap(2)
    run("doctor", check=False)  # It reads the file that was changed.
    told = run("why", "b")
    os.kill(task.shim_of("a"), signal.SIGCONT)

    follow(told, "agentctl wait b")

    assert row("b")["status"] == "completed"


# -- accounts and agents -----------------------------------------------------------------------------------------------


@pytest.mark.follows(
    "operations/doctor/gates._HELD_HINT: agentctl doctor --free-account",
    "operations/show/queued_reasons._account: agentctl doctor --free-account",
)
@pytest.mark.parametrize("view", ["doctor", "why"])
def test_an_account_that_is_held_is_freed(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, view: str
) -> None:
    task = agent_world(tmp_path, monkeypatch)
    set_config(task, cooldownSeconds=600)
    agent(f"once 429 {tmp_path / 'tried'}")
    task.has("agent.retrying", "a")
    agent("say late", "--queue", name="b")
    told = {
        name: run(*command, check=False).out for name, command in {"doctor": ["doctor"], "why": ["why", "b"]}.items()
    }
    words = {name: next(line for line in out.splitlines() if "--free-account" in line) for name, out in told.items()}
    name = shlex.split(words["doctor"].partition("--free-account ")[2])[0]

    follow(told[view], f"agentctl doctor --free-account {name}")
    for line in words.values():
        follow(line, f"agentctl doctor --free-account {name}", check=False)

    run("wait-all")
    assert set(statuses().values()) == {"completed"}


@pytest.mark.follows("operations/doctor/gates.examine_gates: agentctl doctor --close-breaker")
def test_a_breaker_that_doctor_tells_is_closed(root: Path) -> None:
    task = new_task()
    set_config(task, breakerFailures=1, breakerCooldownSeconds=60)
    define(root, "weak", "exit 1")
    run("spawn", "--agent", "weak", "--wait", "do", check=False)

    follow(run("doctor", check=False), "agentctl doctor --close-breaker weak")

    assert "--close-breaker" not in run("doctor", check=False).out


@pytest.mark.follows("operations/start/admission.refuse_elsewhere: agentctl subtask")
def test_who_is_held_to_limits_makes_a_task_below_its_own(root: Path) -> None:
    define_shells("shell")
    task = new_task()
    run("new", "Another", "--id", "other", "--no-use")
    set_config(task, maxWorkers=9)
    spawn(["sh", "-c", "agentctl spawn --task other -- true 2>&1; sleep 60"], name="a")
    wait_until(lambda: run("logs", "a").out, accept=lambda out: "hint:" in out, what="its refusal")

    told = run("logs", "a").out
    put = {"AGENT": "shell", "TITLE": ": below"}
    follow(told, 'agentctl subtask AGENT "TITLE" --task t1', put=put, env=inside(task, "a"))

    assert (task.path.parent / "below").is_dir()
    run("cancel", "a")


@pytest.mark.follows("operations/notify/target_report.test_target: agentctl wait-all")
def test_a_terminal_is_told_by_a_wait_on_it(root: Path) -> None:
    settings("notify: {targets: {here: {type: terminal, ways: [bell]}}}")
    new_task()
    spawn(["true"], "--wait", name="a")

    follow(run("notify", "test", "here", check=False), "agentctl wait-all")


# -- settings ----------------------------------------------------------------------------------------------------------


def settings(text: str) -> None:
    file = Path(os.environ["HOME"]) / ".config" / "agentctl" / "config.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text + "\n", encoding="utf-8")
    file.chmod(0o600)


@pytest.mark.follows("drivers/llm/providers.url_of: unset")
def test_a_mistaken_address_of_a_provider_is_taken_back(root: Path) -> None:
    new_task()
    command = [*map(shlex.quote, PROGRAM), "spawn", "--driver", "llm", "--model", "ollama/x", "hi"]
    told = run(*command[3:], env={"OLLAMA_HOST": "ftp://x"}, check=False)

    both = f"{follow_line(told, 'unset OLLAMA_HOST')}; {shlex.join(PROGRAM)} spawn --driver llm --model ollama/x hi"
    done = follow(both, both, env={"OLLAMA_HOST": "ftp://x"}, check=False)

    assert "OLLAMA_HOST" not in done.err
    run("cancel", "--all", check=False)


def follow_line(told: object, command: str) -> str:
    assert command in told.err  # type: ignore[attr-defined]
    return command


@pytest.mark.follows(
    "supervision/worker/environment._HINT: mkdir -m", "supervision/worker/environment._HINT: export XDG_RUNTIME_DIR"
)
def test_a_place_in_memory_of_ones_own(root: Path, tmp_path: Path) -> None:
    """The usual name is somebody else's, and no other can be kept."""
    told = 'mkdir -m 700 "$HOME/.agentctl-run" && export XDG_RUNTIME_DIR="$HOME/.agentctl-run"'
    from agentctl.supervision.worker.environment import _HINT

    assert told == _HINT
    new_task()
    line = f"{told}; {shlex.join(PROGRAM)} spawn --queue --wait -- true"

    follow(line, line)

    assert (Path(os.environ["HOME"]) / ".agentctl-run" / "agentctl").is_dir()


@pytest.mark.follows(
    "interfaces/screen/start/line_editor.editor_argv: export EDITOR",
    "interfaces/screen/acting/outside.pager_of: export PAGER",
    "interfaces/screen/start/line_editor.editor_argv: export",
)
def test_an_editor_and_a_pager_are_named(root: Path) -> None:
    checks = {
        "export EDITOR=vi": ("from agentctl.interfaces.screen.start.line_editor import editor_argv as named", {}),
        "export VISUAL=vi": (
            "from agentctl.interfaces.screen.start.line_editor import editor_argv as named",
            {"VISUAL": "'"},
        ),
        "export PAGER=less": (
            "from agentctl.interfaces.screen.acting.outside import pager_of as named",
            {"PAGER": "'"},
        ),
    }
    for command, (code, environ) in checks.items():
        look = f"{code}; import os; named(os.environ)"
        clean = {"VISUAL": None, "EDITOR": None, "PAGER": None, **environ}
        refused = subprocess.run(
            [sys.executable, "-c", look], env={k: v for k, v in {**os.environ, **clean}.items() if v is not None},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert "Refused" in refused.stderr, refused
        line = f"{command}; {shlex.join([sys.executable, '-c', look])}"
        follow(line, line, env=clean)
