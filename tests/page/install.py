"""Gets what the tests in a browser need, in the versions that were tested: `python -m tests.page.install`.

The browser is the distribution's Chromium. The libraries go into the virtual environment, and not into the extra `dev`:
whoever does not run these tests needs none of them. axe-core goes into the cache of `tests.agents.install`, and so does
what checks the scripts (`tests.page.scripts`), in the versions of `package-lock.json`.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.agents.install import Unavailable, cache, run_installer

AXE = "4.14.1"
#: One minor version of each: what a newer one finds in unchanged code is for a change of its own.
LIBRARIES = {"playwright": "1.65", "schemathesis": "4.32"}
_BROWSERS = ("chromium", "chromium-browser")
_MANIFESTS = tuple(Path(__file__).with_name(name) for name in ("package.json", "package-lock.json"))
_NPM = ("--loglevel", "error", "--fetch-retries", "1")


def browser() -> Path | None:
    """Return the path of the browser; None where there is none."""
    found = next(filter(None, map(shutil.which, _BROWSERS)), None)
    return Path(found) if found else None


def axe_script() -> Path:
    """Return where the script of axe-core is, or will be."""
    return cache() / f"axe-core-{AXE}" / "axe.min.js"


def tools() -> Path:
    """Return the folder in which the checkers of the scripts are, or will be."""
    return cache() / f"page-tools-{hashlib.sha256(_MANIFESTS[-1].read_bytes()).hexdigest()[:12]}"


def missing_libraries() -> list[str]:
    """Return the requirements that the virtual environment does not meet."""
    return [_requirement(name, minor) for name, minor in LIBRARIES.items() if not _is_there(name, minor)]


def _is_there(name: str, minor: str) -> bool:
    try:
        return importlib.metadata.version(name).startswith(f"{minor}.")
    except importlib.metadata.PackageNotFoundError:
        return False


def _requirement(name: str, minor: str) -> str:
    major, number = minor.split(".")
    return f"{name}>={minor},<{major}.{int(number) + 1}"


def install() -> None:
    """Install what is missing.

    Raises:
        Unavailable: Something cannot be had.
    """
    if not tools().is_dir():
        _install_tools()
    if libraries := missing_libraries():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _run([*pip, *libraries], f"pip could not install {' and '.join(libraries)}")
    if browser() is None:
        _install_browser()
    if not axe_script().exists():
        _install_axe()


def _install_browser() -> None:
    if os.geteuid() != 0:
        raise Unavailable("there is no Chromium, and only root can install it: apt-get install chromium")
    if shutil.which("apt-get") is None:
        raise Unavailable("there is neither Chromium nor apt-get, which could install it")
    failure = "apt-get could not install chromium"
    get = ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=300"]
    _run([*get, "update"], failure)
    _run([*get, "install", "--yes", "--no-install-recommends", _BROWSERS[0]], failure)
    if browser() is None:
        raise Unavailable("the package chromium of this distribution has no browser in it")


def _install_tools() -> None:
    with _draft_of(tools(), "what checks the scripts") as (npm, draft):
        made = draft / "made"
        made.mkdir()
        for path in _MANIFESTS:
            shutil.copy(path, made)
        argv = [npm, "ci", "--prefix", str(made), "--ignore-scripts", "--no-audit", "--no-fund", *_NPM]
        _run(argv, "npm could not bring what checks the scripts")


def _install_axe() -> None:
    with _draft_of(axe_script().parent, "axe-core") as (npm, draft):
        argv = [npm, "pack", *_NPM, "--pack-destination", str(draft)]
        _run([*argv, f"axe-core@{AXE}"], f"npm could not bring axe-core@{AXE}")
        with tarfile.open(next(draft.glob("*.tgz"))) as packed:
            script = packed.extractfile(f"package/{axe_script().name}")
            assert script is not None
            made = draft / "made"
            made.mkdir()
            (made / axe_script().name).write_bytes(script.read())


@contextlib.contextmanager
def _draft_of(folder: Path, what: str) -> Iterator[tuple[str, Path]]:
    """Give npm and a folder of its own, whose `made` takes the place of `folder` once it is whole."""
    npm = shutil.which("npm")
    if npm is None:
        raise Unavailable(f"there is no npm, from which {what} comes")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, suffix=".npm") as draft:
        yield npm, Path(draft)
        shutil.rmtree(folder, ignore_errors=True)
        Path(draft, "made").rename(folder)


def _run(argv: list[str], failure: str) -> None:
    print(f"running {' '.join(map(os.path.basename, argv[:1]))} {' '.join(argv[1:])}", file=sys.stderr, flush=True)
    run_installer(argv, failure, os.environ | {"DEBIAN_FRONTEND": "noninteractive"})


def main() -> int:
    """Install, and say what is there."""
    try:
        install()
    except Unavailable as error:
        print(f"skipped: everything about the page in a browser: {error}")
        return os.EX_UNAVAILABLE
    versions = [f"{name} {importlib.metadata.version(name)}" for name in LIBRARIES]
    print(f"{', '.join(versions)}, axe-core {AXE}: {axe_script()}; the browser: {browser()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
