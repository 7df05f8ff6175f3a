"""At stake: what agentctl runs is what was installed, whatever lies in the folder that a person stands in."""

from __future__ import annotations

import json
import operator
import os
import shlex
import signal
import sys
from functools import partial
from pathlib import Path

import pytest

from agentctl.interfaces.commands.model.catalogue import VERBS
from agentctl.operations.start.agent_server import server_command
from tests.agent_steps import agent_world
from tests.fakessh import define_hosts, put_ssh
from tests.repositories import commit, new_repository
from tests.steps import new_task
from tests.support import alike, run, start_argv, wait_until

PROGRAM = [sys.executable, "-P", "-m", "agentctl"]


def plant(folder: Path) -> Path:
    """Put programs and modules into a folder that tell when they are run; return the file where they do."""
    ran = folder.parent / "RAN"
    script = f"#!/bin/sh\ntouch '{ran}'\n"
    ours = ("git", "claude", "codex", "ps", "sysctl", "agentctl-program", "python3", "sh", "ssh", "env", "less")
    for name in ours:
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)
    module = f"open({str(ran)!r}, 'w').close()\n"
    for name in ("json", "typer", "yaml", "asyncio", "sitecustomize"):
        (folder / f"{name}.py").write_text(module)
    for package in ("agentctl", "mcp"):
        (folder / package).mkdir()
        for name in ("__init__", "__main__"):
            (folder / package / f"{name}.py").write_text(module)
    return ran


@pytest.mark.slow
def test_the_demo_runs_what_ships_and_not_what_a_clone_calls_so(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clone = root.parent / "work"
    monkeypatch.delenv("AGENTCTL_ROOT")
    ran = plant(clone)
    template = clone / ".agentctl" / "templates" / "survey"
    template.mkdir(parents=True)
    worker = f"roster: [{{name: size, argv: [touch, '{ran}']}}]\n"
    (template / "task.yaml").write_text(f"name: survey\nparameters: {{path: {{default: x}}}}\n{worker}")
    process = start_argv([*PROGRAM, "demo"], cwd=clone)
    out, err = process.communicate(timeout=150)
    assert not ran.exists()
    assert "--template shipped:survey --set path=" in out
    assert (process.returncode, err) == (0, "")
    assert "nothing of it is running any more" in out


def test_a_shipped_template_can_be_meant_whatever_hides_it(root: Path) -> None:
    for name in ("survey", "other"):
        (root / "templates" / name).mkdir(parents=True)
        (root / "templates" / name / "task.yaml").write_text("name: survey\ntitle: not it\n")
    run("new", "--template", "shipped:survey", "--set", "path=.", "--id", "s")
    assert (root / "tasks" / "s" / "template" / "workers" / "size.py").is_file()
    assert "no template" in run("new", "--template", "shipped:other", check=False).err
    assert run("new", "--template", "shipped:../survey", check=False).code == 2


def test_the_server_of_an_agent_takes_no_module_from_its_folder(root: Path, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    clone.mkdir()
    ran = plant(clone)
    server = start_argv(server_command("claude", call_s=0), cwd=clone)
    _, err = server.communicate(timeout=40)
    assert (server.returncode, err) == (0, "")
    assert not ran.exists()


def test_what_a_person_installs_takes_no_module_from_the_folder_that_it_is_started_in(
    root: Path, tmp_path: Path
) -> None:
    run("install", "claude", "--hooks", "--yes")
    server = json.loads((tmp_path / "home" / ".claude.json").read_bytes())["mcpServers"]["agentctl"]
    hooks = json.loads((tmp_path / "home" / ".claude" / "settings.json").read_bytes())["hooks"]
    clone = tmp_path / "clone"
    clone.mkdir()
    ran = plant(clone)
    for argv in ([server["command"], *server["args"]], shlex.split(hooks["SubagentStart"][0]["hooks"][0]["command"])):
        started = start_argv(argv, cwd=clone)
        _, err = started.communicate(timeout=40)
        assert not ran.exists()
        assert (started.returncode, err) == (0, "")


@pytest.mark.parametrize("entry", ["", *alike(".", "here/..")])
def test_a_relative_entry_of_path_names_no_program_of_ours(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    agent_world(tmp_path, monkeypatch)
    clone = new_repository(tmp_path / "clone")
    (clone / "here").mkdir()
    ran = plant(clone)
    commit(clone, "programs")
    path = {"PATH": f"{entry}{os.pathsep}{os.environ['PATH']}"}
    for args in (
        ["spawn", "--agent", "general", "--name", "a", "--worktree", "--wait", "say x"],
        ["spawn", "--reuse", "--wait", "--name", "b", "--", "/bin/true"],
        ["worktrees"],
        ["agents"],
        ["doctor"],
    ):
        process = start_argv([*PROGRAM, *args], cwd=clone, env=path)
        _, err = process.communicate(timeout=40)
        assert (process.returncode, err) == (0, ""), args
    assert not ran.exists()


@pytest.mark.parametrize("entry", [".", *alike("", "here/..")])
@pytest.mark.slow
def test_nor_does_any_command_for_a_host(root: Path, tmp_path: Path, entry: str) -> None:
    clone, reached = tmp_path / "clone", tmp_path / "reached"
    (clone / "here").mkdir(parents=True)
    ran = plant(clone)
    put_ssh(tmp_path / "bin", f"echo >> {reached}; exit 255")
    define_hosts({"h": "h"})
    new_task()
    path = {"PATH": f"{entry}{os.pathsep}{os.environ['PATH']}"}
    of_hosts = ["list --hosts all", "tasks --hosts all", "interact list --hosts all"]
    lasting = ["wait-any --hosts h", "watch --plain --hosts h"]  # They ask again and again.
    reached.touch()
    for line in (*(f"--host h {name}" for name in VERBS), *of_hosts, *lasting, "--host here list"):
        before = reached.stat().st_size
        process = start_argv([*PROGRAM, *line.split()], cwd=clone, env=path)
        if line in lasting:
            wait_until(lambda: reached.stat().st_size, accept=partial(operator.lt, before), what=line)
            process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=40)
        assert not ran.exists(), line
        is_refused = any(word in err for word in ("--host", "terminal"))
        assert is_refused or line.startswith("--host here") or reached.stat().st_size > before, (line, err)


def test_an_empty_path_gets_no_entry_for_the_current_folder(root: Path) -> None:
    new_task()
    run("spawn", "--name", "a", "--wait", "--", "/bin/sh", "-c", 'echo "$PATH"', env={"PATH": ""})
    assert "" not in run("logs", "a").out.strip().split(os.pathsep)
