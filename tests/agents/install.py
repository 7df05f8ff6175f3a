"""Gets the real agent programs and the MCP inspector, in the versions that were tested, into a cache of their own.

`AGENTCTL_AGENTS_CACHE`, else `agentctl-agents` in the user's cache. What is there is taken as it is: a folder gets
its name, which has the version in it, only when its installation is whole.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

INSTALL_S = 600
NODE_MAJOR = 22


class Unavailable(Exception):
    """Something that cannot be had here; says why."""


class Package(NamedTuple):
    """An npm package in one version, and where in it the program lies."""

    program: str
    package: str
    version: str
    path: str
    #: Its installation does nothing but through a script of its own.
    needs_script: bool = False

    @property
    def folder(self) -> str:
        """Its folder in the cache."""
        return f"{self.program}-{self.version}"


NODE = Package("node", "node", "22.23.3", "node_modules/node/bin/node", needs_script=True)
#: Both are native programs in a package for the platform, on which the package depends; that is what is run.
AGENTS = (
    Package("claude", "@anthropic-ai/claude-code", "2.1.330", "node_modules/@anthropic-ai/claude-code-*/claude"),
    Package("codex", "@openai/codex", "0.169.0", "node_modules/@openai/codex-*/vendor/*/bin/codex"),
)
#: The reference client of the Model Context Protocol; a program for Node.
INSPECTOR = Package(
    "inspector", "@modelcontextprotocol/inspector", "2.12.0",
    "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js",
)  # fmt: skip

#: The scenarios by which the authors of the protocol try whether somebody keeps to it; a program for Node.
CONFORMANCE = Package(
    "conformance", "@modelcontextprotocol/conformance", "0.2.0-alpha.12",
    "node_modules/@modelcontextprotocol/conformance/dist/index.js",
)  # fmt: skip

#: A client of the Agent Client Protocol without a screen; a program for Node.
ACPX = Package("acpx", "acpx", "0.19.1", "node_modules/acpx/dist/cli.js")


def cache() -> Path:
    """Return the folder that holds the programs."""
    if own := os.environ.get("AGENTCTL_AGENTS_CACHE"):
        return Path(own).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "agentctl-agents"


def installed() -> dict[str, Path]:
    """Return the agent programs that are there, by name; nothing is fetched."""
    found = {package.program: _find(cache(), package) for package in AGENTS}
    return {name: path for name, path in found.items() if path is not None}


def install() -> dict[str, Path]:
    """Return the agent programs by name, and install what is missing.

    Raises:
        Unavailable: npm or the network is missing; what was begun is removed.
    """
    with _alone() as folder:
        missing = [package for package in AGENTS if _find(folder, package) is None]
        environ = _environ_with_node(folder) if missing else {}
        return {package.program: _installed(folder, package, environ) for package in AGENTS}


def install_inspector() -> list[str]:
    """Return the command line of the MCP inspector, and install what is missing of it.

    Raises:
        Unavailable: npm or the network is missing.
    """
    return [*_install_for_node(INSPECTOR), "--cli"]


def install_conformance() -> list[str]:
    """Return the command line of the conformance suite, and install what is missing of it.

    Raises:
        Unavailable: npm or the network is missing.
    """
    return _install_for_node(CONFORMANCE)


def install_acpx() -> list[str]:
    """Return the command line of acpx, and install what is missing of it.

    Raises:
        Unavailable: npm or the network is missing.
    """
    return _install_for_node(ACPX)


def _install_for_node(package: Package) -> list[str]:
    with _alone() as folder:
        environ = _environ_with_node(folder)
        script = _installed(folder, package, environ)
    node = shutil.which("node", path=environ["PATH"])
    assert node is not None
    return [node, str(script)]


@contextmanager
def _alone() -> Iterator[Path]:
    """Let one installation at a time into the cache; the others find what it has brought."""
    folder = cache()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        for left in folder.glob("*.tmp"):  # of an installation that was interrupted
            shutil.rmtree(left)
        yield folder


def _find(folder: Path, package: Package) -> Path | None:
    return next(iter(sorted((folder / package.folder).glob(package.path))), None)


def _installed(folder: Path, package: Package, environ: Mapping[str, str]) -> Path:
    """Return the path of a package's program; install the package if it is not there."""
    if (found := _find(folder, package)) is not None:
        return found
    print(f"installing {package.package} {package.version} into {folder}", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(dir=folder, suffix=".tmp") as draft:
        target = Path(draft) / package.folder
        target.mkdir()
        _npm_install(target, package, environ)
        if not list(target.glob(package.path)):
            raise Unavailable(f"{package.package} {package.version} has no program for this platform")
        shutil.rmtree(folder / package.folder, ignore_errors=True)
        target.rename(folder / package.folder)
    return _installed(folder, package, environ)


def _npm_install(target: Path, package: Package, environ: Mapping[str, str]) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise Unavailable("there is no npm")
    scripts = [] if package.needs_script else ["--ignore-scripts"]
    quiet = ["--no-audit", "--no-fund", "--loglevel", "error", "--fetch-retries", "1"]
    argv = [npm, "install", "--prefix", str(target), *scripts, *quiet, f"{package.package}@{package.version}"]
    run_installer(argv, f"npm could not install {package.package}@{package.version}", environ)


def run_installer(argv: list[str], failure: str, environ: Mapping[str, str]) -> None:
    """Run what installs something.

    Raises:
        Unavailable: It fails, or takes too long: `failure`, and what it said about that.
    """
    try:
        done = subprocess.run(
            argv, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=INSTALL_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{failure} within {INSTALL_S} s") from None
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if re.search(r"(?i)error|^E:", line)] or [done.stderr]
        raise Unavailable(f"{failure}: {' '.join(' '.join(said).split())[:200]}")


def _environ_with_node(folder: Path) -> dict[str, str]:
    """Return the environment for npm: with a Node that is new enough for what is installed."""
    environ = dict(os.environ)
    if _node_major() >= NODE_MAJOR:
        return environ
    node = _installed(folder, NODE, environ)
    return {**environ, "PATH": f"{node.parent}{os.pathsep}{environ['PATH']}"}


def _node_major() -> int:
    node = shutil.which("node")
    if node is None:
        return 0
    done = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30, check=False)
    match = re.match(r"v(\d+)", done.stdout)
    return int(match[1]) if match else 0


def main() -> int:
    """Install, and say where: `python -m tests.agents.install`."""
    try:
        found = install()
        inspector, conformance = install_inspector(), install_conformance()
        acpx = install_acpx()
    except Unavailable as error:
        names = " and ".join(
            f"{package.program} {package.version}" for package in (*AGENTS, INSPECTOR, CONFORMANCE, ACPX)
        )
        print(f"skipped: everything about {names}: {error}")
        return os.EX_UNAVAILABLE
    for package in AGENTS:
        print(f"{package.program} {package.version}: {found[package.program]}")
    print(f"{INSPECTOR.program} {INSPECTOR.version}: {' '.join(inspector)}")
    print(f"{CONFORMANCE.program} {CONFORMANCE.version}: {' '.join(conformance)}")
    print(f"{ACPX.program} {ACPX.version}: {' '.join(acpx)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
