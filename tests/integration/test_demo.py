"""At stake: `agentctl demo` shows the main job wherever it is typed, and says what it examines."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import agentctl
from tests.support import run

pytestmark = pytest.mark.slow

SOURCE = "def one():\n    return 1\n"


@pytest.mark.parametrize("place", ["empty", "source", "home"])
def test_the_demo_examines_what_is_worth_it(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    folder = Path(os.environ["HOME"]) if place == "home" else tmp_path / "work"
    (folder / "src").mkdir(parents=True)
    if place != "empty":
        (folder / "src" / "one.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.chdir(folder)
    shown = run("demo", timeout=150).out
    examined = folder if place == "source" else Path(agentctl.__file__).parent
    assert f"-- the source tree: {examined} (--path FOLDER takes another)" in shown
    assert f"\n# Survey of `{examined}`\n" in shown
    # One function is nothing to ask about.
    assert ("answered q1 of functions in survey-of-agentctl" in shown) == (place != "source")
    assert {row["status"] for row in run("list", "--json").json} <= {"completed", "cancelled"}
