"""What `uv tool install` was told, from its receipt: uv adds nothing to a tool, it installs the tool once more."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from agentctl.lean import NamedTuple

#: What can be said on the command line again; a receipt with anything else is left alone.
_OF_A_TOOL = {"requirements", "entrypoints", "python"}
_OF_A_REQUIREMENT = {"name", "extras", "specifier", "directory", "path", "editable", "url", "git"}
#: What says where a package comes from. Without it, the package index says whose it is.
_PLACES = _OF_A_REQUIREMENT - {"name", "extras", "specifier"}


class UvTool(NamedTuple):
    """A tool that uv has installed."""

    #: The folder of its commands.
    programs: str
    #: The options, and what they are about.
    options: list[str]
    itself: str


def read_receipt(prefix: str) -> UvTool | None:
    """Return what `uv tool install` is to be told to make this environment again; None: that cannot be said."""
    import tomllib

    try:
        with open(os.path.join(prefix, "uv-receipt.toml"), "rb") as file:
            return _said_again(tomllib.load(file)["tool"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError):  # None is there, or one of another uv.
        return None


def _said_again(tool: Mapping[str, Any]) -> UvTool:
    _refuse_others(tool, _OF_A_TOOL)
    main, *others = tool["requirements"]
    if not main.keys() & _PLACES:
        raise ValueError("the package index says what it is")
    options = ["--python", tool["python"]] if "python" in tool else []
    options += [part for other in others for part in (f"--with{'-editable' * ('editable' in other)}", _text(other))]
    if "editable" in main:
        options.append("--editable")
    return UvTool(os.path.dirname(tool["entrypoints"][0]["install-path"]), options, _text(main))


def _text(requirement: Mapping[str, Any]) -> str:
    """Return a requirement as the command line takes it."""
    from pathlib import Path

    _refuse_others(requirement, _OF_A_REQUIREMENT)
    name = requirement["name"] + (f"[{','.join(requirement['extras'])}]" if "extras" in requirement else "")
    for key in ("directory", "path", "editable"):
        if key in requirement:
            return f"{name} @ {Path(requirement[key]).as_uri()}"
    if "git" in requirement:
        return f"{name} @ git+{_repository(requirement['git'])}"
    return f"{name} @ {requirement['url']}" if "url" in requirement else name + requirement.get("specifier", "")


def _repository(source: str) -> str:
    """Return the address of a repository, whose commit and folder a receipt has as parameters."""
    from urllib.parse import parse_qsl

    address, _, query = source.partition("?")
    parameters = dict(parse_qsl(query))
    _refuse_others(parameters, {"subdirectory", "rev", "tag", "branch"})
    folder = parameters.pop("subdirectory", None)
    return "@".join([address, *parameters.values()]) + (f"#subdirectory={folder}" if folder else "")


def _refuse_others(table: Mapping[str, Any], known: set[str]) -> None:
    if others := table.keys() - known:
        raise ValueError(f"a receipt with {', '.join(sorted(others))}")
