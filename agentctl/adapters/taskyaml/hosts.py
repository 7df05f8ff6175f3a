"""Reads `hosts` of a person's config.yaml, the only place where hosts are defined. Errors name file, line and key."""

from __future__ import annotations

from collections.abc import Mapping

from agentctl.adapters.document import Document
from agentctl.adapters.taskyaml.reader import HOSTS
from agentctl.domain.hosts import (
    ALL,
    HERE,
    LEAST_SILENT_S,
    MOST_HOSTS,
    MOST_SILENT_S,
    SILENT_S,
    CommandHost,
    is_destination,
    is_program,
)
from agentctl.domain.names import NAME_RULE, is_name

_KEYS = ("ssh", "agentctl", "folder", "silentSeconds")


def read_hosts(document: Document) -> dict[str, CommandHost]:
    """Return the hosts by their names, in the order of the file.

    Raises:
        UsageError: `hosts` is not of that form; the message names file, line and key.
    """
    section = document.value.get(HOSTS)
    if section is None:
        return {}
    if not isinstance(section, Mapping) or len(section) > MOST_HOSTS:
        raise document.error((HOSTS,), f"hosts must map at most {MOST_HOSTS} names to hosts")
    return {name: _host(document, name, value) for name, value in section.items()}


def _host(document: Document, name: str, value: object) -> CommandHost:
    at = (HOSTS, name)
    if not is_name(name):
        raise document.error(at, f"the name {name!r} of a host must be {NAME_RULE}")
    if name in {HERE, ALL}:
        raise document.error(at, f"no host can be called {name}: that means {_MEANS[name]}")
    given = {"ssh": value} if isinstance(value, str) else value
    if not isinstance(given, Mapping):
        raise document.error(at, f"{name} must be a destination of ssh, or a mapping with the key ssh")
    document.check_keys(at, given, _KEYS)
    destination = given.get("ssh")
    if not isinstance(destination, str) or not is_destination(destination):
        raise document.error((*at, "ssh"), f"ssh must be a destination that ssh accepts, not {destination!r}")
    program = given.get("agentctl")
    if program is not None and not (isinstance(program, str) and is_program(program)):
        problem = "agentctl must be the path of agentctl there: only letters, digits and ._+@/-, perhaps ~/ in front"
        raise document.error((*at, "agentctl"), problem)
    folder = given.get("folder")
    if folder is not None and not (isinstance(folder, str) and folder and "\0" not in folder):
        raise document.error((*at, "folder"), "folder must be the path of a folder there")
    silent_s = given.get("silentSeconds", SILENT_S)
    silent_s = document.number((*at, "silentSeconds"), silent_s, LEAST_SILENT_S, MOST_SILENT_S)
    return CommandHost(name, destination, program, folder, silent_s)


_MEANS = {HERE: "this machine", ALL: "all hosts"}
