"""At stake: on a terminal in another encoding the screen is legible, and what is typed there names no other file."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from agentctl.encoding import TYPED_IN
from agentctl.interfaces.screen.start.line_completion import completions
from agentctl.interfaces.screen.start.start_line import KnownNames
from tests.locales import LOCALES, in_locale
from tests.steps import new_task, spawn
from tests.support import wait_until, worker
from tests.terminal import Terminal

LATIN, JAPANESE = LOCALES
PROGRAM = [sys.executable, "-P", "-m", "agentctl"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("locale", "typed", "made"),
    [
        (LATIN, b"caf\xe9", b"caf\xe9"),
        (JAPANESE, b"\xc6\xfc\xcb\xdc", b"\xc6\xfc\xcb\xdc"),
        ("C.UTF-8", "caf\xe9".encode(), "caf\xe9".encode()),
        ("C.UTF-8", b"caf\xe9", "caf\ufffd".encode()),  # No letter: the screen stays.
    ],
)
def test_what_is_typed_is_what_a_command_gets(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, locale: str, typed: bytes, made: bytes
) -> None:
    for name, value in (in_locale(tmp_path, locale) if locale in LOCALES else {"LC_ALL": locale}).items():
        monkeypatch.setenv(name, value)
    task = new_task()
    spawn(worker("asks", "What?"), name="a")
    task.has("agent.blocked", "a")
    terminal = Terminal([*PROGRAM, "watch"])
    terminal.until("What?")
    terminal.write(b"i")
    terminal.until("answer to a")
    terminal.write(typed + b"\r")
    task.ended("a")
    assert (task.agent("a") / "stdout.log").read_bytes() == b"answer: " + made + b"\n"
    terminal.write(b"n")
    terminal.until("start in t1:")
    terminal.write(b"! touch made-" + typed + b"\r")
    wait_until(lambda: [name for name in os.listdir(os.fsencode(os.getcwd())) if name.startswith(b"made-")])
    assert os.path.exists(b"made-" + made)
    terminal.interrupt()
    terminal.end()
    assert b"Traceback" not in terminal.sent
    assert b"\\u" not in terminal.sent, "a character that the terminal lacks has a stand-in of one cell"


@pytest.mark.parametrize(
    ("encoding", "typed", "offered"),
    [
        ("utf-8", "in:c", ["in:caf\xe9/"]),
        ("iso8859-1", "in:c", ["in:caf\xc3\xa9/", "in:caf\xe9/"]),
        ("iso8859-1", "in:caf\xe9", ["in:caf\xe9/"]),
    ],
)
def test_a_folder_is_offered_as_it_is_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str, typed: str, offered: list[str]
) -> None:
    monkeypatch.setenv(TYPED_IN, encoding)
    monkeypatch.chdir(tmp_path)
    for name in (b"caf\xe9", "caf\xe9".encode()):
        os.mkdir(name)
    assert completions(typed, KnownNames((), ())) == offered
