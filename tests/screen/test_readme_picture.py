"""At stake: what README's picture shows is what the screen shows today, and GitHub draws it."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.readme import README
from tests.support import REPOSITORY

PICTURE = REPOSITORY / "docs" / "pictures" / "readme.svg"


def stills(text: str) -> list[str]:
    """Return the texts of each still."""
    parts = text.split('<g class="still')[1:]
    return ["\n".join(map(html.unescape, re.findall(r"<text[^>]*>([^<]*)</text>", part))) for part in parts]


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_the_picture_is_of_the_present_screen(tmp_path: Path) -> None:
    made = tmp_path / "readme.svg"
    script = PICTURE.with_suffix(".py")
    done = subprocess.run([sys.executable, script, made], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    shown, now = stills(PICTURE.read_text(encoding="utf-8")), stills(made.read_text(encoding="utf-8"))
    assert len(now) == 4
    assert shown == now, "python docs/pictures/readme.py makes it again"


def test_the_picture_in_readme_is_small_and_needs_nothing_from_elsewhere() -> None:
    assert f"](docs/pictures/{PICTURE.name})" in README
    text = PICTURE.read_text(encoding="utf-8").replace('xmlns="http://www.w3.org/2000/svg"', "", 1)
    assert len(text) < 200_000
    assert not re.search(r"<(?:script|image|foreignObject|use)\b|@font-face|@import|url\(|https?:|\bon\w+=", text)
    assert not re.search(r"/(?:tmp|root|usr)/", text), "whose machine it was made on is not in it"
    assert {"claude", "codex", "opencode"} <= set(re.findall(r"general:(\w+)", text))
