"""At stake: any arguments, input and environment are understood as they are meant, or refused with a clear message."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agentctl.adapters.taskdir import TaskDir
from agentctl.errors import UsageError
from agentctl.operations.start.batch import read_batch
from agentctl.operations.start.spawning import spawn_workers
from tests.inside import call
from tests.ready import ENDED, ended_task
from tests.snapshots import snapshot
from tests.steps import Task, new_task, row, spawn, spawn_batch, statuses
from tests.support import PROGRAM, alike, environment, run, worker
from tests.terminal import on_a_terminal

BAD_NAMES = ["../x", "-x", "x" * 65, "é", "a b", "", "a/b", "\x1b[31m", ".", "a\n", "\uff11"]
#: Commands that take a name.
NAMING = [
    ["spawn", "--name=NAME", "--", "true"],
    ["spawn", "--after=NAME", "--", "true"],
    ["list", "--task=NAME"],
    ["wait-any", "--consumer=NAME"],
    ["cancel", "--", "NAME"],
    ["interact", "respond", "--id=NAME", "--", "a1", "yes"],
    ["new", "x", "--id=NAME"],
    ["new", "--template=NAME"],
    ["logs", "--", "NAME"],
]
PRINT_ARGV = "import os, sys; sys.stdout.buffer.write(b'\\0'.join(os.fsencode(a) for a in sys.argv[1:]))"


@pytest.fixture
def task(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Task:
    return ended_task(tmp_path_factory)


# -- names -------------------------------------------------------------------------------------------------------


def test_a_bad_name_is_refused_wherever_one_is_given_and_makes_no_file(
    task: Task, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # A spawn makes the folder of what it keeps in memory before it looks at names.
    (Path(os.environ["XDG_RUNTIME_DIR"]) / "agentctl").mkdir(mode=0o700, exist_ok=True)
    before = snapshot(tmp_path)
    for number, command in enumerate(NAMING):
        # Most commands treat an empty option as not given.
        for name in (*filter(None, BAD_NAMES), BAD_NAMES[number % len(BAD_NAMES)]):
            refused = call(capsys, *(word.replace("NAME", name) for word in command))
            assert refused.code == 2, str(refused)
            assert "is not a name" in refused.err, str(refused)
            assert "\x1b" not in refused.err
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("name", ["../x", *alike("x" * 65, "\x1b[31m")])
def test_a_bad_name_in_a_batch_names_its_line_and_starts_nothing(task: Task, name: str) -> None:
    lines = json.dumps({"name": "good", "argv": ["true"]}) + "\n" + json.dumps({"name": name, "argv": ["true"]}) + "\n"
    refused = run("spawn", "--batch", "-", stdin=lines, check=False)
    assert (refused.code, "stdin:2: " in refused.err) == (2, True), str(refused)
    assert "\x1b" not in refused.err
    assert statuses() == ENDED


def test_a_key_may_be_any_bytes_and_still_starts_one_worker(root: Path) -> None:
    task = new_task()
    keys = ["../../x", "a\nb", "\x1b[2J", "é", "\udcff\udc80", "k" * 5000]
    first = spawn_batch({"argv": ["true"], "key": key} for key in keys)
    again = [run("spawn", "--key", key, "--json", "--", "true").json for key in keys[-3:]]
    assert [one["reused"] for one in first + again] == [False] * len(keys) + [True] * 3
    assert [one["agentInstance"] for one in again] == [one["agentInstance"] for one in first[-3:]]
    assert len(list((task.path / "keys").iterdir())) == len(keys)
    run("wait-all")


# -- commands ----------------------------------------------------------------------------------------------------


def test_arguments_reach_the_worker_byte_for_byte(root: Path) -> None:
    task = new_task()
    argv = ["two words", "", "a\nb", "\udcff\udc80", "é", "$HOME `id` ; *", "--", "-x", "\x1b[31m", "'\"\\"]
    spawn([sys.executable, "-c", PRINT_ARGV, *argv], "--wait", name="a1")
    assert (task.agent("a1") / "stdout.log").read_bytes() == b"\0".join(map(os.fsencode, argv))
    assert json.loads((task.agent("a1") / "spec.json").read_bytes())["argv"][3:] == argv
    assert run("show", "a1", "--json").json["spec"]["argv"][3:] == argv


def test_a_megabyte_of_arguments_and_of_environment_is_handed_over(root: Path) -> None:
    task = new_task()
    big = {f"BIG_{number}": "x" * 100_000 for number in range(10)}
    words = ["y" * 100_000] * 10
    big_values = "sum(len(v) for k, v in os.environ.items() if k[:4] == 'BIG_')"
    code = f"import os, sys; print(sum(map(len, sys.argv[1:])), {big_values})"
    run("spawn", "--wait", "--name", "a1", "--", sys.executable, "-c", code, *words)
    run("spawn", "--wait", "--name", "a2", "--", sys.executable, "-c", code, env=big)
    assert (task.agent("a1") / "stdout.log").read_text() == "1000000 0\n"
    assert (task.agent("a2") / "stdout.log").read_text() == "0 1000000\n"
    assert all(b"xxxx" not in path.read_bytes() for path in (task.agent("a2")).iterdir() if path.is_file())


def test_an_argument_that_the_kernel_refuses_is_told_and_no_worker_runs(root: Path) -> None:
    new_task()
    line = json.dumps({"name": "a1", "argv": ["true", "x" * 200_000]})
    told = run("spawn", "--batch", "-", stdin=line, check=False)
    assert told.code == 1
    assert "too long" in told.err + told.out
    assert (row("a1")["status"], row("a1")["reason"]) == ("failed", "not_started")


@pytest.mark.parametrize(
    "request_line",
    [
        {"argv": ["echo", "a\0b"]}, {"argv": ["echo", "\ud800"]}, {"argv": ["true"], "env": {"A": "1\0B=2"}},
        {"argv": ["true"], "env": {"A=B": "1"}}, {"argv": ["true"], "env": {"": "1"}},
        {"argv": ["true"], "env": {"\ud800": ""}},
        {"argv": ["true"], "key": "\ud800"}, {"argv": ["true"], "cwd": "\0"}, {"argv": ["\0"]}, {"argv": [""]},
        {"argv": []},
        {"argv": "true"}, {"argv": ["true"], "env": {"A": 1}}, {"argv": ["true"], "priority": 9999},
        {"argv": ["true"], "x": 1},
        {"argv": ["true"], "timeout_seconds": -1}, {"argv": ["true"], "retries": 1.5},
        {"argv": ["true"], "after": ["../x"]},
    ],
    ids=lambda line: json.dumps(line)[:40],
)  # fmt: skip
def test_a_request_that_cannot_be_meant_is_refused_by_its_line(task: Task, request_line: dict[str, object]) -> None:
    lines = ["# a comment\n", json.dumps(request_line) + "\n"]
    with pytest.raises(UsageError) as caught:
        spawn_workers(TaskDir(str(task.path)), read_batch(lines, "stdin"), queue=True)
    assert caught.value.message.startswith("stdin:2: ")
    assert sorted(path.name for path in (task.path / "agents").iterdir()) == sorted(ENDED)


# -- output ------------------------------------------------------------------------------------------------------


def test_binary_output_goes_through_a_pipe_unchanged_and_into_every_command(root: Path) -> None:
    task = new_task()
    spawn(worker("floods", "--bytes", 70_000), "--wait", name="a1")
    whole = (task.agent("a1") / "stdout.log").read_bytes()
    assert whole == bytes(range(256)) * 273 + bytes(range(112))
    logs = subprocess.run([*PROGRAM, "logs", "a1"], capture_output=True, env=environment(), check=True)
    assert logs.stdout == whole
    told = run("result", "a1", "--json").json
    assert (told["size"], told["truncated"]) == (70_000, True)


@pytest.mark.slow
def test_no_escape_of_a_worker_a_question_or_a_message_reaches_a_terminal(root: Path) -> None:
    new_task()
    evil = "\x1b]0;owned\x07\x1b[2J\u202e\x9b31m"
    quote = evil.replace("'", "")
    script = (
        f'{sys.executable} -m agentctl report progress "{quote}" && {sys.executable} -m agentctl interact ask "{quote}"'
    )
    spawn(["/bin/sh", "-c", script + f" # {evil}"], name="a1")
    spawn(worker("escapes"), "--wait", name="a2")
    assert run("wait-any", "a1", "--for", "blocked").code == 0
    commands = [
        ["list"], ["show", "a1"], ["interact", "list"], ["events"], ["logs", "a2"], ["result", "a2"], ["tasks"],
        ["interact", "list", "--json"], ["list", "--json"], ["spawn", "--", evil], ["use", evil], ["show", evil],
    ]  # fmt: skip
    for args in commands:
        _, sent = on_a_terminal([*PROGRAM, *args], env={"NO_COLOR": "1"})
        text = sent.decode(errors="replace")
        for raw in ("\x1b]", "\x07", "\x1b[2J", "\u202e", "\x9b", "\x00", "\x1b[31m", "\x1bP"):
            assert raw not in text, (args, raw)
    run("cancel", "--all")


# -- surroundings ------------------------------------------------------------------------------------------------

ALL = [
    ["list"], ["show", "a1"], ["wait-any"], ["wait", "a1"], ["wait-all"], ["cancel", "a1"], ["result", "a1"],
    ["logs", "a1"],
    ["events"], ["tasks"], ["use", "t1"], ["doctor"], ["templates"], ["interact", "list"], ["new", "x"],
    ["pause", "a1"],
    ["new", "--template", "survey"], ["spawn", "--", "true"], ["report", "message", "x"], ["send", "a1", "x"],
    ["inbox"],
    ["spawn", "--cwd", "/", "--", "true"],
]  # fmt: skip
FEW = [["list"], ["doctor"], ["new", "--template", "survey"], ["spawn", "--", "true"], ["wait-any"]]


@pytest.mark.parametrize("commands", [FEW, *alike(ALL)], ids=["few", "all"])
def test_a_removed_working_folder_is_no_bug_for_any_command(
    task: Task, tmp_path: Path, commands: list[list[str]]
) -> None:
    gone = tmp_path / "gone"
    for root in (None, "relative", ""):
        for args in commands if root is None else ALL[:1]:
            gone.mkdir()
            code = "import os, sys; os.chdir(sys.argv[1]); os.rmdir(sys.argv[1]); os.execv(sys.argv[2], sys.argv[2:])"
            env = environment({"PYTHONPATH": os.pathsep.join(filter(None, sys.path))})
            env |= {} if root is None else {"AGENTCTL_ROOT": root}
            argv = [sys.executable, "-c", code, str(gone), *PROGRAM, *args]
            done = subprocess.run(argv, capture_output=True, text=True, env=env, check=False, stdin=subprocess.DEVNULL)
            assert "bug" not in done.stderr, (root, args, done.stderr)
            assert done.returncode in (0, 1, 2, 3, 6, 7), (root, args, done.stderr)
    run("wait-all", check=False)


@pytest.mark.parametrize("home", ["/dev/null", *alike(None, "", "/proc/nonexistent")])
def test_a_missing_home_is_no_bug(root: Path, tmp_path: Path, home: str | None) -> None:
    env = {"HOME": home, "XDG_RUNTIME_DIR": None}
    if not home:  # Otherwise the account's real home, or the root folder, would be written to.
        env["XDG_CONFIG_HOME"] = str(tmp_path / "config")
    run("new", "x", "--id", "t1", env=env)
    run("spawn", "--wait", "--queue", "--name", "a1", "--", "true", env=env)
    assert run("list", "--json", env=env).json[0]["status"] == "completed"
    assert run("templates", env=env).code == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to somebody else")
def test_a_root_of_somebody_else_is_refused_unless_forced(task: Task, root: Path) -> None:
    os.chown(root, 12345, 12345)
    for args in (["list"], ["spawn", "--", "true"], ["cancel", "--all"], ["doctor"]):
        refused = run(*args, check=False)
        assert refused.code == 1
        assert f"{root} belongs to somebody else (uid 12345)" in refused.err
        assert "--force" in refused.err
    assert {one["agentInstance"]: one["status"] for one in run("list", "--json", "--force").json} == ENDED


@pytest.mark.slow
def test_a_chosen_task_that_is_no_name_leads_nowhere(task: Task, root: Path, tmp_path: Path) -> None:
    shutil.copytree(task.path, tmp_path / "outside", ignore=shutil.ignore_patterns("control", "*.tmp"))
    for content in (b"../../outside", os.fsencode(tmp_path / "outside"), b"\xff\xfe", b"a\0b", b"", b"gone"):
        (root / "current").write_bytes(content)
        for args in (["list"], ["spawn", "--", "true"]):
            ended = run(*args, check=False)
            assert "bug" not in ended.err, (content, str(ended))
    run("wait-all", check=False)
    assert not (tmp_path / "outside" / "agents" / "true-1").exists()
