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


@pytest.mark.parametrize(
    ("which", "text", "problem"),
    [
        (RUNNERS, "runners: {slurm: {pollSeconds: 0}}", "pollSeconds must be a number from 0.2 to 3600"),
        (RUNNERS, "runners: {slurm: {submitAhead: 2.5}}", "submitAhead must be a whole number from 0 to 1000"),
        (RUNNERS, "runners: {slurm: {folder: here}}", "folder must be an absolute path"),
        (
            RUNNERS,
            "runners: {slurm: {queue: x}}",
            "unknown key 'queue'; known: pollSeconds, silenceSeconds, folder, python, submitAhead",
        ),
        (HOSTS, "hosts: {b: {ssh: b, silentSeconds: yes}}", "silentSeconds must be a number from "),
        (HOSTS, "hosts: {b: {port: 1}}", "unknown key 'port'; known: ssh, agentctl, folder, silentSeconds"),
        (NOTIFY, "notify: {phones: []}", "unknown key 'phones'; known: targets, hosts, always, quiet"),
        (DEFAULTS, "host: {}", "unknown key 'host'; known: config, driverOrder, notify, runners, hosts"),
    ],
    ids=lambda value: value.replace(" ", "") if isinstance(value, str) and "{" in value else "",
)
def test_an_error_names_file_line_and_key(file: Path, which: Section[object], text: str, problem: str) -> None:
    file.write_text(f"# mine\n{text}\n", encoding="utf-8")
    with pytest.raises(UsageError, match=re.escape(f"{file}:2: {problem}")):
        section(which)


def test_the_settings_of_a_runner_are_fields_of_a_placement(file: Path) -> None:
    settings = {"pollSeconds": 15, "silenceSeconds": 60, "folder": "/f", "python": "/p", "submitAhead": 3}
    file.write_text(f"runners: {{slurm: {settings}}}\n", encoding="utf-8")
    assert section(RUNNERS) == {"slurm": {"poll_s": 15, "silence_s": 60, "folder": "/f", "python": "/p", "ahead": 3}}
