"""At stake: what is shown of how a command is typed can be typed, and does what it was shown for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.advice import follow
from tests.agent_steps import agent, agent_world, define, inside, plays
from tests.shells import define_shells
from tests.steps import Task, new_task, row, spawn, statuses
from tests.support import PROGRAM, Completed, run, start, start_argv, wait_until, worker
from tests.terminal import on_a_terminal

pytestmark = pytest.mark.slow

EXPLORE = 'agentctl spawn --agent explore "WHAT TO DO"'


@pytest.fixture
def world(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    """Make a task where an agent program can be started."""
    return agent_world(tmp_path, monkeypatch)


@pytest.fixture
def folder(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a working folder with a space in its path."""
    folder = tmp_path / "a folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


# -- a command without what it needs -----------------------------------------------------------------------------------


@pytest.mark.follows(
    "operations/start/agent_order.make_order: agentctl spawn --agent",
    "interfaces/commands/start/spawn._PROMPT_FIRST: agentctl spawn --agent",
    "interfaces/cli/typer_commands._check_prompt: agentctl spawn --agent",
    "interfaces/cli/typer_commands._check_prompt: agentctl spawn",
)
def test_each_form_of_a_start_starts(world: Task) -> None:
    follow(run("spawn", "--agent", "explore", "", check=False), EXPLORE, put={"WHAT TO DO": "say it"})
    told = run("spawn", "--model", "m", "--", "true", check=False)
    follow(told, 'agentctl spawn --agent explore "Where are the tests?"')
    one = run("spawn", "true", check=False)
    follow(one, "agentctl spawn -- true")
    follow(one, "agentctl spawn --agent general true")
    several = run("spawn", "make", "it", check=False)
    follow(several, EXPLORE, put={"WHAT TO DO": "say it"})
    follow(several, "agentctl spawn [OPTIONS] -- CMD ARGS...", put={"[OPTIONS]": "", "CMD ARGS...": "true"})

    assert len(statuses()) == 6
    run("wait-all", check=False)


@pytest.mark.follows(
    "operations/wait/waiting.wait_all: agentctl spawn",
    "operations/where/calling.caller_or_refuse: agentctl spawn",
    "operations/start/requests.check_program: agentctl spawn",
)
def test_where_no_worker_is_one_is_started(root: Path) -> None:
    new_task()

    follow(run("wait-all", check=False), "agentctl spawn -- COMMAND", put={"COMMAND": "true"})
    follow(run("inbox", check=False), "agentctl spawn -- COMMAND", put={"COMMAND": "true"})
    empty = run("spawn", "--batch", "-", stdin='{"argv": [""]}', check=False)
    follow(empty, "agentctl spawn -- COMMAND", put={"COMMAND": "true"})

    run("wait-all")
    assert len(statuses()) == 3


@pytest.mark.follows(
    "operations/where/chosen_task.none_chosen: agentctl new",
    "interfaces/commands/start/tasks._refuse_without_template: agentctl new",
    "operations/start/from_template.start_template: agentctl new --template",
)
def test_where_no_task_is_one_is_made(root: Path) -> None:
    run("new", "First", "--no-use")
    follow(run("list", check=False), 'agentctl new "TITLE"')
    run("list")
    follow(run("new", check=False), 'agentctl new "TITLE"')

    told = run("spawn-template", check=False)
    follow(told, "agentctl new --template NAME", put={"NAME": "survey --set path=."})

    run("spawn-template")
    run("cancel", "--all")


@pytest.mark.follows(
    "interfaces/commands/steer/report._too_many: agentctl report progress",
    "interfaces/commands/steer/report.percent_in: agentctl report progress",
    "operations/talk/reporting.report_progress: agentctl report progress",
    "operations/talk/reporting.report_result: agentctl report result --summary --file",
)
def test_each_form_of_a_report_is_taken(root: Path, folder: Path) -> None:
    task = new_task()
    spawn(worker("sleeps", 60), name="a")
    env = inside(task, "a")
    (folder / "made").touch()

    def report(*words: str) -> Completed:
        return run("report", *words, env=env, check=False)

    follow(report("progress", "one", "two"), 'agentctl report progress 40 "reading the tests"', env=env)
    assert row("a")["progress"]["percent"] == 40
    follow(report("progress", "1/0"), "agentctl report progress 1/4 TEXT", put={"TEXT": "it"}, env=env)
    assert row("a")["progress"]["percent"] == 25
    follow(report("progress", ""), "agentctl report progress 40 'reading'", env=env)
    put = {"TEXT": "done", "PATH": "made"}
    follow(report("result"), "agentctl report result --summary TEXT --file PATH", put=put, env=env)

    assert run("show", "a", "--json").json["result"]["summary"] == "done"
    run("cancel", "a")


