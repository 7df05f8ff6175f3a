"""A copy of the package, as if it were installed there: a test can replace its files, as an upgrade does."""

from __future__ import annotations

import compileall
import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentctl.adapters.kept_code import keep_open
from tests.support import REPOSITORY, Completed, start_argv

#: Has a program of the copy write down, at its end, what it has loaded since its start, and whether that was kept.
_AT_START = f"""

_kept = {keep_open.__name__}


def {keep_open.__name__}(later):
    _kept(later)
    sys.at_start = set(sys.modules)
"""
_AT_END = """
    import json
    late = [module for name, module in sys.modules.items() if name not in getattr(sys, "at_start", sys.modules)]
    told = {{module.__name__: type(module.__spec__.loader).__name__ for module in late if module.__spec__}}
    with open({folder!r} + f"/{{os.getpid()}}.json", "w") as file:
        json.dump(told, file)
"""


class Installed:
    """A copy of the package."""

    def __init__(self, folder: Path) -> None:
        self.package = folder / "agentctl"
        self._loaded = folder / "loaded"
        shutil.copytree(REPOSITORY / "agentctl", self.package)
        compileall.compile_dir(self.package, quiet=1)

    def run(self, *args: str | Path) -> Completed:
        """Run a command of this copy."""
        argv = [sys.executable, "-P", "-m", "agentctl", *map(str, args)]
        process = start_argv(argv, env={"PYTHONPATH": str(self.package.parent)})
        out, err = process.communicate(timeout=30)
        return Completed(argv=tuple(argv), code=process.returncode, out=out, err=err)

    def spawn(self, argv: list[str], *options: str | Path, name: str) -> None:
        """Start a worker whose programs are of this copy."""
        done = self.run("spawn", "--name", name, *options, "--", *argv)
        assert done.code == 0, done

    def note_what_is_loaded(self) -> None:
        """Have its programs note what they load after their start."""
        self._loaded.mkdir()
        module = self.package / "adapters" / "kept_code.py"
        module.write_text(module.read_text() + _AT_START)
        note, ending = _AT_END.format(folder=str(self._loaded)), "    os._exit(code)"
        for part in ("shim", "worker_programs/agent_host", "worker_programs/on_node"):
            program = self.package / part / "__main__.py"
            first, leaves, last = program.read_text().partition(ending)
            program.write_text(first + note + leaves + last)
        compileall.compile_dir(self.package, quiet=1)

    def loaded_later(self) -> dict[str, str]:
        """Return the modules that its programs have loaded after their start, and by what each was loaded."""
        return {
            name: loader for file in self._loaded.iterdir() for name, loader in json.loads(file.read_bytes()).items()
        }


@contextmanager
def without(path: Path) -> Iterator[None]:
    """Take a file or a folder away for a while, as an upgrade does."""
    aside = path.with_name(f"{path.name}.aside")
    path.rename(aside)
    try:
        yield
    finally:
        aside.rename(path)
