"""Which hosts a person means: names of their config.yaml, or one destination as ssh takes it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from agentctl.adapters.personal import home_folder
from agentctl.domain.hosts import ALL, HERE, CommandHost, is_destination
from agentctl.errors import Argument, AtTerminal, UsageError, WithArguments
from agentctl.operations.where.personal_config import HOSTS, personal_file, section

_HERE = CommandHost(HERE, None)
#: More than anybody's file of ssh has.
_MOST_BYTES = 1 << 20
_HOST_LINE = re.compile(r"^\s*Host\s*[\s=]\s*(.+)$", re.IGNORECASE | re.MULTILINE)


def host_named(word: str) -> CommandHost:
    """Return the host that a word means.

    Raises:
        UsageError: It means none.
    """
    if word == HERE:
        return _HERE
    defined = section(HOSTS)
    if word in defined:
        return defined[word]
    if word == ALL:
        raise UsageError(
            WithArguments(Argument("host"), " takes one host"),
            hint=AtTerminal("--hosts all: with list, tasks, interact, wait-any, watch"),
        )
    if not is_destination(word):
        raise UsageError(f"{word!r} names no host", hint=f"a name under `hosts` in {personal_file()}, or user@machine")
    return CommandHost(word, word)


def hosts_named(words: str) -> list[CommandHost]:
    """Return the hosts of a list with commas; `all` means this machine and all that are defined.

    Raises:
        UsageError: A word means no host, or none is defined.
    """
    names = [name.strip() for name in words.split(",") if name.strip()]
    if not names:
        raise UsageError(
            WithArguments(Argument("hosts"), " names no host"), hint=AtTerminal("--hosts all, or --hosts here,build")
        )
    if ALL not in names:
        return [host_named(name) for name in dict.fromkeys(names)]
    defined = section(HOSTS)
    if not defined:
        hint = f"define them under `hosts` in {personal_file()}: hosts: {{build: me@build.example}}"
        raise UsageError("no host is defined", hint=hint)
    others = [name for name in dict.fromkeys(names) if name not in {ALL, HERE, *defined}]
    return [_HERE, *defined.values(), *map(host_named, others)]


def known_hosts() -> Iterator[str]:
    """Yield the names that can be completed: those of config.yaml, then those of ~/.ssh/config without wildcards."""
    yield from section(HOSTS)
    try:
        with open(os.path.join(home_folder(os.environ), ".ssh/config"), "rb") as file:
            text = file.read(_MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return
    for line in _HOST_LINE.findall(text):
        yield from (word for word in line.split() if not set(word) & set("*?!\"'#") and is_destination(word))
