"""Checks the scripts of the page without a browser: `python -m tests.page.scripts`, a part of `make lint`.

Their types (TypeScript reads the JSDoc, with what `typing/` declares), the rules of `eslint.config.mjs`, the tests of
their pure modules in `unit/`, and whether the one script that a browser gets is made of them as they are. It needs
Node, and what `tests.page.install` fetches from npm.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentctl.interfaces.web.page_files import FOLDER
from tests.page.bundle import AGAIN, BUNDLE, made
from tests.page.install import tools

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
#: The first version that takes a `.js` with `import` for a module, and that ESLint runs on.
NODE_SINCE = (20, 19)
LIMIT_S = 300


def missing() -> str:
    """Return what is missing for the checks, and how to get it; empty if nothing is."""
    node = shutil.which("node")
    wanted = f"it takes Node {'.'.join(map(str, NODE_SINCE))} or newer, and then `make test-page`"
    if node is None:
        return f"there is no Node; {wanted}"
    said = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30, check=False).stdout
    if tuple(map(int, re.findall(r"\d+", said)[:2])) < NODE_SINCE:
        return f"Node is {said.strip()}; {wanted}"
    return "" if tools().is_dir() else "`make test-page` fetches what does it"


@contextmanager
def _beside_types() -> Iterator[Path]:
    """Make a folder in which the page has declarations in the place of its minified libraries."""
    with tempfile.TemporaryDirectory(prefix="agentctl-types-") as name:
        folder = Path(name)
        for path in (*(HERE / "typing").iterdir(), FOLDER / "js", FOLDER / "open.js"):
            (folder / path.name).symlink_to(path)
        yield folder


def types() -> bool:
    """Check the types, print what is wrong, and return whether nothing is."""
    with _beside_types() as folder:
        said = re.sub(r"(?m)^(?=(js/|open\.js))", f"{FOLDER.relative_to(ROOT)}/", _said([_program("tsc")], folder))
    return _told(said)


def rules() -> bool:
    """Check the rules, print what is wrong, and return whether nothing is."""
    argv = [_program("eslint"), "--config", str(HERE / "eslint.config.mjs"), "--max-warnings", "0"]
    return _told(_said([*argv, str(FOLDER / "js"), str(FOLDER / "open.js"), str(HERE / "unit")], ROOT))


def tests() -> bool:
    """Run the tests of the pure modules, print those that fail, and return whether none does."""
    # The page has no package.json that would say what its modules are: they are served as they lie there.
    argv = ["node", "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON", "--test", "--test-reporter=spec"]
    return _told(_said([*argv, *map(str, sorted((HERE / "unit").glob("*.test.mjs")))], ROOT))


def bundle() -> bool:
    """Make the one script of the page once more, and return whether it is the one that is there."""
    if BUNDLE.exists() and BUNDLE.read_text(encoding="utf-8") == made():
        return True
    return _told(f"{BUNDLE.relative_to(ROOT)} is not what the modules make: {AGAIN}\n")


def _program(name: str) -> str:
    return str(tools() / "node_modules" / ".bin" / name)


def _said(argv: list[str], folder: Path) -> str:
    """Return what a checker says if it finds something; empty if it does not."""
    done = subprocess.run(
        argv, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr or f"{argv[0]} ended with {done.returncode}"


def _told(said: str) -> bool:
    print(said, end="")
    return not said


def main() -> int:
    """Run all checks; EX_UNAVAILABLE and one line where that is not possible."""
    if lack := missing():
        print(f"left out: the checks of the page's scripts: {lack}")
        return os.EX_UNAVAILABLE
    return 0 if all([types(), rules(), tests(), bundle()]) else 1


if __name__ == "__main__":
    sys.exit(main())
