"""At stake: each example runs without changes, and shows what it says."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.steps import statuses
from tests.support import REPOSITORY, run, start_argv

#: All of these take long; the quick tests beside them cover the usual case.
pytestmark = pytest.mark.slow

EXAMPLES = REPOSITORY / "examples"


@pytest.fixture
def folder(root: Path) -> Path:
    """Return the working folder, beside a new root."""
    root.mkdir()
    return Path.cwd()


def example(name: str, *args: str | Path, code: int = 0) -> list[str]:
    """Run an example, and return the lines that it prints."""
    process = start_argv([sys.executable, str(EXAMPLES / f"{name}.py"), *map(str, args)])
    out, err = process.communicate(timeout=40)
    assert process.returncode == code, f"{out}\n{err}"
    return out.splitlines()


def test_each_example_is_in_the_list_and_run_here() -> None:
    names = {path.stem for path in EXAMPLES.glob("*.py")} - {"stand_in"}
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    here = Path(__file__).read_text(encoding="utf-8")
    assert {name for name in names if f"`{name}.py`" in readme and f'example("{name}"' in here} == names
    assert len(names) == 5


def test_explorations_come_back_attributed(folder: Path) -> None:
    lines = example("parallel_exploration", EXAMPLES)
    heads = sorted(line.split("(")[1].split(",")[0] for line in lines if line.startswith("## "))
    assert heads == ["coroutines", "functions", "starts"]
    assert any("async def" in line for line in lines)
    assert statuses() == dict.fromkeys(heads, "completed")


def test_each_step_builds_on_the_one_before(folder: Path) -> None:
    lines = example("explore_plan_implement", EXAMPLES, "--out", "PLAN.md")
    assert [line for line in lines if line.startswith("## ")] == [
        f"## {step}: completed" for step in ("explore", "plan", "implement")
    ]
    assert "1. look at " in (folder / "PLAN.md").read_text(encoding="utf-8")


def test_a_step_that_fails_ends_those_behind_it(folder: Path) -> None:
    example("explore_plan_implement", EXAMPLES, "--out", "no/such/folder/PLAN.md", code=1)
    assert statuses() == {"explore": "completed", "plan": "completed", "implement": "failed"}


def test_the_panel_accepts_rejects_and_tells_who_could_not_vote(folder: Path) -> None:
    assert example("verification_panel")[-1] == "accepted: 3 yes, 0 no, 0 without a vote"
    (folder / "bad.py").write_text("1\n" * 1000, encoding="utf-8")
    assert example("verification_panel", "bad.py", code=1)[-1] == "rejected: 1 yes, 2 no, 0 without a vote"
    (folder / "broken.py").write_text("def\n", encoding="utf-8")
    lines = example("verification_panel", "broken.py")
    assert lines[-1] == "accepted: 1 yes, 0 no, 2 without a vote"
    assert any("SyntaxError" in line for line in lines)


def test_the_budget_is_used_up_and_not_exceeded(folder: Path) -> None:
    lines = example("budget_fan_out", EXAMPLES, "--most", "3")
    assert lines[-1] == "3 of 8 done within the budget"
    assert sum("maxWorkers is 3" in line for line in lines) == 5
    assert list(statuses().values()) == ["completed"] * 3


def test_the_parent_answers(folder: Path) -> None:
    example("answering_parent", folder)
    assert (folder / "greeting.txt").read_text(encoding="utf-8") == "hello"
    assert (folder / "warning.txt").read_text(encoding="utf-8") == "MIND THE STEP"
    assert run("interact", "list", "--json").json == []
