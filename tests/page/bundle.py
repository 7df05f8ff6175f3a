"""Makes the one script that a browser gets of the page's modules: `python -m tests.page.bundle`.

It lies beside them as `page.js`, and says of what it was made. It needs Node, and what `tests.page.install` fetches
from npm. docs/decisions/0053-one-script-of-many-modules.md has the reason.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from agentctl.interfaces.web.page_files import FOLDER
from tests.page.install import tools

BUNDLE = FOLDER / "page.js"
AGAIN = "python -m tests.page.bundle"
_MAKER, _PACKAGES = (Path(__file__).with_name(name) for name in ("bundle.mjs", "package.json"))
_LIMIT_S = 60


def sources() -> list[Path]:
    """Return what it is made of, and what makes it."""
    return [*sorted(FOLDER.glob("js/**/*.js")), *sorted(FOLDER.glob("vendor/*.js")), _MAKER]


def maker() -> str:
    """Return the program that makes it, with its version."""
    return f"esbuild {json.loads(_PACKAGES.read_text(encoding='utf-8'))['devDependencies']['esbuild']}"


def head() -> str:
    """Return its first line, which names its sources, by their paths and contents, and what makes it of them."""
    whole = hashlib.sha256(f"{maker()}\n".encode())
    for path in sources():
        data = path.read_bytes()
        name = os.path.relpath(path, FOLDER)
        whole.update(f"{name} {len(data)}\n".encode() + data)
    return f"// Made by `{AGAIN}`; do not edit it. Its sources: {whole.hexdigest()}\n"


def is_current() -> bool:
    """Return whether it was made of the present sources, by what it says."""
    return BUNDLE.exists() and BUNDLE.read_text(encoding="utf-8").startswith(head())


def made() -> str:
    """Return what the present sources make.

    Raises:
        CalledProcessError: They make nothing; the output says why.
    """
    with tempfile.TemporaryDirectory(prefix="agentctl-bundle-") as name:
        out = Path(name, "page.js")
        subprocess.run(["node", _MAKER, tools() / "package.json", FOLDER, out], check=True, timeout=_LIMIT_S)
        return head() + out.read_text(encoding="utf-8")


def main() -> int:
    """Make it."""
    BUNDLE.write_text(made(), encoding="utf-8")
    print(f"{BUNDLE}: {BUNDLE.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
