"""Gets pipx and uv, in the versions that were tested, into a cache of their own: `python -m tests.extras.install`."""

from __future__ import annotations

import os
import shutil
import sys
import venv
from pathlib import Path

from tests.agents.install import Unavailable, cache, run_installer

INSTALLERS = {"pipx": "1.18.4", "uv": "0.13.9"}


def programs() -> Path:
    """Return the folder where `pipx` and `uv` are, or will be."""
    return cache() / "-".join(["installers", *INSTALLERS.values()]) / "bin"


def install() -> None:
    """Install both if they are not there.

    Raises:
        Unavailable: pip cannot have them.
    """
    folder = programs().parent
    if (folder / "whole").exists():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    venv.EnvBuilder(clear=True, symlinks=True, with_pip=True).create(folder)
    wanted = [f"{name}=={version}" for name, version in INSTALLERS.items()]
    pip = [str(programs() / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    try:
        run_installer([*pip, *wanted], f"pip could not install {' and '.join(wanted)}", os.environ)
    except Unavailable:
        shutil.rmtree(folder)
        raise
    (folder / "whole").touch()


def main() -> int:
    """Install, and say what is there."""
    try:
        install()
    except Unavailable as error:
        print(f"skipped: everything about how an extra is installed: {error}")
        return os.EX_UNAVAILABLE
    print(f"{', '.join(' '.join(one) for one in INSTALLERS.items())}: {programs()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
