"""At stake: the line that a command prints for a missing extra brings it, in every kind of environment.

Each environment is made by the installer itself, from this checkout; the line is run by a shell as it was printed.
These tests fetch packages: `make test-extras` alone runs them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

import psutil
import pytest

from tests.extras.install import programs
from tests.processes import variables_of, words_of
from tests.support import REPOSITORY, wait_until

Completed: TypeAlias = "subprocess.CompletedProcess[str]"

pytestmark = pytest.mark.timeout(600)

#: Where they are in this person's home; a test has another one.
PROGRAMS = programs()
#: What a machine says of its package index, and the tests of their processes.
_KEPT = ("PIP_", "UV_", "SSL_", "AGENTCTL_TEST_ID")
#: The interpreter of an operating system that protects its packages (PEP 668), as Debian's is.
SYSTEM = Path("/usr/bin/python3")
#: A command that refuses to work without its extra, and a module that this brings.
NEEDS = {"acp": (("acp",), "acp"), "mcp": (("mcp",), "mcp"), "serve": (("serve",), "uvicorn")}


class World:
    """A person's home with pipx and uv, and the agentctl that they have installed."""

    def __init__(self, home: Path) -> None:
        self.home = home
        kept = {name: value for name, value in os.environ.items() if name.startswith(_KEPT) or name.endswith("_proxy")}
        places = {
            "HOME": str(home),
            "AGENTCTL_ROOT": str(home / ".agentctl"),
            "PATH": f"{PROGRAMS}{os.pathsep}{os.defpath}",
        }
        self.environ = {
            **kept,
            **places,
            "UV_CACHE_DIR": f"{PROGRAMS}/../of-uv",
            "PIP_CACHE_DIR": f"{PROGRAMS}/../of-pip",
        }
        # Where a hint is read and its line typed: a clone that would like to have a say in it.
        self.clone = home / "clone"
        self.clone.mkdir(parents=True)
        (self.clone / "pip.py").write_text("raise SystemExit('a stranger')", encoding="utf-8")
        (self.clone / "pyproject.toml").write_text("[tool.uv]\nno-index = true\n[tool.uv.pip]\nno-index = true\n")
        self.python = Path(sys.executable)

    def do(self, *argv: str | Path, env: Mapping[str, str] | None = None) -> str:
        """Run what has to succeed, and return what it has printed."""
        return succeeded(self.tried(*argv, env=env)).stdout

    def tried(self, *argv: str | Path, env: Mapping[str, str] | None = None) -> Completed:
        """Run anything in the clone."""
        return subprocess.run(
            argv, cwd=self.clone, env={**self.environ, **(env or {})},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip

    def typed(self, line: str) -> Completed:
        """Run a line as a person types it, which has to succeed."""
        return succeeded(self.tried("sh", "-c", line))

    def has(self, module: str) -> bool:
        """Whether the environment of agentctl has a module."""
        return self.tried(self.python, "-c", f"import {module}").returncode == 0

    def line_for(self, extra: str) -> str:
        """Return the line that is printed where an extra is missing."""
        refused = self.tried(self.command, *NEEDS[extra][0])
        assert refused.returncode == 1, refused
        return refused.stderr.rpartition("hint: ")[2].strip()

    def version(self) -> str:
        """Return what the installed command prints of itself."""
        return self.do(self.command, "--version")

    @property
    def command(self) -> Path:
        """The command, as pipx and uv link to it."""
        return (self.home / ".local" / "bin" if self.python == SYSTEM else self.python.parent) / "agentctl"


def succeeded(done: Completed) -> Completed:
    """Return what has ended well."""
    if done.returncode != 0:
        pytest.fail(f"{done.args}\nexit code: {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done


def checkout_in(folder: Path) -> None:
    """Copy what an installation is made from."""
    for name in ("agentctl", "task_templates", "man"):
        shutil.copytree(REPOSITORY / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, folder)


def wheel_in(world: World) -> Path:
    """Build the wheel, in a folder of its own."""
    wheels = world.home / "wheels"
    world.do("uv", "build", "--directory", "/", "--wheel", "--out-dir", wheels, REPOSITORY)
    (wheel,) = wheels.glob("*.whl")
    return wheel


def in_a_venv(world: World) -> None:
    world.python = world.home / "an env" / "bin" / "python"
    world.do(sys.executable, "-m", "venv", world.home / "an env")
    world.do("uv", "pip", "install", "--directory", "/", "--python", world.python, REPOSITORY)


def in_a_venv_of_uv(world: World) -> None:
    world.python = world.home / "env" / "bin" / "python"
    world.do("uv", "venv", "--python", sys.executable, world.home / "env")
    world.do("uv", "pip", "install", "--directory", "/", "--python", world.python, "--editable", REPOSITORY)
    assert not world.has("pip")


def beside_a_system(world: World) -> None:
    """In the person's own folder; the system's packages are seen from there."""
    world.python = SYSTEM
    world.do(SYSTEM, "-P", "-m", "pip", "install", "--user", "--break-system-packages", REPOSITORY)


def in_pipx(world: World) -> None:
    world.do("pipx", "install", "--python", sys.executable, REPOSITORY)
    world.python = world.home / ".local/share/pipx/venvs/agentctl-cli/bin/python"


def in_a_pipx_elsewhere(world: World) -> None:
    elsewhere = world.home / "our pipx"
    options = ["--suffix=-old", "--python", sys.executable]
    world.do("pipx", "install", *options, REPOSITORY, env={"PIPX_HOME": str(elsewhere)})
    world.python = elsewhere / "venvs/agentctl-cli-old/bin/python"


def in_a_tool_of_uv(world: World) -> None:
    world.do("uv", "tool", "install", "--python", sys.executable, "--with", "segno>=1.6", REPOSITORY)
    world.python = world.home / ".local/share/uv/tools/agentctl-cli/bin/python"


def in_an_editable_tool_elsewhere(world: World) -> None:
    places = {"UV_TOOL_DIR": str(world.home / "our tools"), "UV_TOOL_BIN_DIR": str(world.home / "our bin")}
    world.do("uv", "tool", "install", "--editable", REPOSITORY, "--with", "segno", env=places)
    world.python = world.home / "our tools/agentctl-cli/bin/python"


def in_a_tool_from_a_repository(world: World) -> None:
    checkout_in(world.home / "repository" / "below")
    git = ["git", "-C", str(world.home / "repository"), "-c", "user.name=x", "-c", "user.email=x@y.example"]
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "x"], ["tag", "v1"]):
        world.do(*git, *words)
    address = f"git+file://{world.home}/repository@v1#subdirectory=below"
    world.do("uv", "tool", "install", "--with", "segno", address)
    world.python = world.home / ".local/share/uv/tools/agentctl-cli/bin/python"


