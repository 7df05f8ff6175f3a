"""The folder of settings that a program is given: what leads where, and what is left of it."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from agentctl.adapters.taskdir import WorkerDir
from agentctl.drivers.codex.home import replaced_home
from agentctl.drivers.order import Order
from agentctl.worker_programs.agent_host.program.own_home import OwnHome
from tests.snapshots import files_with

KEY = "the-key-of-this-test"
ORDER = Order("codex", "/bin/false", "general", "x")
MAKES = """
import sys, time
from tests.integration.test_own_home import home_at
home, _, problem = home_at(sys.argv[1])
print(problem or "made", flush=True)
time.sleep(120)
"""


@pytest.fixture(autouse=True)
def persons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's own folder, with a config that holds a key."""
    folder = tmp_path / "persons"
    (folder / "rules").mkdir(parents=True)
    (folder / "config.toml").write_text(f'[mcp_servers.w.env]\nKEY = "{KEY}"\n', encoding="utf-8")
    (folder / "rules" / "mine.rules").write_text('prefix_rule(["touch"])\n', encoding="utf-8")
    (folder / "AGENTS.md").write_text("words", encoding="utf-8")
    (folder / "state_5.sqlite-wal").touch()
    with sqlite3.connect(folder / "state_5.sqlite") as database:
        database.execute("create table threads (id)")
    database.close()
    run = tmp_path / "run"
    run.mkdir(mode=0o700)
    monkeypatch.setenv("CODEX_HOME", str(folder))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(run))
    return folder


def home_at(path: Path | str) -> tuple[OwnHome, Order, str | None]:
    """Make the home of a worker at a path."""
    folder = replaced_home(ORDER)
    assert folder is not None
    Path(path).mkdir(exist_ok=True)
    home = OwnHome(WorkerDir(path), folder)
    return home, *home.given(ORDER)


def in_memory(tmp_path: Path) -> list[Path]:
    return [path for path in (tmp_path / "run" / "agentctl").iterdir() if path.name.startswith("home-")]


def test_all_is_the_persons_but_what_is_replaced(tmp_path: Path, persons: Path) -> None:
    home, order, problem = home_at(tmp_path / "w")
    assert problem is None
    own = Path(order.home["own"])
    assert own == tmp_path / "w" / "home"
    assert (own / "AGENTS.md").read_text(encoding="utf-8") == "words"
    assert [path.name for path in (own / "rules").iterdir()] == ["default.rules"]
    assert (own / "rules" / "default.rules").read_text(encoding="utf-8") == ""
    assert KEY in (own / "config.toml").read_text(encoding="utf-8")
    assert not (own / "state_5.sqlite").is_symlink()
    assert not os.path.lexists(own / "state_5.sqlite-wal")
    (own / "auth.json").write_text("{}", encoding="utf-8")
    (own / "sessions" / "one").touch()
    home.end()
    assert (persons / "auth.json").read_text(encoding="utf-8") == "{}"
    assert (persons / "sessions" / "one").exists()
    assert not own.exists()
    assert in_memory(tmp_path) == []


def test_no_key_is_written_into_the_task(tmp_path: Path) -> None:
    home, _, _ = home_at(tmp_path / "w")
    assert files_with(tmp_path / "w", "")
    assert files_with(tmp_path / "w", KEY) == []
    (folder,) = in_memory(tmp_path)
    assert [path.stat().st_mode & 0o077 for path in (folder, *folder.iterdir())] == [0, 0]
    home.end()


@pytest.mark.slow
def test_what_a_killed_host_has_left_is_replaced_and_swept(tmp_path: Path) -> None:
    (tmp_path / "killed").mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", MAKES, str(tmp_path / "killed")], stdout=subprocess.PIPE, text=True
    ) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == "made\n"
        (left,) = in_memory(tmp_path)
        (left / "config.toml.new").write_text("replaced by the program", encoding="utf-8")
        (left / "config.toml.new").rename(left / "config.toml")
        other, _, _ = home_at(tmp_path / "other")
        assert (left / "config.toml").exists(), "a home that is in use was swept"
        host.send_signal(signal.SIGKILL)
    again, order, problem = home_at(tmp_path / "killed")
    assert problem is None
    assert KEY in (Path(order.home["own"]) / "config.toml").read_text(encoding="utf-8")
    other.end()
    again.end()
    assert in_memory(tmp_path) == []
    with subprocess.Popen(
        [sys.executable, "-c", MAKES, str(tmp_path / "killed")], stdout=subprocess.PIPE, text=True
    ) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == "made\n"
        host.send_signal(signal.SIGKILL)
    third, _, _ = home_at(tmp_path / "third")
    assert len(in_memory(tmp_path)) == 1
    third.end()


def test_a_folder_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "none"))
    _, _, problem = home_at(tmp_path / "w")
    assert problem is not None
    assert f"CODEX_HOME is {tmp_path / 'none'}" in problem
