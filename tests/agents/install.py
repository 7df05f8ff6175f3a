"""Gets the real agent programs and the MCP inspector, in the versions that were tested, into a cache of their own.

`AGENTCTL_AGENTS_CACHE`, else `agentctl-agents` in the user's cache. What is there is taken as it is: a folder gets
its name, which has the version in it, only when its installation is whole.
"""

from __future__ import annotations

import fcntl
import os
import platform
import re
import shlex
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
    #: A variable that names a program of the cache (its second word): a copy of it is then not fetched.
    uses: tuple[str, str] | None = None

    @property
    def folder(self) -> str:
        """Its folder in the cache."""
        return f"{self.program}-{self.version}"

    @property
    def is_script(self) -> bool:
        """Whether it is a program for Node."""
        return self.path.endswith(".js")


NODE = Package("node", "node", "22.23.3", "node_modules/node/bin/node", needs_script=True)
#: Both are native programs in a package for the platform, on which the package depends; that is what is run.
AGENTS = (
    Package("claude", "@anthropic-ai/claude-code", "2.1.332", "node_modules/@anthropic-ai/claude-code-*/claude"),
    Package("codex", "@openai/codex", "0.171.0", "node_modules/@openai/codex-*/vendor/*/bin/codex"),
)
_ARCHITECTURES = {"x86_64": "x64", "aarch64": "arm64"}
_PLATFORM = f"{sys.platform}-{_ARCHITECTURES.get(platform.machine(), platform.machine())}"
#: Programs that speak the Agent Client Protocol on stdin and stdout, by the names that their users have in PATH. Of
#: opencode it is the package for the platform: the one that depends on it would bring three of them.
ACP_AGENTS = (
    Package("opencode", f"opencode-{_PLATFORM}", "1.18.33", "node_modules/opencode-*/bin/opencode"),
    Package("qwen", "@qwen-code/qwen-code", "0.24.4", "node_modules/@qwen-code/qwen-code/cli-entry.js"),
    Package(
        "claude-agent-acp", "@agentclientprotocol/claude-agent-acp", "0.101.0",
        "node_modules/@agentclientprotocol/claude-agent-acp/dist/index.js", uses=("CLAUDE_CODE_EXECUTABLE", "claude"),
    ),
    Package(
        "codex-acp", "@agentclientprotocol/codex-acp", "2.6.0",
        "node_modules/@agentclientprotocol/codex-acp/dist/index.js", uses=("CODEX_PATH", "codex"),
    ),
)  # fmt: skip
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
    found = {package.program: _find(cache(), package) for package in (*AGENTS, *ACP_AGENTS)}
    here = {name: path for name, path in found.items() if path is not None}
    launchers = {package.program: cache() / package.folder / "bin" / package.program for package in ACP_AGENTS}
    return {name: launchers[name] if name in launchers and launchers[name].exists() else here[name] for name in here}


def install() -> dict[str, Path]:
    """Return the agent programs by name, and install what is missing.

    Raises:
        Unavailable: npm or the network is missing; what was begun is removed.
    """
    with _alone() as folder:
        missing = [package for package in AGENTS if _find(folder, package) is None]
        environ = _environ_with_node(folder) if missing else {}
        return {package.program: _installed(folder, package, environ) for package in AGENTS}


def install_all() -> dict[str, Path]:
    """Return all agent programs by name, and install what is missing.

    Raises:
        Unavailable: npm or the network is missing; what was begun is removed.
    """
    return {**install(), **install_acp()}


def install_acp() -> dict[str, Path]:
    """Return the programs that speak the Agent Client Protocol by name, and install what is missing.

    Each lies in a folder of its own, which can be put into PATH.

    Raises:
        Unavailable: npm or the network is missing; what was begun is removed.
    """
    natives = install()
    with _alone() as folder:
        return {package.program: _installed_acp(folder, package, natives) for package in ACP_AGENTS}


def _installed_acp(folder: Path, package: Package, natives: Mapping[str, Path]) -> Path:
    environ = _environ_with_node(folder)
    program = _installed(folder, package, environ)
    if not package.is_script:
        return program
    node = shutil.which("node", path=environ["PATH"])
    assert node is not None
    lines = ["#!/bin/sh", f'exec {shlex.quote(node)} {shlex.quote(str(program))} "$@"']
    if package.uses is not None:
        variable, native = package.uses
        lines.insert(1, f"export {variable}={shlex.quote(str(natives[native]))}")
    return _launcher(folder / package.folder / "bin" / package.program, "\n".join([*lines, ""]))


def _launcher(path: Path, text: str) -> Path:
    """Write a program of a few lines; whoever starts it meanwhile gets a whole one."""
    path.parent.mkdir(exist_ok=True)
    draft = path.with_suffix(".new")
    draft.write_text(text, encoding="utf-8")
    draft.chmod(0o755)
    return draft.replace(path)


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
    less = [] if package.needs_script else ["--ignore-scripts"]
    less += [] if package.uses is None else ["--omit=optional"]
    quiet = ["--no-audit", "--no-fund", "--loglevel", "error", "--fetch-retries", "1"]
    argv = [npm, "install", "--prefix", str(target), *less, *quiet, f"{package.package}@{package.version}"]
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
        found = install() | install_acp()
        inspector, conformance = install_inspector(), install_conformance()
        acpx = install_acpx()
    except Unavailable as error:
        everything = (*AGENTS, *ACP_AGENTS, INSPECTOR, CONFORMANCE, ACPX)
        names = " and ".join(f"{package.program} {package.version}" for package in everything)
        print(f"skipped: everything about {names}: {error}")
        return os.EX_UNAVAILABLE
    for package in (*AGENTS, *ACP_AGENTS):
        print(f"{package.program} {package.version}: {found[package.program]}")
    print(f"{INSPECTOR.program} {INSPECTOR.version}: {' '.join(inspector)}")
    print(f"{CONFORMANCE.program} {CONFORMANCE.version}: {' '.join(conformance)}")
    print(f"{ACPX.program} {ACPX.version}: {' '.join(acpx)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
