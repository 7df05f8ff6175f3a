"""The line that has a command carried out on another host, made from the rows of the command."""

from __future__ import annotations

from agentctl.interfaces.commands.model.catalogue import command_by_words
from agentctl.interfaces.commands.model.command_model import FLAG
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.lean import Any


def far_line(words: str, call: Invocation, /, **values: Any) -> list[str]:
    """Return the words of a line, for the task and the root that the line here names; no value is taken for an option.

    Args:
        words: The command: `interact list`.
        values: By the keywords of the command; None and False mean that one is not given.
    """
    command = command_by_words(words)
    place = {"task": call.task_named, "root": call.root_named, "force": call.force}
    given = {one.name: place[one.name] for one in command.needs if one.name in place} | values
    options, arguments = list[str](), list[str]()
    for one in command.all_parameters():
        value = given.pop(one.name, None)
        if value is None or value is False:
            continue
        if one.kind == FLAG:
            options.append(f"--{one.words}")
            continue
        texts = [_text(item) for item in (value if isinstance(value, list | tuple) else [value])]
        if one.is_argument:
            arguments += texts
        else:
            options += [f"--{one.words}={text}" for text in texts]
    assert not given, f"{words} takes no {', '.join(given)}"
    return [*words.split(), *options, *["--"] * bool(arguments), *arguments]


def _text(value: Any) -> str:
    return f"{value:.6f}" if isinstance(value, float) else str(value)
