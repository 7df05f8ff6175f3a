"""The command that brings what an extra needs into the environment that agentctl runs in."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence

import agentctl
from agentctl.adapters.personal import home_folder, named_folder
from agentctl.adapters.uvtool import read_receipt

#: The name of agentctl's distribution, by which its metadata is found: docs/decisions/0034-agentctl-cli.md
DISTRIBUTION = "agentctl-cli"


def install_command(extra: str) -> str:
    """Return the line for a shell that installs what an extra needs, for this very interpreter.

    It names the packages that the extra needs, and agentctl itself only by the place that it came from: whose project a
    name on the package index is, agentctl cannot know.
    """
    packages = _packages(extra)
    if not packages:
        return f"install agentctl anew: {sys.prefix} does not say what its extra {extra} needs"
    return shlex.join(_by_pipx(packages) or _by_uv_tool(packages) or _by_pip(packages))


def _packages(extra: str) -> list[str]:
    """Return what an extra needs, with its bounds; in a checkout that is not installed, the checkout with its extra."""
    from importlib.metadata import PackageNotFoundError, requires

    try:
        needs = [line.partition(";") for line in requires(DISTRIBUTION) or ()]
    except PackageNotFoundError:
        folder = os.path.dirname(os.path.dirname(os.path.abspath(agentctl.__file__)))
        return [f"{folder}[{extra}]"] if os.path.isfile(os.path.join(folder, "pyproject.toml")) else []
    return [what.strip() for what, _, when in needs if when.strip().replace("'", '"') == f'extra == "{extra}"']


def _by_pipx(packages: Sequence[str]) -> list[str] | None:
    """Return the command for an environment of `pipx install`; None in any other."""
    venvs, name = os.path.split(sys.prefix)
    home, folder = os.path.split(venvs)
    if folder != "venvs" or not os.path.isfile(os.path.join(sys.prefix, "pipx_metadata.json")):
        return None
    usual = [os.path.join(_user_data(), "pipx"), os.path.join(home_folder(os.environ), ".local/pipx")]
    return [*_with_variables(("PIPX_HOME", home, usual)), "pipx", "inject", name, *packages]


def _by_uv_tool(packages: Sequence[str]) -> list[str] | None:
    """Return the command for an environment of `uv tool install`; None in any other."""
    tool = read_receipt(sys.prefix)
    if tool is None:
        return None
    programs = named_folder(os.environ, "XDG_BIN_HOME") or os.path.join(_user_data(), "..", "bin")
    where = _with_variables(
        ("UV_TOOL_DIR", os.path.dirname(sys.prefix), [os.path.join(_user_data(), "uv", "tools")]),
        ("UV_TOOL_BIN_DIR", tool.programs, [programs]),
    )
    more = [part for package in packages for part in ("--with", package)]
    return [*where, "uv", "tool", "install", *tool.options, *more, tool.itself]


def _by_pip(packages: Sequence[str]) -> list[str]:
    """Return the command for any other environment: by its own pip, or by uv where it has none.

    Neither a `pip.py` of the folder in which it is typed is run by it, nor are the settings of a project there obeyed.
    """
    from importlib.util import find_spec

    python, has_pip = sys.executable, find_spec("pip") is not None
    pip = [python, "-P", "-m", "pip", "install"]
    uv = ["uv", "pip", "install", "--directory", "/", "--python", python]
    return [*(pip if has_pip else uv), *_past_the_system(has_pip=has_pip), *packages]


def _past_the_system(*, has_pip: bool) -> list[str]:
    """Return the options without which nothing is installed beside an operating system's own packages (PEP 668)."""
    import sysconfig

    marker = os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")
    if sys.prefix != sys.base_prefix or not os.path.exists(marker):
        return []
    return ["--break-system-packages", *(["--user"] if has_pip else [])]


def _user_data() -> str:
    return named_folder(os.environ, "XDG_DATA_HOME") or os.path.join(home_folder(os.environ), ".local/share")


def _with_variables(*variables: tuple[str, str, Sequence[str]]) -> list[str]:
    """Return what sets the variables (name, value, usual values) whose value a program would not find by itself."""
    needed = [
        f"{name}={value}"
        for name, value, usual in variables
        if os.path.realpath(value) not in map(os.path.realpath, [os.environ[name]] if os.environ.get(name) else usual)
    ]
    return ["env", *needed] if needed else []
