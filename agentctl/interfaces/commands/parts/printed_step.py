"""A printed next step: its commands name the same task, root and host as the command that prints it.

Most hints are worded where nothing is known of the command line: `agentctl list shows them`. After `agentctl show x
--task build` that would list another task.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from agentctl.operations.where.command_lines import program_words

#: A command in a sentence, and up to where its own words may go.
_COMMAND = re.compile(r"\bagentctl (?P<name>[a-z][a-z-]*)(?: (?P<part>[a-z][a-z-]*))?(?=(?P<rest>[^;\n]*))")
#: The options of place, in each of their spellings.
_SPELLED = {"--task": "--task", "-t": "--task", "--root": "--root"}


def in_same_place(advice: str, argv: Sequence[str]) -> str:
    """Return a next step whose commands name the task, the root and the host that a command line has named.

    Args:
        argv: That command line, without the name of the program.
    """
    place = dict(_place(argv))
    if not place and len(program_words()) == 1:
        return advice
    return _COMMAND.sub(lambda found: _placed(found, place), advice)


def _place(argv: Sequence[str]) -> Iterator[tuple[str, str]]:
    words = iter(argv)
    for word in words:
        if word == "--":
            return
        name, equals, value = word.partition("=")
        if name in _SPELLED and (given := value if equals else next(words, None)) is not None:
            yield _SPELLED[name], given


def _placed(found: re.Match[str], place: dict[str, str]) -> str:
    from agentctl.interfaces.commands.model.catalogue import (  # Where an error is printed there is time.
        VERBS,
        command_named,
    )
    from agentctl.interfaces.commands.model.command_model import Family

    name, part = found["name"], found["part"]
    if name not in VERBS or "--help" in found["rest"]:
        return found[0]
    command, words, after = command_named(name), [name], f" {part}" if part else ""
    if isinstance(command, Family) and part and (below := command.command(part)) is not None:
        command, words, after = below, [name, part], ""
    taken = () if isinstance(command, Family) else {f"--{one.words}" for one in command.needs}
    said = after + found["rest"]
    for option, value in place.items():
        if option in taken and option not in said:
            words += [option, shlex.quote(value)]
    return " ".join([*program_words(), *words]) + after
