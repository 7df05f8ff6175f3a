"""Where the pictures are taken: a folder and a home of their own, in which a stand-in is the program `claude`."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


@contextlib.contextmanager
def stage(name: str, program: Path | None = None) -> Iterator[Path]:
    """Stay in a new folder of a new home.

    Args:
        name: The folder's.
        program: Run by Python with `as-model`, it is the stand-in for a model.
    """
    with tempfile.TemporaryDirectory() as home:
        folder, programs = Path(home, name), Path(home, "bin")
        for path in (folder, programs):
            path.mkdir()
        if program is not None:
            put_program(programs / "claude", f"{program} as-model")
        put_program(programs / "agentctl", "-m agentctl")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("AGENTCTL_", "XDG_", "CLAUDE"))}
        path_variable = f"{programs}{os.pathsep}{kept['PATH']}"
        os.environ.clear()
        os.environ.update(kept, HOME=home, PATH=path_variable, PYTHONPATH=str(REPOSITORY))
        os.chdir(folder)
        yield folder


def put_program(file: Path, what: str) -> None:
    """Write a program that runs Python."""
    put_script(file, f'exec {sys.executable} {what} "$@"')


def put_script(file: Path, line: str) -> None:
    """Write a program of one line of shell."""
    file.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
    file.chmod(0o700)


def repository(files: Mapping[str, str]) -> None:
    """Make the folder a git repository with files, by path."""
    for name, text in files.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")
    for line in ("init -q", "add -A", "-c user.name=me -c user.email=me@example.org commit -qm begin"):
        subprocess.run(["git", *line.split()], check=True)


def agent(name: str, kind: str, prompt: str, *options: str) -> None:
    """Start an agent."""
    agentctl("spawn", "--queue", "--name", name, "--agent", kind, *options, prompt)


def command(name: str, line: str, *options: str) -> None:
    """Start a command."""
    agentctl("spawn", "--queue", "--name", name, *options, "--", "sh", "-c", line)


def agentctl(*args: str, check: bool = True) -> None:
    """Run agentctl."""
    print("agentctl", *args)
    subprocess.run([sys.executable, "-m", "agentctl", *args], check=check, stdin=subprocess.DEVNULL)


def after(*names: str) -> list[str]:
    """Return the options of a worker that waits for others."""
    return [word for name in names for word in ("--after", name)]
