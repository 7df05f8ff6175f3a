"""Agent programs that a person has started by hand, as far as processes show them: by their names and variables."""

from __future__ import annotations

import sys
from pathlib import Path

from agentctl.drivers.marks import SHIPPED

VARIABLES = sorted({name for marks in SHIPPED.values() for name in marks.variables})
NAMES = sorted({name for marks in SHIPPED.values() for name in marks.names})
#: As good as any other of them.
NAME = "claude"


def below(folder: Path, name: str) -> list[str]:
    """Return the beginning of a command line: what follows runs below a process that is called so.

    Args:
        name: That of a program, or of a package in whose folder a script lies.
    """
    place = folder / "installed" / name
    if "/" not in name:
        program = place.parent / "bin" / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text('#!/bin/sh\n"$@"\nexit $?\n', encoding="utf-8")
        program.chmod(0o755)
        return [str(program)]
    place.mkdir(parents=True)
    script = place / "cli.py"
    script.write_text("import subprocess, sys\nsys.exit(subprocess.run(sys.argv[1:]).returncode)\n", encoding="utf-8")
    return [sys.executable, "-I", str(script)]


def without(variable: str) -> list[str]:
    """Return the same for what runs without a variable, below a shell that has it."""
    return ["sh", "-c", f'export {variable}=1; sh -c \'env -u {variable} "$@"; exit $?\' sh "$@"; exit $?', "sh"]


def bare(*kept: str) -> list[str]:
    """Return the same for what runs without an environment but for some variables, in a session of its own."""
    return ["sh", "-c", 'setsid -w env -i "$@"; exit $?', "sh", *kept]
