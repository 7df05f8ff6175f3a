"""Runs the command line's tests over each minor version of typer that is tried: `python -m tests.typers`.

In one turn of three (`TURN=2`, tests/turns.py) it is one of the versions.

Each version lies in an environment of its own within the virtual environment, and shadows the typer of that one; all
else is shared.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

from tests.agents.install import Unavailable, run_installer
from tests.support import REPOSITORY
from tests.turns import ALL, TURNS

TESTS = "tests/cli"
#: The minor versions that are tried: all since the oldest that is allowed.
VERSIONS = ("0.28", "0.29")
_WHICH = "import importlib.metadata as m, typer; print('typer', m.version('typer'), typer.__file__, flush=True)"


def minor_versions() -> list[str]:
    """Return the minor versions that are tried, the oldest that pyproject.toml allows first."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    bound = re.search(r"^typer>=(0\.\d+)$", "\n".join(project["dependencies"]), re.MULTILINE)
    assert bound is not None, "typer has no lower bound, or an upper one"
    assert bound[1] == VERSIONS[0], "the oldest version that is allowed is not tried"
    return list(VERSIONS)


def versions_of(turn: str) -> list[str]:
    """Return the versions that a turn has: one of them, and neighbours have different ones."""
    versions = minor_versions()
    return versions if turn == ALL else [versions[TURNS.index(int(turn)) % len(versions)]]


def environment_with(version: str) -> Path:
    """Return the interpreter of an environment with the newest typer of a minor version; make it if it is not there.

    Raises:
        Unavailable: pip cannot have it.
    """
    folder = Path(sys.prefix) / "typer" / version
    python, stamp = folder / "bin" / "python", folder / "whole"
    if not stamp.exists():
        venv.EnvBuilder(clear=True, symlinks=True).create(folder)
        packages = folder / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        what = f"typer=={version}.*"
        run_installer([*pip, "--target", str(packages), what], f"pip could not install {what}", os.environ)
        shared = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
        (packages / "shared.pth").write_text(shared, encoding="utf-8")
        stamp.touch()
    program = folder / "bin" / "agentctl"  # For lines that were printed, and are typed.
    program.write_text(
        f"#!{python}\nimport sys\nfrom agentctl.__main__ import run\nsys.exit(run())\n", encoding="utf-8"
    )
    program.chmod(0o755)
    return python


def main() -> int:
    """Run the tests over each version; return the exit code of the first one with which they fail."""
    for version in versions_of(os.environ.get("TURN", ALL)):
        try:
            python = environment_with(version)
        except Unavailable as error:
            print(f"skipped: the command line over each version of typer: {error}")
            return os.EX_UNAVAILABLE
        subprocess.run([python, "-c", _WHICH], check=True)
        done = subprocess.run([python, "-m", "pytest", *sys.argv[1:], TESTS], cwd=REPOSITORY, check=False)
        if done.returncode != 0:
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
