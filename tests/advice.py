"""Follows what agentctl advises: a command is run by a shell as it was printed, in the place where it was printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support import Completed, start_argv

#: What ends a command in a sentence, if it is not the last thing that is said.
_ENDS = ("\n", ";", ",", " (", ")", "]", "`", ". ")

#: What was followed in the test that runs.
_followed: list[str] = []


def check_follows(item: pytest.Item) -> None:
    """Fail a test that is marked `follows(HINT, ...)` and has not run the command of each of these."""
    hints = [hint for mark in item.iter_markers("follows") for hint in mark.args]
    left = [hint for hint in hints if not any(is_command_of(hint, line) for line in _followed)]
    _followed.clear()
    if left:
        pytest.fail(f"it is marked to follow what it has not run: {left}", pytrace=False)


def is_command_of(hint: str, line: str) -> bool:
    """Whether a command line is what a next step advises."""
    words = hint.partition(": ")[2].split()
    return all(re.search(rf"(?<!\S){re.escape(word)}(?![\w-])", line) for word in words)


def advised(told: Completed | str, command: str) -> str:
    """Return a command that was printed; fail if it was not, or not to its end."""
    text = told if isinstance(told, str) else told.out + told.err
    _, found, rest = text.partition(command)
    assert found, f"{command!r} is not advised in:\n{text}"
    # `agentctl list shows them`: only words follow that nobody takes for a part of the command.
    assert not rest or rest.startswith(_ENDS) or rest[1:].split(maxsplit=1)[0].isalpha(), f"{command!r}, then {rest!r}"
    return command


def follow(
    told: Completed | str, command: str, *, cwd: str | Path | None = None, env: Mapping[str, str | None] | None = None,
    check: bool = True, put: Mapping[str, str] | None = None, stdin: str | None = None, timeout: float = 30,
) -> Completed:  # fmt: skip
    """Run a command that was printed, and return how it ended.

    Args:
        put: What a person puts in the places of words in capitals: `{"TEXT": "go on"}`.
    """
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    line = advised(told, command)
    for word, value in (put or {}).items():
        assert word in line, f"{line!r} has no place for {word}"
        line = line.replace(word, value)
    _followed.append(line)
    process = start_argv(
        ["/bin/sh", "-c", line], stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE, cwd=cwd,
        env={"PATH": path, **(env or {})},
    )  # fmt: skip
    out, err = process.communicate(stdin, timeout=timeout)
    done = Completed(argv=("sh", "-c", line), code=process.returncode, out=out, err=err)
    assert not check or done.code == 0, done
    return done