def shown(command: str) -> str:
    """Return what a command prints on a terminal."""
    return on_a_terminal([*PROGRAM, command])[1].decode().replace("\r", "")


# -- what comes next ---------------------------------------------------------------------------------------------------


@pytest.mark.follows(
    "interfaces/cli/typer_commands._EXAMPLES: agentctl new",
    "interfaces/cli/typer_commands._EXAMPLES: agentctl spawn --name",
    "interfaces/cli/typer_commands._EXAMPLES: agentctl wait-all",
)
def test_the_examples_of_help_work_one_after_the_other(root: Path, folder: Path) -> None:
    told = run("help", "all")

    follow(told, 'agentctl new "Survey the auth module"')
    follow(told, "agentctl spawn --name size -- du -sh .")

    assert follow(told, "agentctl wait-all && agentctl result size").out.endswith("\t.\n")


@pytest.mark.follows(
    "interfaces/commands/show/list.list_task: agentctl spawn", "interfaces/commands/start/tasks._table: agentctl new"
)
def test_what_a_terminal_is_told_where_nothing_is(root: Path, folder: Path) -> None:
    (root / "tasks").mkdir(parents=True)

    follow(shown("tasks"), 'agentctl new "TITLE"')
    follow(shown("list"), "agentctl spawn -- COMMAND", put={"COMMAND": "true"})

    run("wait-all")


@pytest.mark.follows("interfaces/commands/show/tree.tree: agentctl activity --json")
def test_what_is_followed_as_json_is_the_activity_of_a_worker(root: Path) -> None:
    new_task()
    spawn(["true"], "--wait", name="a")

    told = run("tree", "--follow", "--json", check=False)
    follow(told, "agentctl activity INSTANCE -f --json", put={"INSTANCE": "a"})


@pytest.mark.follows("interfaces/commands/show/timeline._written: mkdir -p")
def test_a_missing_folder_is_made(root: Path, folder: Path) -> None:
    new_task()
    spawn(["true"], "--wait", name="a")
    command = ["timeline", "--svg", "no such/folder/it.svg"]

    follow(run(*command, check=False), f"mkdir -p '{folder}/no such/folder'")

    run(*command)


@pytest.mark.follows("interfaces/commands/show/result._notes: agentctl result --max-bytes")
def test_the_rest_of_a_cut_result(world: Task) -> None:
    agent(f"say {'x' * 3000}")
    run("wait", "a")
    (world.agent("a") / "texts").touch()  # The whole cannot be kept as a file.
    told = run("result", "a", "--max-bytes", "100")

    assert "x" * 3000 in follow(told, "agentctl result a --max-bytes 3000").out


@pytest.mark.follows("supervision/dispatch/dispatch._ways_on: agentctl wait-any")
def test_at_the_cap_the_next_end_is_waited_for(root: Path, tmp_path: Path) -> None:
    new_task(cap=1)
    spawn(worker("exits", 0, "--after-file", tmp_path / "gate"), name="a")
    refused = spawn(["true"], name="b", check=False)
    (tmp_path / "gate").touch()

    follow(refused, "agentctl wait-any")

    run("spawn", "--wait", "--", "true")


@pytest.mark.follows("operations/show/activity.rebuild: agentctl wait")
def test_what_is_being_written_is_rebuilt_after_its_end(world: Task) -> None:
    agent("say it", "--keep")
    refused = run("activity", "a", "--rebuild", check=False)
    run("send", "a", "--close")

    follow(refused, "agentctl wait a")

    run("activity", "a", "--rebuild")


# -- sub-tasks ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def shells(root: Path) -> Task:
    """Make a task, and define agents whose prompt is a script."""
    define_shells("shell", "other")
    return new_task(cap=2)


@pytest.mark.follows(
    "operations/show/further_runs._of_retry: agentctl subtask",
    "operations/start/spawning._check_bound: agentctl subtask",
    "operations/start/spawning._check_bound: agentctl spawn",
    "operations/delegate/subtasks.begin_subtask: agentctl subtask",
)
def test_what_a_subtask_does_not_take_is_started_elsewhere(shells: Task) -> None:
    run("subtask", "shell", ": one", "--json")

    retried = run("retry", "shell-1", "--task", "one", check=False)
    follow(retried, 'agentctl subtask shell "TITLE" --task t1', put={"TITLE": ": two"})
    other = run("spawn", "--task", "one", "--agent", "other", "true", check=False)
    follow(other, 'agentctl subtask --task one other "TITLE"', put={"TITLE": ": three"})
    command = run("spawn", "--task", "one", "--", "true", check=False)
    follow(command, "agentctl spawn --task t1", put={"--task t1": "--task t1 -- true"})
    empty = run("subtask", "shell", " ", check=False)
    follow(empty, 'agentctl subtask explore "WHAT TO DO"', put={"explore": "shell", "WHAT TO DO": ": four"})

    run("wait-all")


