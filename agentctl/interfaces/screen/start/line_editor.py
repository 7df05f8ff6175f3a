"""A text is edited in a person's own editor: which one, in which file, and what comes back. Needs no textual."""

from __future__ import annotations

import errno
import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Mapping

from agentctl.adapters.opening import read_bytes
from agentctl.adapters.searchpath import program_at
from agentctl.encoding import typed_in
from agentctl.errors import AgentctlError, Refused

#: More than any prompt; a larger file is not taken.
_MOST_BYTES = 1 << 20


def editor_argv(environ: Mapping[str, str]) -> list[str]:
    """Return the command of the person's editor.

    Raises:
        Refused: None is named, or its name cannot be split into words.
    """
    name = next((which for which in ("VISUAL", "EDITOR") if environ.get(which, "").strip()), None)
    if name is None:
        raise Refused("neither VISUAL nor EDITOR names an editor", hint="export EDITOR=vi")
    try:
        return shlex.split(environ[name])
    except ValueError as error:
        raise Refused(f"{name} is not a command: {environ[name]!r}", hint=f"export {name}=vi") from error


def edited(text: str, argv: list[str]) -> str:
    """Return the text as the editor leaves it; the terminal is the editor's meanwhile.

    It lies in a folder that nobody else can enter, and which is removed at the end: editors put copies beside a file.

    Raises:
        Refused: The editor is missing or failed, or left something that cannot be taken.
    """
    with tempfile.TemporaryDirectory(prefix="agentctl-line-", ignore_cleanup_errors=True) as folder:
        path = os.path.join(folder, "prompt.md")
        with open(path, "w", encoding=typed_in(), errors="replace", newline="") as file:
            file.write(text)
        try:
            code = run_in_front([*argv, path])
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise Refused(f"the editor {argv[0]} cannot be started: {why}", hint="EDITOR names one") from error
        if code:
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            raise Refused(f"the editor {argv[0]} failed ({how})")
        try:
            return read_bytes(path, _MOST_BYTES).decode(typed_in()).removesuffix("\n")
        except (AgentctlError, OSError, UnicodeDecodeError) as error:
            raise Refused(f"the editor left nothing that can be taken: {error}") from error


def run_in_front(argv: list[str]) -> int:
    """Run a program that gets the terminal's Ctrl+C for itself: a handler is not inherited (execve(2)).

    Raises:
        OSError: It is not there, or cannot be started.
    """
    program = argv[0] if os.sep in argv[0] else program_at(argv[0])
    if program is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), argv[0])
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        return subprocess.run([program, *argv[1:]], check=False).returncode
    finally:
        signal.signal(signal.SIGINT, before)
