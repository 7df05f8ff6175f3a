"""At stake: the layer that makes calls fail meets every call that Python makes, so that no test of errors is empty."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

import pytest

from tests import faults as layer
from tests.faults import Faults
from tests.steps import new_task, spawn
from tests.support import run, wait_until, worker

#: What Python does in a folder that has a file `old` and a folder `sub`, and the kind of call that it takes.
_DEEDS = {
    "os.open('old', os.O_RDONLY)": layer.OPEN,
    "open('old')": layer.OPEN,
    "os.open('old', os.O_RDWR)": layer.CHANGE,
    "open('old', 'ab')": layer.CHANGE,
    "os.open('new', os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)": layer.CREATE,
    "os.open('new', os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=here)": layer.CREATE,
    "os.mkfifo('new')": layer.CREATE,
    "os.read(old, 9)": layer.READ,
    "os.pread(old, 9, 0)": layer.READ,
    "os.write(old, b'x')": layer.WRITE,
    "os.pwrite(old, b'x', 0)": layer.WRITE,
    "os.writev(old, [b'x'])": layer.WRITE,
    "os.fsync(old)": layer.SYNC,
    "os.fdatasync(old)": layer.SYNC,
    "os.fsync(here)": layer.SYNC,
    "os.rename('old', 'new')": layer.RENAME,
    "os.replace('old', 'new')": layer.RENAME,
    "os.link('old', 'new')": layer.LINK,
    "os.symlink('old', 'new')": layer.LINK,
    "os.unlink('old')": layer.UNLINK,
    "os.unlink('old', dir_fd=here)": layer.UNLINK,
    "os.rmdir('sub')": layer.UNLINK,
    "os.mkdir('new')": layer.MKDIR,
    "os.truncate('old', 0)": layer.TRUNCATE,
    "os.ftruncate(old, 0)": layer.TRUNCATE,
    "os.chmod('old', 0o600)": layer.MODE,
    "os.fchmod(old, 0o600)": layer.MODE,
    "os.utime('old')": layer.MODE,
    "os.stat('old')": layer.STAT,
    "os.lstat('old')": layer.STAT,
    "os.listdir('sub')": layer.SCAN,
    "os.scandir('sub')": layer.SCAN,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "disk"
    (place / "sub").mkdir(parents=True)
    (place / "old").write_bytes(b"text")
    return place


def python(faults: Faults, folder: Path, code: str, *, opened: bool = True) -> str:
    before = "here = os.open('.', os.O_RDONLY); old = os.open('../disk/old', os.O_RDWR)" if opened else ""
    argv = [faults.program[0], "-I", "-S", "-c", f"import os\n{before}\n{code}"]
    return subprocess.run(argv, cwd=folder, check=True, capture_output=True, text=True).stdout


def tried(*deeds: str) -> str:
    return "\n".join(f"try:\n {deed}\nexcept OSError as error:\n print({deed!r}, error.errno)" for deed in deeds)


def test_each_kind_of_call_is_met_and_no_other(faults: Faults, folder: Path) -> None:
    for kind in sorted(set(_DEEDS.values())):
        faults.mend()
        faults.fail(folder, kind, errno.EDQUOT)
        mine = [deed for deed, of in _DEEDS.items() if of == kind]
        told = python(faults, folder, tried(*mine, "os.getcwd()"), opened=kind not in (layer.OPEN, layer.CHANGE))
        assert told.splitlines() == [f"{deed} {errno.EDQUOT}" for deed in mine]
        assert sorted(path.name for path in folder.iterdir()) == ["old", "sub"]


def test_it_meets_only_what_lies_below_the_folder_and_only_so_often(faults: Faults, folder: Path) -> None:
    number = faults.fail(folder / "sub", layer.CREATE, errno.ENOSPC, times=2)
    beside = "os.close(os.open('beside', os.O_CREAT)); os.mkdir('subs')"
    below = "os.close(os.open('sub/new', os.O_CREAT))"
    told = python(faults, folder, f"{beside}\n{tried(below, below, below)}")
    assert told.splitlines() == [f"{below} {errno.ENOSPC}"] * 2
    assert faults.hits(number) == 2
    assert (folder / "sub" / "new").exists()


def test_it_lets_calls_pass_before(faults: Faults, folder: Path) -> None:
    number = faults.fail(folder, layer.MKDIR, errno.EIO, times=1, after=2)
    deeds = [f"os.mkdir('{name}')" for name in "abcd"]
    assert python(faults, folder, tried(*deeds)) == f"os.mkdir('c') {errno.EIO}\n"
    assert faults.hits(number) == 1


def test_the_wall_clock_is_set_and_no_other(faults: Faults, folder: Path) -> None:
    code = (
        "import time; print(int(time.time()), time.time_ns() // 10**9, time.localtime().tm_year, int(time.monotonic()))"
    )
    right = python(faults, folder, code).split()
    faults.set_clock(-400 * 86400)
    wrong = python(faults, folder, code).split()
    moved = [int(after) - int(before) for before, after in zip(right, wrong, strict=True)]
    assert [round(one / 86400) for one in moved[:2]] == [-400, -400]
    assert moved[2] in (-1, -2)
    assert 0 <= moved[3] < 60


def test_a_write_is_cut_short_and_a_fifo_is_no_file_of_the_disk(faults: Faults, folder: Path) -> None:
    faults.fail(folder, layer.WRITE, layer.CUT_SHORT, times=1)
    assert python(faults, folder, "print(os.write(old, b'12345678'), os.write(old, b'9'))") == "4 1\n"
    faults.mend()
    os.mkfifo(folder / "fifo")
    faults.fail(folder, layer.CHANGES, errno.EIO)
    assert (
        python(faults, folder, "fifo = os.open('fifo', os.O_RDWR)\nprint(os.write(fifo, b'x'))", opened=False) == "1\n"
    )


def test_a_shim_has_it_and_a_worker_has_not(root: Path, faulty: Faults) -> None:
    task = new_task()
    gate, told = root.parent / "gate", root.parent / "told"
    code = (
        "import os, time\n"
        f"while not os.path.exists({str(gate)!r}): time.sleep(0.02)\n"
        f"print(os.environ.get('LD_PRELOAD')); open({str(told)!r}, 'w').close(); raise SystemExit(3)"
    )
    spawn([*worker("exits", 0)[:1], "-u", "-c", code], name="a")
    number = faulty.fail(task.agent("a"), layer.LINK, errno.EIO)
    gate.touch()
    wait_until(lambda: faulty.hits(number), what="its shim to be refused")
    assert (task.agent("a") / "stdout.log").read_text() == "None\n"
    assert task.exit("a") is None
    faulty.mend()
    assert run("wait", "a", check=False).code == 7
    assert (task.exit("a") or {})["exitCode"] == 3
