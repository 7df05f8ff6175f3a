"""The unit of `install boot`: what a person has put in its place stays."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from agentctl.adapters.taskdir import Root
from agentctl.errors import Refused
from agentctl.operations.install.boot import BootEntry, boot_entry, write_entry
from tests.moments import at_openings

THEIRS = "[Unit]\nDescription=theirs\n"


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Make a person for whom systemd seems to run."""
    (tmp_path / "run" / "systemd").mkdir(parents=True)
    (tmp_path / "run" / "systemd" / "private").touch()
    return {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path / "run"), "PATH": "/usr/bin"}


@pytest.fixture
def entry(environ: dict[str, str], tmp_path: Path) -> BootEntry:
    return boot_entry(Root(tmp_path / ".agentctl"), environ)


def test_an_earlier_one_of_ours_is_replaced(entry: BootEntry, environ: dict[str, str]) -> None:
    write_entry(entry._replace(text=f"{entry.text}# of an earlier version\n"), environ)
    assert write_entry(entry, environ) == [entry.path]
    assert Path(entry.path).read_text(encoding="utf-8") == entry.text
    assert write_entry(entry, environ) == []


def test_one_that_we_have_not_written_stays(entry: BootEntry, environ: dict[str, str]) -> None:
    unit = Path(entry.path)
    unit.parent.mkdir(parents=True)
    unit.write_text(THEIRS, encoding="utf-8")
    with pytest.raises(Refused, match="was not written by agentctl"):
        write_entry(entry, environ)
    assert unit.read_text(encoding="utf-8") == THEIRS


@pytest.mark.parametrize("was_there", [True, False])
def test_what_a_person_saves_at_the_last_moment_stays(
    entry: BootEntry, environ: dict[str, str], was_there: bool
) -> None:
    unit = Path(entry.path)
    if was_there:
        write_entry(entry._replace(text=f"{entry.text}# of an earlier version\n"), environ)
    with (
        at_openings(f"{unit}.tmp", [partial(unit.write_text, THEIRS, encoding="utf-8")]),
        pytest.raises(Refused, match="was changed meanwhile"),
    ):
        write_entry(entry, environ)
    assert unit.read_text(encoding="utf-8") == THEIRS
    assert [one.name for one in unit.parent.iterdir() if one.is_file()] == [unit.name]
