"""At stake: a key pressed in a folder of somebody else's runs nothing, and the prompt comes back."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import time
from pathlib import Path

import pytest

from agentctl.interfaces.cli.completion import _offer
from tests.steps import new_task
from tests.support import PROGRAM, alike, run, start_argv

EVIL = ["$(touch RAN)", "\\$(touch RAN)", "`touch RAN`", "\\`touch RAN\\`", '";touch RAN;"', "a\nb", "-x", "a b", "é"]


def completed(line: str, shell: str) -> str:
    """Return what the program gives a shell for the end of a line."""
    words = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" ")), "_TYPER_COMPLETE_ARGS": line}
    fish = {"_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    return run(env={"_AGENTCTL_COMPLETE": f"complete_{shell}", **words, **fish}, check=False).out


def plant(root: Path) -> None:
    """Make tasks, workers, templates and agents with names that a shell would run, and one good one of each."""
    task = new_task().path
    ask(task, options=[{"id": name, "label": "x"} for name in [*EVIL, "good"]])
    (task / "cursors").mkdir(exist_ok=True)
    (root.parent / "work" / ".claude" / "agents").mkdir(parents=True)
    for number, name in enumerate([*EVIL, "good"]):
        for folder in (root / "tasks" / name, root / "templates" / name):
            folder.mkdir(parents=True)
            (folder / "task.yaml").touch()
        (task / "agents" / name).mkdir(parents=True)
        (task / "cursors" / f"{name}.json").touch()
        named = f'---\nname: "{name}"\ndescription: x\n---\n'.replace("\\", "\\\\")
        (root.parent / "work" / ".claude" / "agents" / f"{number}.md").write_text(named)


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["zsh", "bash", "fish"])
@pytest.mark.parametrize(
    "line",
    [
        "agentctl new --template ", "agentctl use ", "agentctl show --task t1 ", "agentctl agents show ",
        "agentctl mcp --agents explore,", "agentctl wait-any --task t1 --consumer ",
        "agentctl interact respond --task t1 asks ",
    ],
)  # fmt: skip
def test_only_names_are_offered(root: Path, line: str, shell: str) -> None:
    plant(root)
    told = completed(line, shell)
    assert "good" in told
    assert not [word for word in ("touch", "-x", "a b", "é", "a\nb") if word in told]


def ask(task: Path, **question: object) -> None:
    """Write a question into the folder of a worker."""
    folder = task / "agents" / "asks" / "interactions"
    folder.mkdir(parents=True)
    (folder / "q1.json").write_text(json.dumps({"id": "q1", "kind": "select", "question": "Go?", **question}))


def test_a_call_that_is_not_shown_is_denied_by_a_key_and_not_allowed(root: Path) -> None:
    options = [{"id": name, "label": name} for name in ("accept", "always", "decline")]
    means = {"accept": "allow", "always": "allow_always", "decline": "deny"}
    ask(new_task().path, options=options, tool="Bash", arguments={"command": "rm -rf ~"}, means=means)
    assert completed("agentctl interact respond asks ", "bash").split() == ["decline"]


def test_the_questions_of_a_task_that_came_with_the_folder_are_not_offered(root: Path) -> None:
    task = new_task().path
    ask(task, options=[{"id": "yes", "label": "Yes"}])
    assert completed("agentctl interact respond ", "bash").split() == ["asks"]
    foreign = task.with_name("foreign")
    task.rename(foreign)
    assert completed("agentctl interact respond ", "bash").split() == []
    assert completed("agentctl interact respond --task foreign asks ", "bash").split() == []


def test_whoever_makes_an_offer_only_names_come_out_of_it() -> None:
    """Each kind of offer leaves other names out by itself: that this one place does it, too, is seen nowhere else."""
    assert _offer(lambda: [*EVIL, "good"], "") == ["good"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("zsh") is None, reason="there is no zsh here")
@pytest.mark.parametrize("line", ["new --template ", "use ", *alike("show --task t1 ", "agents show ")])
def test_zsh_runs_nothing_that_a_folder_is_named(root: Path, tmp_path: Path, line: str) -> None:
    plant(root)
    program = tmp_path / "bin" / "agentctl"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {" ".join(PROGRAM)} "$@"\n')
    program.chmod(0o700)
    home = tmp_path / "home"
    home.joinpath("script").write_text(run(env={"_AGENTCTL_COMPLETE": "source_zsh"}).out)
    home.joinpath(".zshrc").write_text("PS1='ready> '; autoload -Uz compinit; compinit -u -D; source ~/script\n")
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    for keys in ("goo\t", "\t"):
        assert b"good" in typed(f"agentctl {line}{keys}", until=b"good", path=path)
    assert not list(tmp_path.rglob("RAN"))


def typed(keys: str, until: bytes, path: str) -> bytes:
    """Type into a zsh of its own; return what it showed until then."""
    leader, follower = pty.openpty()
    shell = start_argv(
        ["zsh", "-i"], stdin=follower, stdout=follower, stderr=follower, env={"TERM": "dumb", "PATH": path}
    )
    os.close(follower)
    shown = b""
    try:
        shown = seen(leader, b"ready> ")
        os.write(leader, keys.encode())
        shown = seen(leader, until)
    finally:
        os.write(leader, b"\x15exit\r")
        while read_some(leader):
            pass
        os.close(leader)
        shell.wait(20)
    return shown


def seen(leader: int, wanted: bytes) -> bytes:
    """Read what a terminal is sent until something is in it."""
    shown, give_up_at = b"", time.monotonic() + 20
    while wanted not in shown and time.monotonic() < give_up_at:
        shown += read_some(leader)
    assert wanted in shown, shown
    return shown


def read_some(leader: int) -> bytes:
    """Read what is there, or comes soon; nothing at the end."""
    if not select.select([leader], [], [], 20)[0]:
        return b""
    try:
        return os.read(leader, 65536)
    except OSError:
        return b""  # how Linux says that the other side is closed


def test_a_folder_of_very_many_and_a_reader_that_sleeps_do_not_keep_the_prompt(root: Path, tmp_path: Path) -> None:
    root.mkdir()
    os.mkfifo(root / "current")
    began = time.monotonic()
    assert completed("agentctl show ", "bash").strip() == ""
    templates = root / "templates"
    for number in range(3000):
        (templates / f"t{number}").mkdir(parents=True)
        (templates / f"t{number}" / "task.yaml").touch()
    assert len(completed("agentctl new --template ", "bash").split()) == 201
    assert time.monotonic() - began < 20