def in_a_tool_with_an_index(world: World) -> None:
    """From an index of its own, which the line would have to name again."""
    wheels = wheel_in(world).parent
    world.do("uv", "tool", "install", "--with", "segno", "--find-links", wheels, "agentctl-cli")
    world.python = world.home / ".local/share/uv/tools/agentctl-cli/bin/python"


def _is_protected(python: Path) -> bool:
    """Whether it belongs to an operating system that protects its packages."""
    look = "import os, sysconfig; print(os.path.exists(sysconfig.get_path('stdlib') + '/EXTERNALLY-MANAGED'))"
    return python.exists() and subprocess.check_output([python, "-c", look], text=True).strip() == "True"


#: What each environment is made by, and the beginning of the line that it has to print.
ENVIRONMENTS: Mapping[Callable[[World], None], str] = {
    in_a_venv: "'{home}/an env/bin/python' -P -m pip install ",
    in_a_venv_of_uv: "uv pip install --directory / --python {home}/env/bin/python ",
    beside_a_system: f"{SYSTEM} -P -m pip install --break-system-packages --user ",
    in_pipx: "pipx inject agentctl-cli ",
    in_a_pipx_elsewhere: "env 'PIPX_HOME={home}/our pipx' pipx inject agentctl-cli-old ",
    in_a_tool_of_uv: "uv tool install --python ",
    in_an_editable_tool_elsewhere: (
        "env 'UV_TOOL_DIR={home}/our tools' 'UV_TOOL_BIN_DIR={home}/our bin' uv tool install "
    ),
    in_a_tool_from_a_repository: "uv tool install --with segno --with ",
    in_a_tool_with_an_index: "uv pip install --directory / --python ",
}


