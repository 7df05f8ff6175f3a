"""Makes chosen calls of the program below a chosen folder fail with a chosen error, cuts its writes short, or sets its
wall clock off.

The layer is `faults.c`, built for each run of the tests and loaded by LD_PRELOAD. Its rules lie in a table that all
processes share: a test changes them while they run. The programs that agentctl starts for a worker have no such layer.
"""

from __future__ import annotations

import mmap
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import support

#: The calls, as in faults.c. OPEN is any open(2); CHANGE one that may change a file, CREATE one that makes it.
(OPEN, CHANGE, CREATE, READ, WRITE, SYNC, RENAME, LINK, UNLINK, MKDIR, TRUNCATE, MODE, STAT, SCAN) = (
    1 << bit for bit in range(14)
)
#: What needs room on a disk; and all that changes one.
TAKES_ROOM = CREATE | WRITE | LINK | MKDIR
CHANGES = TAKES_ROOM | CHANGE | SYNC | RENAME | UNLINK | TRUNCATE | MODE
#: In the place of an errno: a write takes half of its data, and no error is told.
CUT_SHORT = 0
_RULES = 16
_RULE = struct.Struct("1024sIiiIi")
_CLOCK = struct.Struct("q")
_SOURCE = Path(__file__).with_suffix(".c")


class Faults:
    """The layer, and the rules by which calls fail. A new one has no rule.

    Attributes:
        environ: Loads it into one command, and into nothing that this starts.
        program: The beginning of a command line of agentctl, in which it is also in all shims and hosts.
    """

    def __init__(self, folder: Path) -> None:
        compiler = shutil.which("cc")
        if compiler is None:
            pytest.skip("no C compiler (cc) here: the layer that makes calls fail cannot be built")
        table, library, python = folder / "table", folder / "faults.so", folder / "venv" / "bin" / "python"
        table.write_bytes(bytes(_RULES * _RULE.size + _CLOCK.size))
        with table.open("r+b") as file:
            self._table = mmap.mmap(file.fileno(), 0)
        _build(compiler, "-shared", "-fPIC", "-o", library)
        _like_this_python(python)
        names = {"LIBRARY": library, "TABLE": table, "PYTHON": Path(sys.executable).resolve()}
        defined = [f'-D{name}="{path}"' for name, path in names.items()]
        _build(compiler, "-DLAUNCHER", *defined, "-o", python)
        self.environ = {"LD_PRELOAD": str(library), "FAULTS_TABLE": str(table)}
        self.program = (str(python), "-m", "agentctl")
        self._many = 0

    def fail(self, folder: Path, calls: int, error: int, times: int = -1, after: int = 0) -> int:
        """Make calls below a folder fail with `error`, so many times or always, after so many that do not.

        Returns:
            The number of that rule.
        """
        number, self._many = self._many, self._many + 1
        path = os.fsencode(folder.resolve())
        _RULE.pack_into(self._table, number * _RULE.size, path, 0, error, times, 0, after)
        # Its calls last: without them, it meets none.
        struct.pack_into("I", self._table, number * _RULE.size + 1024, calls)
        return number

    def hits(self, number: int) -> int:
        """Return how many calls a rule has met."""
        met: int = _RULE.unpack_from(self._table, number * _RULE.size)[4]
        return met

    def set_clock(self, ahead_s: int) -> None:
        """Have the wall clock be so many seconds ahead of the machine's; times of files and of intervals stay."""
        _CLOCK.pack_into(self._table, _RULES * _RULE.size, ahead_s)

    def mend(self) -> None:
        """Take all rules back; the clock stays as it is set."""
        for number in range(_RULES):
            struct.pack_into("I", self._table, number * _RULE.size + 1024, 0)
        self._many = 0

    def close(self) -> None:
        """Take the rules back for whatever still runs, and let go of the table."""
        self.mend()
        self._table.close()


def _build(compiler: str, *arguments: str | Path) -> None:
    done = subprocess.run(
        [compiler, "-O1", *arguments, str(_SOURCE), "-ldl"], check=False, capture_output=True, text=True
    )
    if done.returncode != 0:
        pytest.fail(f"{_SOURCE.name} cannot be built:\n{done.stderr}")


def _like_this_python(python: Path) -> None:
    """Prepare a virtual environment in which a program in the place of its Python finds what this one finds."""
    python.parent.mkdir(parents=True)
    here = Path(sys.prefix)
    for name in ("lib", "lib64", "pyvenv.cfg"):
        if (here / name).exists():
            (python.parent.parent / name).symlink_to(here / name)


@pytest.fixture
def faults(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faults]:
    """Return a layer without rules."""
    layer = Faults(tmp_path_factory.mktemp("faults"))
    try:
        yield layer
    finally:
        layer.close()


@pytest.fixture
def faulty(faults: Faults, monkeypatch: pytest.MonkeyPatch) -> Faults:
    """Return a layer that is in every command that `support` runs, and in all shims and hosts below it."""
    monkeypatch.setattr(support, "PROGRAM", faults.program)
    return faults
