"""A person's config.yaml: whose file counts for what."""

from __future__ import annotations

import os
import re
from pathlib import Path
from threading import Thread

import pytest

from agentctl.errors import UsageError
from agentctl.operations.where.personal_config import DEFAULTS, DRIVER_ORDER, HOSTS, NOTIFY, RUNNERS, Section, section


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "agentctl").mkdir()
    return tmp_path / "agentctl" / "config.yaml"


@pytest.mark.parametrize(
    ("which", "text", "power"),
    [
        (DEFAULTS, "config: {permissions: deny}", "config.permissions"),
        (DEFAULTS, "config: {runner: slurm}", "config.runner"),
        (DEFAULTS, "config: {resources: {cpus: 2}}", "config.resources"),
        (NOTIFY, "notify: {hosts: [ntfy.sh]}", "notify"),
        (RUNNERS, "runners: {slurm: {pollSeconds: 15}}", "runners"),
        (HOSTS, "hosts: {build: me@build.example}", "hosts"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isidentifier() else "",
)
def test_what_is_allowed_or_run_counts_only_where_nobody_else_can_write_it(
    file: Path, which: Section[object], text: str, power: str
) -> None:
    file.write_text(text, encoding="utf-8")
    file.chmod(0o600)
    assert section(which)
    file.chmod(0o666)
    with pytest.raises(UsageError, match=re.escape(f"{file} sets {power}, and others can write it")):
        section(which)


def test_everything_else_counts_all_the_same(file: Path) -> None:
    file.write_text("config: {maxDepth: 3}\ndriverOrder: [codex]\n", encoding="utf-8")
    file.chmod(0o666)
    assert section(DEFAULTS) == {"maxDepth": 3}
    assert section(DRIVER_ORDER) == ["codex"]
    assert section(HOSTS) == {}


def test_a_file_that_is_saved_anew_once_it_was_read_counts_as_it_was_read(file: Path) -> None:
    """Some editors move the old file away first; a FIFO lets that happen right after what is in it was read."""
    os.mkfifo(file, 0o600)

    def save() -> None:
        with file.open("w", encoding="utf-8") as pipe:
            pipe.write("hosts: {build: me@build.example}")
            file.unlink()

    saver = Thread(target=save)
    saver.start()
    try:
        assert section(HOSTS)["build"].destination == "me@build.example"
    finally:
        saver.join()
