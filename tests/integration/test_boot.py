"""At stake: after a restart of the machine a root goes on by itself, wherever it lies; the undo leaves nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.steps import Task, held, spawn_batch
from tests.support import run, wait_for_json, wait_until

pytestmark = pytest.mark.slow

#: What a shell, cron or systemd could take for something else.
ODD = ["a 50% 'quoted' \"root\"", "plain", "$HOME;`id`#&"]
OTHERS = "# mine\n@reboot  echo other\n5 4 * * * date +\\%F\n"


@pytest.fixture
def crontab(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the crontab of this person, which a program `crontab` keeps as the real one does."""
    table, program = tmp_path / "crontab.table", tmp_path / "cron" / "crontab"
    program.parent.mkdir()
    program.write_text(
        f"#!/bin/sh\ncase $1 in\n-l) [ -e '{table}' ] || {{ echo 'no crontab for me' >&2; exit 1; }}; cat '{table}';;\n"
        f"-r) rm '{table}';;\n-) cat >'{table}';;\nesac\n",
        encoding="utf-8",
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return table


def boot(table: Path) -> subprocess.CompletedProcess[str]:
    """Run the last command of a crontab as cron(8) does: hardly any variables, and `\\%` for a per cent sign."""
    command = table.read_text(encoding="utf-8").splitlines()[-1].removeprefix("@reboot ").replace("\\%", "%")
    few = {"PATH": "/usr/bin:/bin", "SHELL": "/bin/sh", "AGENTCTL_TEST_ID": os.environ["AGENTCTL_TEST_ID"]}
    return subprocess.run(["/bin/sh", "-c", command], env=few, cwd="/", capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", ODD)
def test_what_the_crontab_has_goes_on_after_everything_was_killed(
    crontab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    crontab.write_text(OTHERS, encoding="utf-8")
    place = tmp_path / name / ".agentctl"
    place.parent.mkdir()
    told = run("new", "A task", "--id", "t1", "--max-concurrent", "1", "--root", place)
    task = Task(Path(told.out.rstrip("\n").split("\t")[1]))
    monkeypatch.setenv("AGENTCTL_ROOT", str(place))
    spawn_batch([held(tmp_path / "never", "a"), {"name": "b", "argv": ["true"]}])
    assert run("install", "boot", "--write").out == "written: crontab\n"
    assert "there is nothing to change" in run("install", "boot", "--write").err

    pid = int(wait_for_json(task.agent("a") / "worker.json")["pid"])
    for one in (task.shim_of("a"), pid):
        os.kill(one, 9)
    for blob in (Path(os.environ["XDG_RUNTIME_DIR"]) / "agentctl").iterdir():
        blob.unlink()
    wait_until(lambda: run("list").out, accept=lambda out: "b\tqueued\tstranded" in out, what="b to be stranded")
    booted = boot(crontab)
    assert (booted.returncode, booted.stdout, booted.stderr) == (0, "b queued in t1: its queue goes on\n", "")
    task.ended("b")
    again = boot(crontab)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", ""), "cron would send it by mail"

    assert run("install", "boot", "--undo").out == "removed: crontab\n"
    assert crontab.read_text(encoding="utf-8") == OTHERS
    assert "there is nothing to change" in run("install", "boot", "--undo").err


def test_each_root_has_an_entry_of_its_own_which_outlives_it(crontab: Path, root: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / ".agentctl"
    other.parent.mkdir()
    for place in (root, other):
        run("new", "A task", "--id", "t1", "--root", place)
        shown = run("install", "boot", "--root", place, "--json").json
        assert not crontab.exists() or shown["text"] not in crontab.read_text(encoding="utf-8"), "it is only shown"
        run("install", "boot", "--write", "--root", place)
        assert shown["text"] in crontab.read_text(encoding="utf-8")
    other.rename(tmp_path / "gone")
    run("install", "boot", "--undo", "--root", other)
    assert len(crontab.read_text(encoding="utf-8").splitlines()) == 1
    run("install", "boot", "--undo", "--root", root)
    assert not crontab.exists(), "there was none before"


def test_a_crontab_that_cannot_be_read_is_not_overwritten(crontab: Path, root: Path, tmp_path: Path) -> None:
    run("new", "A task", "--id", "t1")
    crontab.mkdir()
    told = run("install", "boot", "--write", check=False)
    assert (told.code, "crontab -l failed" in told.err, crontab.is_dir()) == (1, True, True)


@pytest.mark.parametrize("name", ODD)
def test_a_unit_of_systemd_is_written_where_that_runs(root: Path, tmp_path: Path, name: str) -> None:
    private = Path(os.environ["XDG_RUNTIME_DIR"]) / "systemd" / "private"
    private.parent.mkdir(parents=True)
    private.touch()
    place = tmp_path / name / ".agentctl"
    place.parent.mkdir()
    run("new", "A task", "--id", "t1", "--root", place)
    shown = run("install", "boot", "--root", place, "--json").json
    units = tmp_path / "home" / ".config" / "systemd" / "user"
    assert (shown["kind"], Path(shown["path"]).parent) == ("systemd", units)
    written = run("install", "boot", "--root", place, "--write")
    assert written.out == f"written: {shown['path']}\n"
    (unit,) = units.glob("*.service")
    assert unit.read_text(encoding="utf-8") == shown["text"]
    assert (units / "default.target.wants" / unit.name).resolve() == unit
    escaped = str(place.resolve()).replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    (command,) = [line for line in shown["text"].splitlines() if line.startswith("ExecStart=")]
    assert command == f'ExecStart="{sys.executable}" "-P" "-m" "agentctl" "resume" "--lost" "--root" "{escaped}"'
    assert "KillMode=process" in shown["text"].splitlines(), "else systemd would kill what the command has started"
    assert "there is nothing to change" in run("install", "boot", "--root", place, "--write").err
    assert run("install", "boot", "--root", place, "--undo").out == f"removed: {unit}\n"
    assert not (tmp_path / "home" / ".config" / "systemd").exists()


def test_a_path_that_could_be_read_otherwise_is_refused(root: Path, tmp_path: Path) -> None:
    place = tmp_path / "two\nlines" / ".agentctl"
    place.parent.mkdir()
    run("new", "A task", "--id", "t1", "--root", place)
    assert "neither a systemd unit nor a crontab" in run("install", "boot", "--root", place, check=False).err
    assert run("install", "claude", "--write", check=False).code == 2
