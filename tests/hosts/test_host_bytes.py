"""At stake: a command on another host works on the files that were typed here, whatever the locales, and is legible."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hosts.machines import Machine
from tests.locales import LOCALES, in_locale
from tests.support import run
from tests.terminal import on_a_terminal

UTF8, LATIN, JAPANESE = "C.UTF-8", *LOCALES
#: The same letters in each locale, as they are typed there.
LETTERS = {UTF8: "\xe9\u65e5".encode(), LATIN: b"caf\xe9", JAPANESE: b"\xc6\xfc\xcb\xdc"}
TEXTS = {UTF8: "\xe9\u65e5", LATIN: "caf\xe9", JAPANESE: "\u65e5\u672c"}
PROGRAM = [sys.executable, "-P", "-m", "agentctl"]

pytestmark = pytest.mark.parametrize(
    ("here", "there"), [(LATIN, UTF8), (JAPANESE, UTF8), (UTF8, LATIN), (LATIN, JAPANESE)]
)


@pytest.fixture
def host(
    both: tuple[Machine, Machine], here: str, there: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Machine:
    """Return a machine in its locale, seen from this one in another."""
    folder = tmp_path / "locales"
    folder.mkdir()
    settings = {name: in_locale(folder, name) if name in LOCALES else {"LC_ALL": name} for name in (here, there)}
    for name, value in settings[here].items():
        monkeypatch.setenv(name, value)
    words = [f"{name}={value}" for name, value in settings[there].items()]
    both[0].set_program(f'exec env {shlex.join([*words, *PROGRAM])} "$@"')
    return both[0]


def test_no_other_file_is_touched(host: Machine, here: str) -> None:
    names = [b"r\xe9.txt", "r\xe9.txt".encode(), b"\xc6\xfc", "\u65e5".encode()]
    for name in names:
        (host.work / os.fsdecode(name)).touch()
    run("--host", "a", "spawn", "--wait", "--", "rm", *map(os.fsdecode, names[::2]))
    left = {os.fsencode(name) for name in os.listdir(host.work) if name != ".agentctl"}
    assert left == set(names[1::2])


def test_a_terminal_gets_the_letters_of_its_own_locale(host: Machine, here: str) -> None:
    typed, text = LETTERS[here], TEXTS[here]
    for name in (typed, text.encode()):
        (host.work / os.fsdecode(name)).mkdir(exist_ok=True)
    run("--host", "a", "spawn", "--wait", "--name", "typed", "--cwd", os.fsdecode(typed), "--", "pwd")
    run("--host", "a", "spawn", "--wait", "--name", "utf8", "--cwd", text, "--", "pwd")
    for instance in ("typed", "utf8"):
        _, shown = on_a_terminal([*PROGRAM, "--host", "a", "show", instance])
        assert b"/" + typed + b"\r\n" in shown
    for options in (["--host", "a"], ["--hosts", "a"]):
        command = ["list", "--json"]
        argv = [*PROGRAM, *options, *command] if options[0] == "--host" else [*PROGRAM, *command, *options]
        printed = subprocess.run(argv, capture_output=True, check=True).stdout
        json.loads(printed.decode("utf-8"))


def test_an_agent_there_gets_the_letters_that_were_typed_here(host: Machine, here: str) -> None:
    folder = host.home / ".config" / "agentctl" / "agents"
    folder.mkdir(parents=True)
    (folder / "reads.md").write_text("---\ndescription: R.\nargv: [cat]\npromptOnStdin: true\n---\n", encoding="utf-8")
    typed = LETTERS[here]
    run("--host", "a", "spawn", "--wait", "--name", "c", "--agent", "reads", os.fsdecode(typed))
    output = host.work / ".agentctl" / "tasks" / "on-a" / "agents" / "c" / "stdout.log"
    assert output.read_bytes() == typed, "a command gets the bytes"
