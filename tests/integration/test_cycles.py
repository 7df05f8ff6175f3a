"""At stake: what a shim has needed for a worker stays in memory, and slows it down, until the collector comes."""

from __future__ import annotations

from pathlib import Path

from tests.installed import Installed
from tests.steps import new_task
from tests.support import run, wait_for_text

#: Has a shim keep all that only the collector could free, and write down at its end what that is.
_FROM_THE_START = "    gc.enable()\n    gc.set_debug(gc.DEBUG_SAVEALL)\n"
_AT_THE_END = """
    gc.collect()
    with open({found!r}, "a") as file:
        file.write("".join(f"{{type(one).__name__}}\\n" for one in gc.garbage) + "the end\\n")
"""


def test_nothing_of_a_worker_has_to_be_collected(root: Path, tmp_path: Path) -> None:
    installed, found = Installed(tmp_path / "installed"), tmp_path / "found"
    program = installed.package / "shim" / "__main__.py"
    text = program.read_text().replace("    gc.enable()\n", _FROM_THE_START)
    program.write_text(text + _AT_THE_END.format(found=str(found)))
    new_task(cap=1)
    for number in range(5):
        installed.spawn(["true"], "--queue", name=f"a{number}")
    run("wait-all")
    assert set(wait_for_text(found, "the end").splitlines()) == {"the end"}
