"""At stake: whoever types what README shows, line after line, sees what it shows."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests.fakessh import FAR_END, put_ssh
from tests.readme import alike, shown_in
from tests.support import REPOSITORY, run
from tests.terminal import on_a_terminal

pytestmark = pytest.mark.slow

#: Commands whose output differs from one machine, and one moment, to the next.
_OF_THE_MOMENT = re.compile(r"^(ps|time|python3) |agentctl (list|tasks|doctor|wait-all)\b")


#: What takes some seconds in README takes here until it is seen, and when that is: before the line that begins so.
_UNTIL = "until [ -e {} ]; do sleep 0.05; done"
_GATES = {"lint": ("sleep 1", "agentctl list"), "build": ("sleep 3", "while end=$(agentctl wait-any)")}


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the sources, and a person's settings; the commands of the test run there."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "agentctl").symlink_to(REPOSITORY / "agentctl")
    settings = Path(os.environ["HOME"]) / ".config" / "agentctl" / "config.yaml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text("notify: {targets: {desk: {type: command, command: ['true']}}}\n", encoding="utf-8")
    settings.chmod(0o600)
    monkeypatch.delenv("AGENTCTL_ROOT", raising=False)
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    put_ssh(tmp_path / "bin", f"exec {FAR_END}")
    monkeypatch.chdir(folder)
    return folder


def gated(line: str) -> str:
    """Return a line whose worker ends once its gate is open."""
    named = [name for name in _GATES if line.startswith(f"agentctl spawn --name {name} ")]
    return line.replace(_GATES[named[0]][0], _UNTIL.format(named[0])) if named else line


def open_gates(line: str) -> None:
    """Let the workers end whose ends come before a line; wait for the other ends that do."""
    for name, (_, before) in _GATES.items():
        if line.startswith(before) and not Path(name).exists():
            if name == "build":
                run("wait", "deploy")
            Path(name).touch()
            run("wait", name, check=False)


def test_five_minutes(root: Path, checkout: Path) -> None:
    typed = list(shown_in("Five minutes"))
    assert len(typed) > 25
    for shown in typed:
        open_gates(shown.line)
        _, sent = on_a_terminal(["bash", "-c", gated(shown.line)], width=300)
        out = sent.decode().replace("\r", "")
        printed = {alike(line, checkout, "/tmp/agentctl") for line in out.splitlines()}
        # Which workers other hosts have, only they know.
        told = [line for line in shown.printed if "--hosts" not in shown.line or not line.startswith("next: ")]
        expected = [alike(line, checkout, "/tmp/agentctl") for line in told]
        if not _OF_THE_MOMENT.search(shown.line):
            missing = [line for line in expected if line not in printed]
            assert not missing, f"$ {shown.line}\n{out}\nlacks {missing}"
    assert run("doctor", check=False).code == 0
