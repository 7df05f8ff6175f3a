"""Locales that are not in UTF-8, made in a folder of the test: few machines have one."""

from __future__ import annotations

import subprocess
from pathlib import Path
from shutil import which

import pytest

#: Name -> the source and the character map that `localedef` makes it from.
LOCALES = {"de_DE.ISO-8859-1": ("de_DE", "ISO-8859-1"), "ja_JP.EUC-JP": ("ja_JP", "EUC-JP")}


def in_locale(folder: Path, name: str) -> dict[str, str]:
    """Make a locale; return the variables by which a program is in it."""
    if which("localedef") is None:
        pytest.skip("there is no localedef to make a locale with (Debian: locales)")
    source, characters = LOCALES[name]
    argv = ["localedef", "--no-archive", "-i", source, "-f", characters, str(folder / name)]
    made = subprocess.run(argv, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        pytest.skip(f"localedef makes no {name}: {made.stderr.strip()}")
    return {"LOCPATH": str(folder), "LC_ALL": name}
