"""At stake: the cached content of a file is what the file says, and only its owner can write the cache."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentctl.adapters.known import KnownFiles

AGENT = Path("/home/me/.agentctl/agents/a.md")
SAYS = {"spec": {"name": "a"}}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a cache file with one entry."""
    found = tmp_path / "agentctl" / "known.json"
    known = KnownFiles(found)
    known.keep("own", AGENT, b"text", SAYS)
    known.save()
    assert found.stat().st_mode & 0o777 == 0o600
    return found


def test_it_counts_for_the_same_bytes_of_the_same_file_read_the_same_way(file: Path) -> None:
    known = KnownFiles(file)
    assert known.said("own", AGENT, b"text") == SAYS
    assert known.said("own", AGENT, b"text ") is None
    assert known.said("claude", AGENT, b"text") is None
    assert known.said("own", AGENT.with_name("b.md"), b"text") is None


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_nothing_is_believed_that_somebody_else_could_have_written(file: Path, mode: int) -> None:
    file.chmod(mode)
    assert KnownFiles(file).said("own", AGENT, b"text") is None


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"files": 1}', '{"files": {"own /home/me/.agentctl/agents/a.md": 1}}']
)
def test_a_damaged_file_is_as_good_as_none_and_is_written_anew(file: Path, text: str) -> None:
    by = json.loads(file.read_text())["by"]
    file.write_text(text.replace("{", f'{{"by": "{by}", ', 1) if "files" in text else text)
    known = KnownFiles(file)
    assert known.said("own", AGENT, b"text") is None
    known.keep("own", AGENT, b"text", SAYS)
    known.save()
    assert KnownFiles(file).said("own", AGENT, b"text") == SAYS


def test_another_version_finds_it_out_anew(file: Path) -> None:
    file.write_text(file.read_text().replace('"by": "', '"by": "0.0.1 '))
    assert KnownFiles(file).said("own", AGENT, b"text") is None


def test_it_does_not_grow_for_ever_and_keeps_no_large_file(file: Path) -> None:
    known = KnownFiles(file)
    for number in range(400):
        known.keep("own", AGENT.with_name(f"{number}.md"), b"text", SAYS)
    known.keep("own", AGENT.with_name("large.md"), b"x" * 100_000, SAYS)
    known.save()
    again = KnownFiles(file)
    assert again.said("own", AGENT.with_name("399.md"), b"text") == SAYS
    assert again.said("own", AGENT, b"text") is None
    assert again.said("own", AGENT.with_name("large.md"), b"x" * 100_000) is None


def test_where_nothing_can_be_written_nothing_is_known(tmp_path: Path) -> None:
    (tmp_path / "agentctl").write_text("a file where the folder would be")
    known = KnownFiles(tmp_path / "agentctl" / "known.json")
    known.keep("own", AGENT, b"text", SAYS)
    known.save()
    assert KnownFiles(tmp_path / "agentctl" / "known.json").said("own", AGENT, b"text") is None
