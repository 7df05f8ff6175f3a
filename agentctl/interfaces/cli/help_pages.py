"""`agentctl help`: the first page, which needs no parser; and which page a line asks for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentctl.interfaces.commands.model.catalogue import DAY, listed_below, meant

_OPTIONS_OF_HELP = ("--help", "-h")
_HELP = "help"
#: The words behind `help` for the page with all commands, which is the one that the parser makes.
_ALL = ("all", "more")
_HEAD = """\
Usage: agentctl [OPTIONS] COMMAND [ARGS]...

  Give work to several agents or commands at once: real processes, plain files,
  no daemon. agentctl alone shows what needs you, what has failed and what runs.
"""
_FOOT = """\
More:
  agentctl help COMMAND  its options and examples, as agentctl COMMAND --help
  agentctl help all      all commands: tasks, looking deeper, connecting, inside
                         a worker; the options and the exit codes of agentctl
"""


def help_line(argv: Sequence[str]) -> list[str] | None:
    """Return a line in which `help COMMAND` is `COMMAND --help`; None if it asks for the first page.

    >>> help_line(["help", "interact", "ask"]), help_line(["help", "all"]), help_line(["-h"]), help_line(["list", "-h"])
    (['interact', 'ask', '--help'], ['--help'], None, ['list', '-h'])
    """
    words = list(argv)
    if words[:1] != [_HELP]:
        return None if len(words) == 1 and words[0] in _OPTIONS_OF_HELP else words
    rest = [word for word in words[1:] if word not in _OPTIONS_OF_HELP]
    if not rest:
        return None
    return [*([] if rest[0] in _ALL else meant(rest)), _OPTIONS_OF_HELP[0]]


def first_page() -> str:
    """Return the most wanted commands and how to see the rest: it fits a terminal of 80 columns and 30 lines."""
    return "\n".join([_HEAD, *_commands(), "", _FOOT])


def _commands() -> Iterator[str]:
    listed = listed_below(DAY)
    width = max(map(len, listed))
    yield f"{DAY}:"
    yield from (f"  {name:<{width}}  {one.help}" for name, one in listed.items())
