"""At stake: whoever types what README shows of agents, line after line, sees what it shows."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests.agent_steps import put_vendors
from tests.readme import lacking, shown_in, typed
from tests.repositories import git, new_repository

#: What agents change in README's repository.
FLAKY = """from app import server


def test_login() -> None:
    server.start()
    time.sleep(0.1)  # the server is up by then
    assert server.login("ada").is_known
"""
#: The name of a session differs each time.
_SESSION = re.compile(r"[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}")


@pytest.mark.slow
def test_what_readme_shows(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_vendors(tmp_path / "bin", "claude", "codex")
    path = [str(tmp_path / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
    monkeypatch.setenv("PATH", os.pathsep.join(path))
    monkeypatch.delenv("AGENTCTL_ROOT", raising=False)
    folder = new_repository(tmp_path / "app")
    (folder / "src").mkdir(exist_ok=True)
    (folder / "src" / "login.py").write_text(FLAKY, encoding="utf-8")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "a flaky test")
    monkeypatch.chdir(folder)
    lines = list(shown_in("Agents"))
    assert len(lines) > 12
    for shown in lines:
        code, out = typed(shown.line)
        expected = shown._replace(printed=[_SESSION.sub("SESSION", line) for line in shown.printed])
        missing = lacking(expected, _SESSION.sub("SESSION", out), folder, "/tmp/app")
        assert not missing, f"$ {shown.line}\n{out}\nlacks {missing}"
        assert code == 0, (shown.line, out)
    assert "wait_for_change" in (folder / "src" / "login.py").read_text(encoding="utf-8")
