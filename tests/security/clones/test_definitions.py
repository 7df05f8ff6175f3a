"""At stake: a folder of definitions that somebody else has written costs no more than a moment."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agentctl.adapters import definitions
from agentctl.adapters.definitions import Found, Origin, Source, read_all
from agentctl.adapters.known import known_files
from tests.support import alike

LARGE = 200 * 1024
#: Many times what each takes where it takes time by its length.
QUICK_S = 10.0


def found_in(folder: Path, form: str) -> Found:
    return read_all([Source(folder, Origin.PROJECT, form)], known_files({"HOME": str(folder / "none")}))


def claude(text: str) -> Callable[[Path], str]:
    def write(folder: Path) -> str:
        (folder / "a.md").write_text(text)
        return "claude"

    return write


def codex(text: str) -> Callable[[Path], str]:
    def write(folder: Path) -> str:
        (folder / "a.toml").write_text(text)
        return "codex"

    return write


def front(line: str) -> Callable[[Path], str]:
    return claude(f"---\nname: a\n{line}\n---\nprompt\n")


BLANKS = " " * LARGE
PARTS = ".".join("a" * (LARGE // 2))


@pytest.mark.parametrize(
    "write",
    [
        front(f"description: x: *{' ' * 15_000}y"),
        front(f"description: x: *{BLANKS}y"),
        codex(f"{PARTS} = 1\n"),
        *alike(
            front(f"description:{BLANKS}"), front("a: [" + "b, " * (LARGE // 3) + "]"), claude(f"---{BLANKS}x\n"),
            claude("---\n" + f"---{' ' * 500}x\n" * 400), codex(f"[{PARTS}]\n"), codex(f"x = {{{PARTS} = 1}}\n"),
            codex("[" + ".".join("a" * 200) + "]\n" + "\n".join(f"b{number} = 1" for number in range(20_000))),
            codex(f'name = "a"{BLANKS}y\n'),
        ),
    ],
)  # fmt: skip
def test_no_file_takes_long(tmp_path: Path, write: Callable[[Path], str]) -> None:
    form, began = write(tmp_path), time.monotonic()
    found_in(tmp_path, form)
    assert time.monotonic() - began < QUICK_S


def test_a_folder_of_files_with_long_blanks_is_read_whole(tmp_path: Path) -> None:
    """Each is short enough to be read; what each costs by the square of its length, all of them have no time for."""
    for number in range(50):
        (tmp_path / f"a{number}.md").write_text(f"---\ndescription: x: *{' ' * 15_000}y\n---\n")
    found = found_in(tmp_path, "claude")
    assert (len(found.definitions), found.warnings) == (50, [])


def test_what_is_no_yaml_is_still_read_as_people_write_it(tmp_path: Path) -> None:
    form = front("description: use it: *always*, for a # b \t ")(tmp_path)
    (one,) = found_in(tmp_path, form).definitions
    assert one.spec.description == "use it: *always*, for a # b"


def test_long_front_matter_is_told_by_its_file_and_a_long_prompt_is_none(tmp_path: Path) -> None:
    form = front("description: " + "x" * (16 * 1024))(tmp_path)
    (tmp_path / "b.md").write_text("---\nname: b\ndescription: b\n---\n" + "prompt. " * 20_000)
    long = "Do it. " * 9_000
    (tmp_path / "c.toml").write_text(f'name = "c"\ndescription = "c"\ndeveloper_instructions = "{long}"')
    found = found_in(tmp_path, form)
    assert [one.spec.name for one in found.definitions] == ["b"]
    (warning,) = found.warnings
    assert warning.startswith(f"{tmp_path}/a.md:1: its front matter is larger than 16384 bytes")
    assert [one.spec.name for one in found_in(tmp_path, "codex").definitions] == ["c"]


@pytest.mark.slow
def test_a_folder_that_takes_too_long_is_left_where_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(definitions, "_FOLDER_LIMIT_S", 0.2)
    for number in range(200):
        (tmp_path / f"a{number:03}.md").write_text(f"---\nname: a{number}\ndescription: {'[' * 8000}\n---\n")
    began = time.monotonic()
    warnings = found_in(tmp_path, "claude").warnings
    assert "and the files after it are left out: the folder takes too long to read" in warnings[-1]
    assert len(warnings) < 200
    assert time.monotonic() - began < QUICK_S
