"""What a sandboxed command tries in these tests: all that it should not be able to do, and some that it should."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

from tests.agents.lab import Lab


def script(lab: Lab, text: str) -> None:
    """Have the model run a shell script, whose output is kept, in the sandbox."""
    file = lab.folder / "within.sh"
    file.write_text(text, encoding="utf-8")
    call = {"cmd": f"sh {file} > said.txt 2>&1", "yield_time_ms": 30000}
    Path("calls.json").write_text(json.dumps([["exec_command", call]]), encoding="utf-8")


def said(folder: Path) -> list[str]:
    return (folder / "said.txt").read_text(encoding="utf-8").splitlines()


def places(lab: Lab) -> list[Path]:
    """Where all that lies that decides what is run: the root, the person's config, the waiting environments."""
    home, memory = Path(os.environ["HOME"]), Path(os.environ["XDG_RUNTIME_DIR"])
    return [lab.task.path.parent.parent, home / ".config" / "agentctl", memory / "agentctl"]


def tries(lab: Lab) -> str:
    """A script that tries to change all that is there, and to make what could be there; it tells what it could.

    A pipe takes bytes in a sandbox too; those for a shim only wake it. The links in the home of a program lead to what
    is the person's.
    """
    told = " ".join(shlex.quote(str(place)) for place in places(lab))
    above = " ".join(shlex.quote(str(place.parent)) for place in places(lab))
    return f"""
find {told} -depth \\( ! -type l -o ! -path "*/home/*" \\) |
    grep -v -e /outbox -e "/worktrees/.*/a1" -e "/moved-away" | while read -r place; do
    (echo evil >> "$place/made-within") 2>/dev/null && echo "MADE $place/made-within"
    if ! test -p "$place"; then (echo evil >> "$place") 2>/dev/null && echo "WROTE $place"; fi
    mv "$place" moved-away 2>/dev/null && echo "MOVED $place"
    rm -f "$place" 2>/dev/null || rmdir "$place" 2>/dev/null; test -e "$place" || echo "REMOVED $place"
done
for place in {above}; do
    mv "$place" moved-away 2>/dev/null && echo "MOVED $place"
done
echo all tried
"""


USUAL = """
echo inside > made.txt && echo made
echo there > "${TMPDIR:-/tmp}/of-a-test-$PPID" && rm "${TMPDIR:-/tmp}/of-a-test-$PPID" && echo temporary
(echo out > ../outside.txt) 2>/dev/null || echo no way out
(echo git > .git/made-within) 2>/dev/null || echo no way into git
"""