def of_task(name: str) -> dict[str, str]:
    """Return instance -> status in a task that may not be there yet."""
    told = run("list", "--task", name, "--json", check=False)
    return {one["agentInstance"]: one["status"] for one in told.json} if told.code == 0 else {}


@pytest.mark.follows(
    "interfaces/commands/start/subtask._interrupted: agentctl wait-all",
    "interfaces/commands/start/subtask._interrupted: agentctl cancel --all",
)
def test_an_interrupted_subtask_is_waited_for_or_cancelled(shells: Task, tmp_path: Path) -> None:
    def interrupted(title: str) -> str:
        script = f"until [ -e {tmp_path}/{title} ]; do sleep 0.1; done"
        process = start("subtask", "shell", f": {title}", "--intent", script)
        wait_until(lambda: of_task(title), accept=lambda found: "running" in found.values(), what="it to run")
        process.send_signal(signal.SIGINT)
        return process.communicate(timeout=20)[1]

    told = interrupted("one")
    (tmp_path / "one").touch()
    follow(told, "agentctl wait-all --task one")
    follow(interrupted("two"), "agentctl cancel --all --task two")

    assert of_task("two") == {"shell-1": "cancelled"}


@pytest.mark.follows("interfaces/commands/start/subtask._notes: agentctl result --max-bytes")
def test_the_rest_of_a_cut_answer(world: Task, tmp_path: Path) -> None:
    script = """
import os, pathlib
(pathlib.Path(os.environ["AGENTCTL_AGENT_DIR"]) / "texts").touch()  # The whole cannot be kept as a file.
me.result("x" * 9000)
"""
    told = run("subtask", "general", plays(tmp_path, script))
    (task_id,) = (path.name for path in world.path.parent.iterdir() if path.name != "t1")

    command = f"agentctl result general-1 --task {task_id} --max-bytes 9000"
    assert "x" * 9000 in follow(told, command).out


# -- further runs ------------------------------------------------------------------------------------------------------


@pytest.mark.follows(
    "operations/show/further_runs._of_resume: agentctl retry",
    "operations/start/again.start_anew: agentctl retry",
)
def test_a_command_is_retried_in_place_of_resumed(root: Path) -> None:
    new_task()
    spawn(["true"], "--wait", name="a")

    follow(run("resume", "a", check=False), "agentctl retry a")

    run("wait-all")
    assert statuses() == {"a": "completed", "a-2": "completed"}
    assert run("show", "a", "--json").json["furtherRuns"] == {"retry": True, "resume": False}


@pytest.mark.follows(
    "operations/show/further_runs._of_retry: agentctl resume",
    "operations/show/further_runs._of_resume: agentctl send",
    "operations/delegate/resuming.resume_worker.start: agentctl send",
    "supervision/worker/inboxes.put_message: agentctl result",
)
def test_an_agent_is_continued_while_it_works_and_afterwards(world: Task) -> None:
    agent("say one", "--keep")
    working = run("resume", "a", "more", check=False)
    follow(working, "agentctl send a TEXT", put={"TEXT": "'say two'"})
    run("send", "a", "--close")
    run("wait", "a")
    assert follow(run("send", "a", "late", check=False), "agentctl result a").out == "two\n"

    run("resume", "a", "hang")
    follow(run("resume", "a", "say more", check=False), "agentctl send a-1 TEXT", put={"TEXT": "more"})
    run("cancel", "--all")

    again = run("retry", "a-1", check=False)
    follow(again, "agentctl resume a-1 TEXT", put={"TEXT": "'say three'"})
    run("cancel", "--all")


# -- whose it is -------------------------------------------------------------------------------------------------------


def forget_marks() -> None:
    for mark in (Path(os.environ["HOME"]) / ".config" / "agentctl" / "own").iterdir():
        mark.unlink()


