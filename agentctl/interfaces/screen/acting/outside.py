"""A file in a person's own editor or pager, which has the terminal meanwhile. No shell is involved."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Mapping

from textual.app import App, SuspendNotSupported

from agentctl.adapters.opening import kind_of
from agentctl.domain.text.plaintext import plain
from agentctl.encoding import typed_in
from agentctl.errors import Refused
from agentctl.interfaces.screen.handover import handed_over
from agentctl.interfaces.screen.start.line_editor import run_in_front
from agentctl.interfaces.screen.texts.sources import PagerSource

#: More of a text is not given to a pager, nor is more time taken to make it.
_MOST_CHARACTERS, _MOST_S = 64 << 20, 10.0


def pager_of(environ: Mapping[str, str]) -> list[str]:
    """Return the command of the person's pager.

    Raises:
        Refused: Its name cannot be split into words.
    """
    name = environ.get("PAGER", "").strip() or "less"
    try:
        return shlex.split(name)
    except ValueError as error:
        raise Refused(f"PAGER is not a command: {name!r}", hint="export PAGER=less") from error


def show_outside(app: App[int], argv: list[str], path: str) -> str:
    """Run a program with a file, and wait for its end; return what went wrong, or nothing.

    Args:
        path: An absolute path, so that the program takes it for no option.
    """
    try:
        with handed_over(app):
            code = run_in_front([*argv, path])
    except SuspendNotSupported:
        return "this terminal cannot be given to another program"
    except (OSError, ValueError) as error:
        return plain(f"{argv[0]} cannot be started: {getattr(error, 'strerror', None) or error}")
    if code:
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return plain(f"{argv[0]} failed ({how})")
    return ""


def file_to_edit(path: str, within: str | None = None) -> str:
    """Return the path of a plain file that may be given to an editor.

    Args:
        within: The folder that it has to lie in, whatever links there are on its way.

    Raises:
        Refused: There is no such file, it is something else, or it lies elsewhere.
    """
    place = os.path.realpath(path)
    if within is not None and not place.startswith(os.path.realpath(within) + os.sep):
        raise Refused(f"{path} leads out of {within}: it is not opened")
    kind = kind_of(path)
    if kind is not None:
        raise Refused(f"{path} is not a plain file: it is {kind}")
    if not os.path.isfile(place):
        raise Refused(f"there is no file {path}")
    return place


def write_text(source: PagerSource, path: str) -> None:
    """Write a text into a file as a pager would show it: without anything that a terminal would obey.

    Raises:
        OSError: The text cannot be read, or not written.
    """
    until, left = time.monotonic() + _MOST_S, _MOST_CHARACTERS
    try:
        while source.grow() and time.monotonic() < until:
            pass
        with open(path, "w", encoding=typed_in(), errors="backslashreplace") as file:
            for number in range(len(source)):
                for line in source.paragraph(number):
                    file.write(f"{line.text}\n")
                    left -= len(line.text) + 1
                if left < 0 or time.monotonic() > until:
                    file.write("[cut: there is more]\n")
                    return
            if source.problem:
                file.write(f"{source.problem}\n")
    finally:
        source.close()
