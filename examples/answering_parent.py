"""A parent that answers its children's questions by a rule if it has one, and leaves the others to a person.

While a question is open, its worker is `blocked` and its time limit does not run. `agentctl interact list` shows it,
and any terminal may answer it; the first valid answer wins. Only a person may allow a request for permission; a parent
that is a worker itself may deny it.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import Any

import agentctl

HERE = Path(__file__).resolve().parent
TEXTS = {"greeting": "hello", "warning": "mind the step"}


def answer(question: agentctl.Question) -> str | None:
    """Return the answer to a question; None leaves it open for a person."""
    if question.tool is not None:  # A request for permission.
        return "deny"
    style = "loud" if question.agent_instance == "warning" else "quiet"
    offered = {str(option["id"]) for option in question.options}
    print(f"{question.agent_instance} asks: {question.text} -> {style}")
    return style if style in offered else None


def writings(folder: Path, *, real: bool) -> list[dict[str, Any]]:
    """Return a task for each text."""
    items = []
    for name, text in TEXTS.items():
        file = str(folder / f"{name}.txt")
        if real:
            work: dict[str, Any] = {
                "context": {"text": text, "file": file, "first": "ask the user whether it is to be loud or quiet"}
            }
        else:
            work = {"argv": [sys.executable, str(HERE / "stand_in.py"), "decide", text, file]}
        items.append({"objective": f"Write the {name}", "name": name, **work})
    return items


async def write(folder: Path, *, real: bool) -> int:
    """Have each child write its text; return 0 if all of them completed."""
    task = agentctl.Task.create("Texts")
    async with agentctl.TaskExecutor(task, on_question=answer) as executor:
        results = await executor.execute_parallel(writings(folder, real=real), timeout_seconds=300)
    for result in results:
        print(f"{result.task_id} {result.status}: {result.result or result.error}")
    return 0 if all(result.status == "completed" for result in results) else 1


def main() -> int:
    """Run the example from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path.cwd())
    parser.add_argument("--agents", action="store_true", help="real agents instead of the stand-in")
    options = parser.parse_args()
    return asyncio.run(write(options.folder.resolve(), real=options.agents))


if __name__ == "__main__":
    sys.exit(main())