@pytest.mark.follows(
    "operations/where/ownership.check_own: agentctl new",
    "operations/where/chosen_task.refuse_foreign_choice: agentctl new",
)
@pytest.mark.parametrize("way", ["new", "trust"])
def test_where_the_task_is_somebody_elses(root: Path, way: str) -> None:
    task = new_task()
    forget_marks()

    refused = run("spawn", "--", "true", check=False)
    named = run("spawn", "--task", "t1", "--", "true", check=False)
    new, trust = 'agentctl new "TITLE"', f"agentctl trust {task.path}"
    follow(refused, new if way == "new" else trust)
    follow(named, trust if way == "new" else new)

    run("spawn", "--wait", "--", "true")


@pytest.mark.follows("operations/trust/definitions.find_agent_spec: agentctl trust")
def test_a_definition_of_the_project_is_trusted(root: Path) -> None:
    new_task()
    define(root, "own", "exit 0")
    file = root / "agents" / "own.md"
    file.write_text(file.read_text().replace("Of a test.", "Changed."), encoding="utf-8")

    follow(run("spawn", "--agent", "own", "x", check=False), f"agentctl trust {file}")

    run("spawn", "--agent", "own", "--wait", "x")


@pytest.mark.follows("operations/trust/root_settings.usable_settings: agentctl trust")
def test_the_settings_of_a_root_are_trusted(root: Path) -> None:
    new_task()
    file = root / "config.yaml"
    file.write_text("runner: loopback\n", encoding="utf-8")

    follow(run("spawn", "--", "true", check=False), f"agentctl trust {file}")

    assert "is not trusted" not in run("spawn", "--", "true", check=False).err


@pytest.mark.follows("operations/trust/templates.check_usable: agentctl trust")
def test_a_template_of_the_project_is_trusted(root: Path) -> None:
    new_task()
    folder = root / "templates" / "own"
    folder.mkdir(parents=True)
    (folder / "task.yaml").write_text("name: own\ntitle: T\nroster: [{name: one, argv: ['true']}]\n", encoding="utf-8")
    command = ["new", "--template", "own"]

    follow(run(*command, check=False), f"agentctl trust {folder}")

    run(*command)


# -- settings that others can write ------------------------------------------------------------------------------------


@pytest.mark.follows(
    "adapters/personal.closing_step: chmod go-w",
)
@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("config: {permissions: own}", ["new", "T"]),
        ("notify: {targets: {t: {type: command, argv: ['true']}}}", ["notify", "list"]),
        ("hosts: {h: {command: [ssh, h]}}", ["--host", "h", "list"]),
        ("runners: {slurm: {partition: x}}", ["spawn", "--runner", "slurm", "--", "true"]),
    ],
    ids=["permissions", "notify", "hosts", "runners"],
)
def test_they_are_closed_to_others(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, command: list[str]
) -> None:
    home = tmp_path / "a home"
    (home / ".config" / "agentctl").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    new_task()
    file = home / ".config" / "agentctl" / "config.yaml"
    file.write_text(text + "\n", encoding="utf-8")
    file.chmod(0o666)

    follow(run(*command, check=False), f"chmod go-w '{file}'")

    assert "others can write" not in run(*command, check=False).err


@pytest.mark.follows("adapters/privaterows.read_rows: rm")
@pytest.mark.parametrize("damage", ["open", "torn"])
def test_a_file_of_vouched_texts_that_does_not_count_is_removed(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    home = tmp_path / "a home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    new_task()
    define(root, "own", "exit 0")
    (file,) = (home / ".config" / "agentctl").glob("trust*")
    file.chmod(0o666) if damage == "open" else file.write_text("{")

    follow(run("trust", root / "agents" / "own.md", check=False), f"rm '{file}'")

    run("trust", root / "agents" / "own.md")


def start_holder(lock: Path) -> subprocess.Popen[str]:
    """Start a program that holds a lock until it is continued after a stop."""
    lines = [
        "import fcntl, signal, sys",
        "file = open(sys.argv[1], 'a')",
        "fcntl.flock(file, fcntl.LOCK_EX)",
        "signal.signal(signal.SIGCONT, lambda *_: sys.exit(0))",
        "print('held', flush=True)",
        "signal.pause()",
    ]
    holder = start_argv([sys.executable, "-c", "\n".join(lines), str(lock)])
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


@pytest.mark.follows("adapters/locks._way_on: kill -CONT")
def test_who_holds_a_lock_and_is_stopped_goes_on(root: Path) -> None:
    task = new_task()
    holder = start_holder(task.path / "queue.lock")
    try:
        os.kill(holder.pid, signal.SIGSTOP)
        told = run("spawn", "--", "true", check=False, timeout=60)

        follow(told, f"kill -CONT {holder.pid}")

        assert holder.wait(timeout=20) == 0
    finally:
        holder.kill()
    run("spawn", "--wait", "--", "true")
