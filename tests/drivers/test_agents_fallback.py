"""At stake: without a working app-server, Codex works in another way, says so, and only if nobody has to be asked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.agent_steps import activity, agent_world, ends, rebuilds_the_same
from tests.life import kill_shims, kill_tree, leader_of, set_config
from tests.steps import Task, statuses
from tests.support import WORKERS, Completed, run, start_argv, wait_until


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    task = agent_world(tmp_path, monkeypatch)
    program = tmp_path / "bin" / "codex"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {WORKERS / "codex_program.py"} "$@"\n', encoding="utf-8")
    program.chmod(0o700)
    return task


def codex(prompt: str, *options: str | Path, agent: str = "general", app_server: str = "") -> Completed:
    chosen = ["--agent", agent, "--driver", "codex", "--name", "a", *options]
    return run("spawn", *chosen, prompt, env={"APP_SERVER": app_server})


def shown() -> dict[str, Any]:
    told: dict[str, Any] = run("show", "a", "--json").json
    return told


def works(task: Task) -> None:
    wait_until(lambda: (task.agent("a") / "activity.jsonl").exists() and "item_0" in str(activity(task)), what="work")


def test_it_runs_the_other_way_and_says_so(task: Task) -> None:
    codex("say hello", "--permissions", "allow")
    end = ends()
    assert (end["status"], end["result"]["finalMessage"]) == ("completed", "hello")
    assert end["result"]["usage"] == {"input": 7, "output": 5, "cached": 3}
    assert end["result"]["sessionId"] == "thread-1"
    fallback = shown()["fallback"]
    assert fallback["driver"] == "codex exec"
    assert "unrecognized subcommand" in fallback["why"]
    words, note = (row["text"] for row in activity(task) if row["type"] == "note")
    assert (words, "`codex app-server` could not begin" in note) == ("last words", True)
    assert "codex exec" in run("logs", "a").out
    assert "could not begin" in run("tree", "--expand", "all").out
    rebuilds_the_same(task)


#: A daemon that holds the lock of a session, as Codex's does after its screen was left.
HOLDS = """
import fcntl, signal, sys
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
signal.pause()
"""


def test_a_session_that_another_codex_holds_is_named_with_its_holder_and_the_command_frees_it(
    task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    codex("say hello", "--permissions", "allow")
    ends()
    lock = tmp_path / "codex/thread-writer-locks/thread-1.lock"
    lock.parent.mkdir(parents=True)
    daemon = start_argv([sys.executable, "-c", HOLDS, str(lock)])
    assert daemon.stdout is not None
    assert daemon.stdout.readline() == "held\n"
    refused = run("resume", "a", "say more", check=False)
    assert refused.code == 1
    assert f"pid {daemon.pid} ({sys.executable} -c" in refused.err
    assert f"hint: kill {daemon.pid}\n" in refused.err
    assert list(statuses()) == ["a"], "nothing was started"
    finding = next(one for one in run("doctor", "--json", check=False).json if one["where"].endswith("/a"))
    assert (finding["severity"], finding["next"]) == ("note", f"kill {daemon.pid}")
    subprocess.run(refused.err.rpartition("hint: ")[2].split(), check=True)
    daemon.wait(20)
    run("resume", "a", "say more")
    run("wait", "a-1")
    assert run("result", "a-1").out == "more\n"


def test_the_line_that_opens_its_session_works_from_here_and_is_there_where_its_program_is(
    task: Task, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codex("say hello", "--permissions", "allow")
    ends()
    assert shown()["openSession"] == run("result", "a", "--json").json["openSession"] == "codex resume thread-1"
    assert "\nopenSession: codex resume thread-1\n" in run("show", "a").out
    here = os.getcwd()
    (tmp_path / "else where").mkdir()
    monkeypatch.chdir(tmp_path / "else where")
    line = run("show", "a", "--root", root, "--json").json["openSession"]
    assert line == f"cd {here} && codex resume thread-1"
    (tmp_path / "bin" / "codex").unlink()
    assert run("show", "a", "--root", root, "--json").json["openSession"] is None


def test_only_what_would_be_accepted_is_proposed_for_a_run_that_continues_another(task: Task) -> None:
    codex("say hello", "--permissions", "allow")
    ends()
    run("resume", "a", "hang")
    run("cancel", "a-1")
    ways = [one["command"] for one in run("why", "a-1", "--json").json["waysOut"]]
    assert any("resume a-1" in one for one in ways)
    assert not any("retry" in one for one in ways)
    assert "continues an earlier run" in run("retry", "a-1", check=False).err


def test_its_model_is_told_where_agentctl_is_since_its_shells_set_path_anew(task: Task) -> None:
    codex("argv", agent="explore")
    (told,) = (word for word in json.loads(ends()["result"]["finalMessage"]) if word.startswith("developer_instruc"))
    assert f"`agentctl` is {Path(sys.executable).with_name('agentctl')}: " in told


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "cause", "way_out"),
    [
        ([], "asks nobody", "--permissions allow or deny"),
        (["--permissions", "allow", "--keep"], "cannot honour keep", "a Codex whose app-server starts"),
        (["--permissions", "allow", "--max-turns", "3"], "cannot honour maxTurns", "a Codex whose app-server starts"),
    ],
)
def test_what_the_other_way_cannot_keep_to_is_not_started(
    task: Task, options: list[str], cause: str, way_out: str
) -> None:
    codex("say hello", *options)
    end = ends()
    assert (end["status"], end["reason"]) == ("failed", "not_started")
    assert all(part in end["message"] for part in ("app-server` could not begin", cause, way_out)), end["message"]
    assert not Path("was-executed").exists()
    assert shown()["fallback"] is None


def test_a_limit_that_could_not_hold_is_not_passed_by(task: Task) -> None:
    set_config(task, maxTokens=1000)
    codex("say hello", "--permissions", "allow")
    end = ends()
    assert (end["reason"], "maxTokens cannot be enforced" in end["message"]) == ("not_started", True)
    assert not Path("was-executed").exists()


@pytest.mark.slow
def test_an_older_protocol_is_no_beginning_either(task: Task) -> None:
    codex("say hello", "--permissions", "allow", app_server="older")
    assert ends()["result"]["finalMessage"] == "hello"
    assert "unknown variant" in shown()["fallback"]["why"]
    rebuilds_the_same(task)


def test_one_that_may_only_read_is_asked_nothing_anyway(task: Task) -> None:
    codex("argv", agent="explore")
    argv = json.loads(ends()["result"]["finalMessage"])
    assert argv[argv.index("--sandbox") + 1] == "read-only"
    assert {"--ignore-rules", "mcp_servers.persons.enabled=false"} <= {*argv}


def test_one_that_knows_no_walls_is_not_let_in(task: Task) -> None:
    codex("say hello", "--permissions", "allow", app_server="loose")
    end = ends()
    assert (end["status"], end["reason"]) == ("failed", "not_started")
    assert "permissions" in end["message"]
    assert not Path("was-executed").exists()


def test_a_turn_that_may_have_begun_is_not_begun_once_more(task: Task) -> None:
    codex("say hello", "--permissions", "allow", app_server="dies")
    end = ends()
    assert (end["status"], end["reason"]) == ("failed", "exit_code")
    assert not Path("was-executed").exists()


@pytest.mark.slow
def test_a_message_cannot_reach_it_and_is_there_for_who_continues_it(task: Task) -> None:
    codex("hang", "--permissions", "allow")
    works(task)
    sent = run("send", "a", "look into tests/ too")
    assert "takes no messages" in sent.err
    run("cancel", "a")
    assert statuses() == {"a": "cancelled"}
    run("resume", "a", "prompt", "--name", "b")
    assert ends("b")["result"]["finalMessage"].split("\n\n")[-2:] == ["look into tests/ too", "prompt"]


@pytest.mark.slow
def test_what_was_sent_while_it_could_not_begin_is_said(task: Task, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    codex("first", "--permissions", "allow", app_server=f"waits {gate}")
    run("send", "a", "prompt")
    wait_until((task.agent("a") / "inbox" / "read").exists, what="the message to be read")
    gate.touch()
    assert ends()["result"]["finalMessage"].split("\n\n") == ["first", "prompt"]
    rebuilds_the_same(task)


@pytest.mark.slow
def test_whoever_is_cancelled_before_it_began_does_not_begin(task: Task, tmp_path: Path) -> None:
    codex("say hello", "--permissions", "allow", app_server=f"waits {tmp_path / 'never'}")
    wait_until((task.agent("a") / "dialogue.jsonl").exists, what="the app-server")
    run("cancel", "a")
    assert statuses() == {"a": "cancelled"}
    assert not Path("was-executed").exists()


@pytest.mark.slow
def test_a_continued_thread_counts_its_tokens_once(task: Task) -> None:
    codex("say one", "--permissions", "allow")
    ends()
    run("resume", "a", "argv", "--name", "b")
    result = ends("b")["result"]
    assert json.loads(result["finalMessage"])[-3:] == ["resume", "thread-1", "-"]
    assert result["usage"] == {"input": 7, "output": 5, "cached": 3}


@pytest.mark.slow
def test_every_attempt_finds_its_way_anew(task: Task, tmp_path: Path) -> None:
    options = ["--retries", "2", "--retry-delay-seconds", "0.05"]
    codex(f"once {tmp_path / 'tried'}", "--permissions", "allow", *options)
    end = ends()
    assert (end["status"], end["attempt"]) == ("completed", 2)
    ids = [row["id"] for row in activity(task) if row["type"] != "usage"]
    assert len(ids) == len(set(ids)) == 2 * len(["last words", "fallback", "answer"]) + len(["the error"])
    rebuilds_the_same(task)


#: As Codex's sandbox makes them.
MOUNT_POINTS = {".agents", ".aws", ".codex", ".git"}


def _mount_points(folder: Path) -> list[str]:
    return sorted(set(os.listdir(folder)) & MOUNT_POINTS)


def _leaves_mount_points(task: Task, tmp_path: Path, *options: str) -> tuple[Path, Path]:
    """Start an agent in whose working folder there is an empty `.aws`; return that folder and its outbox."""
    folder, outbox = tmp_path / "work", task.agent("a") / "outbox"
    (folder / ".aws").mkdir(parents=True)
    codex(f"mounts {outbox}", "--permissions", "allow", "--cwd", folder, *options)
    works(task)
    assert len(_mount_points(folder)) == len(_mount_points(outbox)) == 4
    return folder, outbox


@pytest.mark.parametrize("end", ["cancel", "timeout", "kill"])
def test_what_a_killed_sandbox_leaves_is_removed_by_whoever_decides_the_end(
    task: Task, tmp_path: Path, end: str
) -> None:
    folder, outbox = _leaves_mount_points(task, tmp_path, *(["--timeout-seconds", "4"] if end == "timeout" else []))
    (folder / ".codex" / "rules").touch()
    if end == "kill":
        kill_shims(task, "a")
        kill_tree(leader_of(task, "a").pid)
    elif end == "cancel":
        run("cancel", "a")
    assert run("wait", "a", check=False).code
    assert _mount_points(folder) == [".aws", ".codex"], "what was there before, and what holds something"
    assert _mount_points(outbox) == []
    assert run("doctor", check=False).code == 0


def test_an_empty_folder_in_an_outbox_is_no_damage(task: Task) -> None:
    codex("say hello", "--permissions", "allow")
    ends()
    (task.agent("a") / "outbox" / ".git").mkdir()
    assert [one for one in run("doctor", "--json").json if one["severity"] in {"error", "warning"}] == []
    (task.agent("a") / "outbox" / "link").symlink_to(".git")
    assert "link is not a file, but a" in run("doctor", check=False).out
    (task.agent("a") / "outbox" / "link").unlink()
    (task.agent("a") / "outbox" / ".git" / "config").touch()
    assert "is not a file, but a folder" in run("doctor", check=False).out


def test_what_is_a_wall_of_another_sandbox_stays(task: Task, tmp_path: Path) -> None:
    script = 'mount --bind "$1" "$1" && echo mounted && exec sleep 60'
    folder, _ = _leaves_mount_points(task, tmp_path / "a b")
    sandbox = start_argv(["unshare", "-rm", "sh", "-c", script, "sh", str(folder / ".codex")])
    assert sandbox.stdout is not None
    if sandbox.stdout.readline() != "mounted\n":
        pytest.skip("this machine allows no mount namespace")
    run("cancel", "a")
    assert _mount_points(folder) == [".aws", ".codex"]
    sandbox.kill()
