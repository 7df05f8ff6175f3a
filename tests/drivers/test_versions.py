"""At stake: whoever starts a program of a version that nobody has tried hears so, and waits for that only once."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.agent_steps import ends
from tests.steps import Task, new_task
from tests.support import WORKERS, Completed, run

COUNT = "times-asked"


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    """A task, and a row of a program whose version a test chooses."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    made = new_task(cap=3)
    install("1.2.3")
    row({"tested": "1.2.3"})
    return made


def install(version: str) -> Path:
    """Put a program into PATH that tells this version, and counts how often it is asked, and from which folder."""
    python, program = sys.executable, WORKERS / "acp_agent.py"
    file = Path(os.environ["PATH"].split(os.pathsep)[0]) / "acp-agent"
    draft = file.with_suffix(".new")
    counts = f'if [ "$1" = --version ]; then pwd >> {file.parent / COUNT}; echo "{version}"; exit; fi'
    draft.write_text(f'#!/bin/sh\n{counts}\nexec {python} {program} "$@"\n', encoding="utf-8")
    draft.chmod(0o700)
    return draft.replace(file)


def row(more: dict[str, object]) -> None:
    """Write the person's row of the program."""
    value = {"program": "acp-agent", "args": ["polite"], "asking": {}, **more}
    (Path.home() / ".config" / "agentctl" / "acp.yaml").write_text(json.dumps({"polite": value}), encoding="utf-8")


def asked() -> list[str]:
    """Return the folders in which the program was asked for its version."""
    file = Path(os.environ["PATH"].split(os.pathsep)[0]) / COUNT
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


def spawn(name: str, *options: str) -> Completed:
    """Start an agent and wait for its end; return what `spawn` said."""
    told = run("spawn", "--agent", "general", "--driver", "polite", "--name", name, *options, "do it")
    assert ends(name)["status"] == "completed"
    return told


def kept() -> Path:
    return Path(os.environ["HOME"]) / ".local" / "state" / "agentctl" / "versions.json"


def test_the_tested_version_is_asked_for_once_and_not_in_the_folder_of_a_project(task: Task) -> None:
    for name in ("a", "b"):
        assert "tried" not in spawn(name).err
    assert asked() == ["/"]
    assert json.loads(kept().read_bytes())[os.path.realpath(install("1.2.3"))]["version"] == "1.2.3"


@pytest.mark.parametrize("again", ["resume a more", "retry a"])
def test_a_newer_version_is_said_at_each_start_and_by_whatever_it_is_started_anew(task: Task, again: str) -> None:
    install("1.3.0")
    words = "acp-agent 1.3.0 is newer than 1.2.3, which was tried"
    assert words in spawn("a").err
    command, *rest = again.split()
    told = run(command, "--json", *rest).json
    assert words in told["warnings"][0]
    ends(told["agentInstance"])
    assert asked() == ["/"]


def test_another_file_in_the_place_of_the_program_is_asked(task: Task) -> None:
    spawn("a")
    install("1.2.10")
    assert "1.2.10 is newer" in spawn("b").err
    assert asked() == ["/", "/"]


def test_an_older_version_is_for_doctor_alone_who_asks_no_more_than_a_start(task: Task) -> None:
    install("1.0")
    assert spawn("a").err == ""
    told = [one["what"] for one in run("doctor", "--json", check=False).json if one["what"].startswith("polite:")]
    assert told == ["polite: acp-agent 1.0 is older than the tested 1.2.3"]
    assert asked() == ["/"]


def test_a_version_that_it_does_not_tell_is_unknown_and_nothing_else(task: Task) -> None:
    install("of the year")
    for name in ("a", "b"):
        assert "the version of acp-agent is unknown, and 1.2.3 was tried" in spawn(name).err
    assert asked() == ["/"]


def test_one_of_which_no_version_was_tried_is_said_where_something_is_restricted(task: Task) -> None:
    row({})
    assert "no version of acp-agent was tried" in spawn("a").err
    assert spawn("b", "--permissions", "allow").err == ""
    assert asked() == []


def test_a_batch_asks_once(task: Task) -> None:
    install("1.3.0")
    lines = [json.dumps({"name": f"a{number}", "prompt": "do it", "driver": "polite"}) for number in range(5)]
    told = run("spawn", "--json", "--batch", "-", stdin="\n".join(lines)).json
    assert all("1.3.0 is newer" in one["warnings"][0] for one in told)
    run("wait-all", check=False)
    assert asked() == ["/"]


@pytest.mark.parametrize(
    "text", ["", "[1]", '{"x": 5}', '{"%s": {"of": [], "version": "9\\u001b[31m", "at": 1e12}}', "\x00"]
)
def test_what_is_kept_may_be_anything(task: Task, text: str) -> None:
    kept().parent.mkdir(parents=True, exist_ok=True)
    kept().write_text(text.replace("%s", os.path.realpath(install("1.2.3"))), encoding="utf-8")
    assert spawn("a").err == ""
    assert asked() == ["/"]


def test_where_nothing_can_be_kept_it_is_asked_each_time(task: Task) -> None:
    kept().parent.parent.mkdir(parents=True, exist_ok=True)
    kept().parent.write_text("a file in the place of the folder", encoding="utf-8")
    for name in ("a", "b"):
        assert spawn(name).err == ""
    assert asked() == ["/", "/"]
