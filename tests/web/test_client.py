"""At stake: a client that is generated from the description of the interface works, and its answers have types."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.agents.install import Unavailable, run_installer
from tests.web.support import serving

pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]
#: What generates it, in the version that was tried, and what checks a program that uses it.
PACKAGES = ("openapi-python-client==0.29.0", "mypy>=2.4,<2.5")
SCRIPT = Path(__file__).with_name("client_script.py")
#: The answer, how the one that asked has ended, what it printed, and what became of the other.
TOLD = ["yes", "completed", "0", "yes", "cancelled"]


@pytest.fixture(scope="session")
def generator() -> Path:
    """Return the interpreter of an environment with the generator; it is made once."""
    folder = Path(sys.prefix) / "client"
    python, stamp = folder / "bin" / "python", folder / PACKAGES[0]
    if not stamp.exists():
        venv.EnvBuilder(clear=True, symlinks=True, with_pip=True).create(folder)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES]
        try:
            run_installer(pip, f"pip could not install {PACKAGES[0]}", os.environ)
        except Unavailable as error:
            pytest.skip(str(error))
        stamp.touch()
    return python


def test_a_generated_client_does_the_main_job_with_typed_answers(root: Path, tmp_path: Path, generator: Path) -> None:
    with serving(root) as server:
        described = tmp_path / "openapi.json"
        described.write_text(json.dumps(server.get("/openapi.json").done()), encoding="utf-8")
        made = tmp_path / "made"
        command = ["-m", "openapi_python_client", "generate", "--path", str(described), "--output-path", str(made)]
        done = _run(generator, [*command, "--meta", "none"], cwd=tmp_path)
        assert "ERROR" not in done.stdout
        made.rename(tmp_path / "agentctl_client")
        typed = ["-m", "mypy", "--strict", "--follow-untyped-imports", str(SCRIPT)]
        _run(generator, typed, cwd=tmp_path, env={"MYPYPATH": str(tmp_path)})
        told = _run(generator, [str(SCRIPT), server.url, server.token], cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)})
    assert told.stdout.splitlines() == TOLD


def _run(
    python: Path, args: list[str], *, cwd: Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [str(python), *args], cwd=cwd, env={**os.environ, **(env or {})}, capture_output=True, text=True, check=False,
        timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done
