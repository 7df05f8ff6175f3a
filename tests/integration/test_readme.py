"""At stake: whoever types what README shows, line after line, sees what it shows."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests.readme import lacking, shown_in, typed
from tests.support import run

pytestmark = pytest.mark.slow

#: Commands whose output differs from one machine, and one moment, to the next.
_OF_THE_MOMENT = re.compile(r"^(ps|time) |agentctl (list|tasks)\b")
#: What takes a minute in README ends here when the line is typed that waits for it.
_MINUTE, _GATE, _WAITS = "sleep 60", "until [ -e gate ]; do sleep 0.05; done", "while end=$(agentctl wait-any)"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder, in which the commands of the test run."""
    place = tmp_path / "tour"
    place.mkdir()
    monkeypatch.delenv("AGENTCTL_ROOT", raising=False)
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    monkeypatch.chdir(place)
    return place


def test_five_minutes(root: Path, folder: Path) -> None:
    lines = list(shown_in("Five minutes with commands"))
    assert len(lines) > 25
    assert sum(_MINUTE in shown.line for shown in lines) == 1
    for shown in lines:
        if shown.line.startswith(_WAITS):
            # At typing speed, the second one has long started and ended by then.
            run("wait", "lint", check=False)
            Path("gate").touch()
        _, out = typed(shown.line.replace(_MINUTE, _GATE))
        if not _OF_THE_MOMENT.search(shown.line):
            missing = lacking(shown, out, folder, "/tmp/tour")
            assert not missing, f"$ {shown.line}\n{out}\nlacks {missing}"
    assert run("doctor", check=False).code == 0
