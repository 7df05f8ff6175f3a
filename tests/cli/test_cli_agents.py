"""At stake: a person sees which agents there are and whose word each is, and nothing of a clone runs without theirs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.cli.test_cli_help import completed
from tests.cli.test_cli_output import on_a_terminal
from tests.steps import new_task
from tests.support import run

BUILD = "---\ndescription: Builds it.\nargv: [{}]\n---\nBuild.\n"


@pytest.fixture
def project(root: Path) -> Path:
    """The folder of a project, with the task t1 and an agent that runs a program."""
    new_task()
    write(root.parent / ".agentctl" / "agents" / "build.md", BUILD.format("echo, built"))
    return root.parent


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all of PATH: what is installed is what a test puts there."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def install(programs: Path, name: str) -> None:
    (programs / name).write_text(f"#!{sys.executable}\n", encoding="utf-8")
    (programs / name).chmod(0o700)


def test_agents_are_listed_with_their_source_and_who_would_run_them(project: Path, programs: Path) -> None:
    write(project / ".claude" / "agents" / "r.md", "---\nname: reviewer\ndescription: Reviews.\n---\nx")
    install(programs, "codex")
    rows = {row["name"]: row for row in run("agents", "--json").json}
    assert list(rows) == ["build", "reviewer", "explore", "general", "plan"]
    assert rows["build"] == {
        "name": "build", "description": "Builds it.", "source": str(project / ".agentctl" / "agents" / "build.md"),
        "origin": "project", "driver": "command", "installed": False, "usable": False,
        "powers": ["argv runs echo built"],
    }  # fmt: skip
    assert (rows["reviewer"]["driver"], rows["reviewer"]["installed"]) == ("claude", False)
    assert (rows["explore"]["driver"], rows["explore"]["installed"]) == ("codex", True)
    assert {rows[name]["origin"] for name in ("explore", "plan", "general")} == {"shipped"}
    install(programs, "claude")
    assert run("agents", "list", "--json").json[-1]["driver"] == "claude"
    write(Path(os.environ["HOME"]) / ".config" / "agentctl" / "config.yaml", "driverOrder: [codex, claude]\n")
    assert run("agents", "list", "--json").json[-1]["driver"] == "codex"


def test_agents_go_to_a_pipe_as_lines_and_to_a_terminal_as_a_table(project: Path, programs: Path) -> None:
    lines = [line.split("\t") for line in run("agents").out.splitlines()]
    source = str(project / ".agentctl" / "agents" / "build.md")
    assert lines[0] == ["build", "command", "untrusted", source, "Builds it."]
    assert [line[:3] for line in lines[1:]] == [[name, "-", "-"] for name in ("explore", "general", "plan")]
    code, shown = on_a_terminal("agents", width=120)
    assert code == 0
    assert b"untrusted" in shown
    assert b"none (not installed)" in shown


def test_the_shipped_agents_need_no_root(root: Path) -> None:
    assert [row["name"] for row in run("agents", "--json").json] == ["explore", "general", "plan"]
    assert run("agents", "list", "--root", str(root.parent / "missing"), check=False).code == 3
    assert not root.exists()


def test_a_file_that_is_left_out_is_told_beside_the_data(project: Path) -> None:
    bad = write(project / ".agentctl" / "agents" / "bad.md", "---\nreadonly: \x1b[1m\n---\n")
    done = run("agents", "--json")
    assert len(done.json) == 4
    assert done.err.startswith(f"warning: {bad}:2: ")
    assert "\x1b" not in done.err


@pytest.mark.slow
def test_show_tells_a_definition_whole(project: Path) -> None:
    told = run("agents", "show", "explore", "--json").json
    assert (told["origin"], told["usable"], told["powers"]) == ("shipped", True, [])
    assert told["definition"]["readOnly"] is True
    assert told["definition"]["effort"] == "low"
    shown = run("agents", "show", "explore").out
    assert "readOnly: true" in shown
    assert shown.endswith(told["definition"]["instructions"] + "\n")
    unknown = run("agents", "show", "exlpore", check=False)
    assert (unknown.code, unknown.out) == (3, "")
    assert unknown.err.startswith(
        "error: Unknown agent type: exlpore\nhint: did you mean explore?; known: build, explore"
    )


def test_what_a_hostile_file_says_reaches_no_terminal(project: Path) -> None:
    keys = 'name: x\ndescription: "a\\e[31mb"\ntools: ["R\\u202Eead"]\npermissionMode: acceptEdits\n'
    write(project / ".claude" / "agents" / "x.md", f"---\n{keys}---\n\x1b]0;t\x07\n")
    for args in (("agents",), ("agents", "show", "x"), ("agents", "show", "x", "--json"), ("trust",)):
        code, sent = on_a_terminal(*args, env={"NO_COLOR": "1"})
        assert code == 0
        text = sent.decode().replace("\r\n", "\n")
        assert "\x1b[31m" not in text
        assert "\x1b]" not in text
        assert "\u202e" not in text


@pytest.mark.slow
def test_an_agent_of_the_project_runs_once_it_is_trusted(project: Path) -> None:
    file = project / ".agentctl" / "agents" / "build.md"
    refused = run("spawn", "--agent", "build", "--name", "b1", "Build it", check=False)
    assert refused.code == 1
    assert "the agent build comes with the project and is not trusted: argv runs echo built" in refused.err
    assert f"agentctl trust {file}" in refused.err
    assert run("list", "--json").json == []

    assert run("trust").out == f"{file}\tuntrusted\tbuild\targv runs echo built\tagent\n"
    assert run("trust", file).out == f"{file}\ttrusted\tbuild\targv runs echo built\tagent\n"
    run("spawn", "--agent", "build", "--name", "b1", "--wait", "Build it")
    assert "built Build." in run("result", "b1").out

    write(file, BUILD.format("echo, something, else"))
    assert run("spawn", "--agent", "build", "Build it", check=False).code == 1
    write(file, BUILD.format("echo, built"))
    assert run("agents", "--json").json[0]["usable"] is True
    run("trust", "--revoke", file)
    assert run("agents", "--json").json[0]["usable"] is False


def test_a_worker_cannot_trust(project: Path) -> None:
    file = project / ".agentctl" / "agents" / "build.md"
    line = [sys.executable, "-m", "agentctl", "trust", str(file)]
    run("spawn", "--name", "w1", "--wait", "--", *line, check=False)
    assert "w1 is a worker: only a person decides what to trust" in run("logs", "w1", "--stderr").out
    assert run("agents", "--json").json[0]["usable"] is False


@pytest.mark.parametrize(
    ("args", "code", "problem"),
    [
        (("--revoke",), 2, "--revoke needs the files"),
        (("--list", "x.md"), 2, "--list goes with neither"),
        (("x.md",), 3, "x.md is not a definition, template, task, task.yaml or config.yaml here"),
        (("--revoke", "x.md"), 3, "x.md was not trusted"),
    ],
    ids=str,
)
def test_a_mistake_trusts_nothing(project: Path, args: tuple[str, ...], code: int, problem: str) -> None:
    done = run("trust", *args, check=False)
    assert (done.code, done.out) == (code, "")
    assert problem in done.err
    assert not (Path(os.environ["HOME"]) / ".config" / "agentctl" / "trust.json").exists()


def test_names_of_agents_are_completed(project: Path) -> None:
    assert completed("agentctl agents show ") == ["build", "explore", "general", "plan"]
    assert completed("agentctl agents show e") == ["explore"]
    assert completed("agentctl agents s") == ["show"]
