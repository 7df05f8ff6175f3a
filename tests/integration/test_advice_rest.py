"""At stake: next steps that few people ever see help them, too."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from agentctl.adapters.taskdir import Root
from agentctl.errors import Refused
from agentctl.interfaces.editor.dialogs import way_to_answer
from agentctl.interfaces.editor.session.session_options import Choices, with_choice
from agentctl.interfaces.editor.session.session_view import EditorQuestion
from agentctl.operations.talk.interacting import list_questions
from tests.advice import follow
from tests.agent_steps import blocked, define
from tests.repositories import new_repository
from tests.steps import Task, new_task, spawn
from tests.support import PROGRAM, is_alive, run, start_argv, wait_until, worker
from tests.terminal import Terminal

pytestmark = pytest.mark.slow


# -- in an editor ------------------------------------------------------------------------------------------------------


@pytest.mark.follows("interfaces/editor/session/session_options.with_choice: agentctl trust")
def test_an_agent_that_an_editor_chooses_is_trusted(root: Path) -> None:
    new_task()
    define(root, "own", "exit 0")
    file = root / "agents" / "own.md"
    file.write_text(file.read_text().replace("Of a test.", "Changed."), encoding="utf-8")
    with pytest.raises(Refused) as refused:
        with_choice(Choices(), "agent", "own", Root(str(root)))

    follow(str(refused.value.hint), f"agentctl trust {file}")

    assert with_choice(Choices(), "agent", "own", Root(str(root))).agent == "own"


@pytest.mark.follows("interfaces/editor/dialogs._answer_command: agentctl answer")
def test_a_question_that_an_editor_cannot_show_is_answered_at_a_terminal(root: Path, tmp_path: Path) -> None:
    new_task()
    spawn(worker("asks", "--kind", "confirm", "Go on?"), name="q")
    blocked("q")
    (asked,) = list_questions(Root(str(root)))
    folder = Root(str(root)).task("t1").worker("q")
    told = way_to_answer(EditorQuestion(folder, asked.question, is_own=True))

    command = told.partition(" (ANSWER")[0]
    follow(told, command, put={"ANSWER": "yes"}, cwd=tmp_path, env={"AGENTCTL_ROOT": None})

    run("wait", "q")


# -- on a terminal -----------------------------------------------------------------------------------------------------


@pytest.mark.follows("interfaces/commands/watch/fleet_table._fitting: agentctl spawn")
def test_the_table_where_the_screen_is_not_installed(root: Path, tmp_path: Path) -> None:
    new_task()
    hiding = tmp_path / "hiding"
    hiding.mkdir()
    missing = "raise ModuleNotFoundError(\"No module named 'textual'\", name='textual')\n"
    (hiding / "textual.py").write_text(missing, encoding="utf-8")
    shown = Terminal([*PROGRAM, "watch"], width=120, env={"PYTHONPATH": str(hiding)})
    shown.until("agentctl spawn -- COMMAND starts one")
    shown.interrupt()
    shown.end()

    told = shown.sent.decode()
    follow(told, "agentctl spawn -- COMMAND", put={"COMMAND": "true"})

    run("wait-all")


@pytest.mark.follows("interfaces/commands/start/demo._start: agentctl demo --path")
def test_the_demo_of_another_folder(root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "one.py").write_text("def one():\n    return 1\n", encoding="utf-8")
    told = run("demo", "--path", tmp_path / "none", check=False)

    follow(told, "agentctl demo --path FOLDER", put={"FOLDER": str(folder)}, timeout=150)


# -- variables ---------------------------------------------------------------------------------------------------------


@pytest.mark.follows("worker_programs/agent_host/program/own_home._persons: unset")
def test_a_home_of_a_program_that_is_not_there_is_forgotten(root: Path) -> None:
    folder = "SimpleNamespace(variable='CODEX_HOME', usual='.codex')"
    imports = (
        "from types import SimpleNamespace; from agentctl.worker_programs.agent_host.program.own_home import _persons"
    )
    look = f"{imports}; _persons({folder})"
    argv = [sys.executable, "-c", look]
    env = {"CODEX_HOME": "/nowhere/at/all"}
    refused = subprocess.run(argv, env={**os.environ, **env}, capture_output=True, text=True, check=False)
    assert "there is no folder at that path" in refused.stderr

    line = f"unset CODEX_HOME; {shlex.join(argv)}"
    follow(line, line, env=env)


@pytest.mark.follows("operations/doctor/models._without_key: export")
def test_a_key_that_is_missing_is_exported(root: Path) -> None:
    file = Path(os.environ["HOME"]) / ".config" / "agentctl" / "providers.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("providers: {own: {url: 'http://192.0.2.1:1/v1', keyVariable: OWN_KEY}}\n", encoding="utf-8")
    file.chmod(0o600)
    told = run("doctor", check=False)
    assert "OWN_KEY is not set" in told.out

    line = f"{follow_to(told.out, 'export OWN_KEY=KEY')}; {shlex.join(PROGRAM)} doctor"
    assert "OWN_KEY is not set" not in follow(line, line, put={"=KEY": "=secret"}, check=False).out


def follow_to(text: str, command: str) -> str:
    assert command in text
    return command


def test_an_entry_for_the_boot_is_made_with_a_shorter_path(root: Path, tmp_path: Path) -> None:
    new_task()
    path = os.pathsep.join([os.environ["PATH"], *(f"/nowhere/{'x' * 50}/{number}" for number in range(30))])
    told = run("install", "boot", env={"PATH": path, "XDG_RUNTIME_DIR": str(tmp_path / "run")}, check=False)
    if told.code == 0:
        pytest.skip("there is an instance of systemd, whose units may be longer")

    command = told.err.partition("hint: call it with a shorter PATH: ")[2].strip()
    assert "@reboot" in follow(told, command).out


# -- leftovers ---------------------------------------------------------------------------------------------------------


@pytest.mark.follows("operations/doctor/orphans.examine_orphans: kill")
def test_what_seems_to_be_of_a_task_that_is_gone_is_ended(root: Path) -> None:
    new_task()
    folder = root / "tasks" / "gone" / "agents" / "a"
    names = {"AGENTCTL_AGENT_DIR": str(folder), "AGENTCTL_COOKIE": "0" * 32}
    left = start_argv(["sleep", "60"], env=names)

    told = run("doctor", check=False)
    follow(told, f"kill -9 {left.pid}")

    left.wait(timeout=20)
    assert str(left.pid) not in run("doctor", check=False).out


@pytest.mark.follows("operations/doctor/worktrees._scratch: agentctl doctor --fix")
def test_what_a_killed_look_has_left_is_removed(root: Path, tmp_path: Path) -> None:
    repository = new_repository(tmp_path / "repository")
    task: Task = new_task()
    spawn(["true"], "--worktree", "--cwd", repository, "--wait", name="w")
    wait_until(lambda: is_alive(task.shim_of("w")), accept=lambda alive: not alive, what="its shim to leave")
    scratch = task.agent("w") / "changes.4194300.abcdefgh.scratch"
    scratch.mkdir()

    follow(run("doctor", check=False), "agentctl doctor --fix", check=False)

    assert not scratch.exists()