@pytest.mark.parametrize("make", ENVIRONMENTS, ids=lambda make: make.__name__)
def test_the_line_that_is_printed_brings_the_extra(tmp_path: Path, make: Callable[[World], None]) -> None:
    world = World(tmp_path)
    if make is beside_a_system and not _is_protected(SYSTEM):
        pytest.skip(f"{SYSTEM} does not protect its packages")
    make(world)
    version, has_segno = world.version(), world.has("segno")
    # Two, one after the other: the second leaves the first, and what was there before.
    for extra in ("acp", "serve"):
        module = NEEDS[extra][1]
        assert not world.has(module)
        line = world.line_for(extra)
        assert line.startswith(ENVIRONMENTS[make].format(home=tmp_path))
        world.typed(line)
        assert world.has(module)
    assert world.has("acp")
    assert world.has("segno") >= has_segno
    assert world.version() == version


def test_the_manual_pages_come_with_the_command(tmp_path: Path) -> None:
    world = World(tmp_path)
    in_pipx(world)
    wanted = {file.name: file.read_bytes() for file in (REPOSITORY / "man").iterdir()}
    # Where pipx links to them, beside the command: man looks there.
    for folder in (world.python.parents[1] / "share", tmp_path / ".local" / "share"):
        assert {file.name: file.read_bytes() for file in (folder / "man" / "man1").iterdir()} == wanted


def test_the_demo_needs_no_checkout(tmp_path: Path) -> None:
    """Of a wheel in an empty environment, in an empty folder of an empty home, with the system's programs alone."""
    world = World(tmp_path / "builder")
    env, home = tmp_path / "env", tmp_path / "home"
    world.do(sys.executable, "-m", "venv", env)
    world.do("uv", "pip", "install", "--directory", "/", "--python", env / "bin" / "python", wheel_in(world))
    (home / "empty").mkdir(parents=True)
    began = time.monotonic()
    bare = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    done = succeeded(
        subprocess.run(
            [env / "bin" / "agentctl", "demo"], cwd=home / "empty", env=bare, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False,
        )
    )  # fmt: skip
    # Alone on a machine it takes 3 s.
    assert time.monotonic() - began < 60
    (package,) = env.glob("lib/python*/site-packages/agentctl")
    for seen in (
        f"-- the source tree: {package} (--path FOLDER takes another)\n",
        "\nfunctions blocked\n",
        "\nanswered q1 of functions in survey-of-agentctl: ",
        "\nreport completed\n",
        "\ndeep-scan cancelled\n",
        f"\n# Survey of `{package}`\n",
    ):
        assert seen in done.stdout
    assert done.stderr == ""
    wait_until(lambda: _processes_of(home), accept=lambda left: not left, what="nothing of the demo to run")


def _processes_of(home: Path) -> list[list[str]]:
    """Return the command lines of all processes whose home is this one."""
    return [words_of(one) for one in psutil.process_iter() if variables_of(one).get("HOME") == str(home)]


def test_a_line_brings_all_that_the_extra_needs(tmp_path: Path) -> None:
    world = World(tmp_path)
    in_a_venv_of_uv(world)
    wanted = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    for extra in wanted.keys() - {"dev"}:
        world.typed(
            world.do(
                world.python, "-P", "-c", f"from agentctl.adapters.extras import *; print(install_command({extra!r}))"
            )
        )
        check = ["--offline", "--dry-run", "--directory", "/", "--python", str(world.python), *wanted[extra]]
        assert "Would make no changes" in succeeded(world.tried("uv", "pip", "install", *check)).stderr


def test_each_command_that_lacks_its_extra_says_the_same(tmp_path: Path) -> None:
    world = World(tmp_path)
    in_a_venv_of_uv(world)
    found = world.do(world.command, "doctor")
    assert world.line_for("mcp") in found
    refused = world.tried(world.command, "spawn", "--driver", "opencode", "x")
    assert f"hint: {world.line_for('acp')}\n" in refused.stderr
