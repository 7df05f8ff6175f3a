"""What a host is, and what may name one: nothing that ssh could take for an option, or a shell for more than a word."""

from __future__ import annotations

import re

from agentctl.lean import NamedTuple

#: This machine, and all hosts: no host can be called so.
HERE, ALL = "here", "all"
MOST_HOSTS = 100
#: How long a host may be silent before it counts as one that does not answer.
SILENT_S, LEAST_SILENT_S, MOST_SILENT_S = 30.0, 1.0, 3600.0

#: [user@]host, or ssh://[user@]host[:port]: what ssh takes as a destination, without anything that a shell obeys.
_DESTINATION = re.compile(r"(?!-)[\w.@:%\[\]/+~-]{1,255}")
#: A program's path that no shell reads as more than one word.
_PROGRAM = re.compile(r"(?:~?/)?[A-Za-z0-9_.][\w.+@/-]{0,1000}", re.ASCII)
_AFTER_AT = re.compile(r"@-|//-")


class CommandHost(NamedTuple):
    """A machine on which commands are carried out."""

    name: str
    #: Where ssh goes; None is this machine.
    destination: str | None
    #: The path of agentctl there; None finds it as a shell would.
    program: str | None = None
    #: The folder in which commands run there; None is where ssh arrives.
    folder: str | None = None
    silent_s: float = SILENT_S


def is_destination(text: str) -> bool:
    """Return whether a text may be given to ssh as a destination.

    >>> [is_destination(text) for text in ("me@build.example", "ssh://b:22", "-oProxyCommand=x", "a b", "a;b", "me@-x")]
    [True, True, False, False, False, False]
    """
    return _DESTINATION.fullmatch(text) is not None and _AFTER_AT.search(text) is None


def is_program(text: str) -> bool:
    """Return whether a text is the path of a program, in characters that mean nothing to a shell.

    >>> [is_program(text) for text in ("agentctl", "~/.local/bin/agentctl", "/opt/a b", "x;y", "-x")]
    [True, True, False, False, False]
    """
    return _PROGRAM.fullmatch(text) is not None
