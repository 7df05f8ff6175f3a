"""The documents name what the code has, all of it: limits, reasons, events, files, fields, decisions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agentctl.adapters.taskdir import Root, TaskDir, WorkerDir
from agentctl.adapters.taskyaml.reader import OTHER_KEYS
from agentctl.domain import events
from agentctl.domain.limits import KEYS
from agentctl.domain.states import Reason
from agentctl.supervision.worker.spec import WorkerSpec
from tests.support import REPOSITORY

DOCS = REPOSITORY / "docs"
FORMATS = (DOCS / "file-formats.md").read_text(encoding="utf-8")
JSON = (DOCS / "json.md").read_text(encoding="utf-8")


def words_in(text: str) -> set[str]:
    """Return the words in code style, alone or within a longer text, and those of examples and headings."""
    styled = [span for line in text.splitlines() for span in re.findall(r"`([^`]+)`", line)]
    examples = [line for line in text.splitlines() if line.startswith(("    ", "#"))]
    return set(re.findall(r"[\w.\-]+", " ".join([*styled, *examples])))


WORDS = {text: words_in(text) for text in (FORMATS, JSON)}


def spec_fields() -> set[str]:
    spec = WorkerSpec(
        instance="a", agent="command", argv=["true"], cwd="/", env_names=[], umask=0, timeout_s=1.0, grace_s=1.0,
        max_output_bytes=1,
    )  # fmt: skip
    return set(spec.to_json())


def test_every_limit_is_a_row_and_no_row_is_an_old_one() -> None:
    documented = set(re.findall(r"`config\.(\w+)`", FORMATS)) - {"json", "yaml"}
    assert documented == set(KEYS.values()) | set(OTHER_KEYS)


@pytest.mark.parametrize("text", [FORMATS, JSON], ids=["file-formats.md", "json.md"])
def test_every_reason_is_named(text: str) -> None:
    assert {reason.value for reason in Reason} - WORDS[text] == set()


def test_every_event_has_its_row_and_no_row_is_an_old_one() -> None:
    names = {
        value for name, value in vars(events).items() if name.isupper() and isinstance(value, str) and "." in value
    }
    assert len(names) > 15
    rows = re.findall(r"^\| ([^|]+) \| `?\{", FORMATS, re.MULTILINE)
    documented = set(re.findall(r"`([a-z]+\.[a-z_]+)`", " ".join(rows)))
    assert documented == names


@pytest.mark.parametrize("folder", [Root, TaskDir, WorkerDir], ids=lambda kind: kind.__name__)
def test_every_file_is_named(folder: type[Root | TaskDir | WorkerDir]) -> None:
    names = {Path(path).name for path, _ in folder("/nowhere").entries()}
    assert names - WORDS[FORMATS] == set()


def test_every_field_of_a_spec_is_named() -> None:
    assert len(spec_fields()) > 15
    assert spec_fields() - WORDS[FORMATS] == set()


def test_every_decision_is_in_the_index_and_every_number_is_accounted_for() -> None:
    index = (DOCS / "decisions/README.md").read_text(encoding="utf-8")
    files = {path.name for path in (DOCS / "decisions").glob("0*.md")}
    assert set(re.findall(r"\]\((0\d+-[\w.-]+\.md)\)", index)) == files
    numbers = {int(name[:4]) for name in files} | {
        int(number) for number in re.findall(r"^\| (\d+) \|", index, re.MULTILINE)
    }
    assert numbers == set(range(1, max(numbers) + 1))
