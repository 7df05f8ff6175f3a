"""Makes `docs/commands.md`: `python -m tests.commands_page > docs/commands.md`. A test compares it with the code."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentctl.interfaces.commands.model.catalogue import (
    ALIASES,
    GROUPS,
    OLDER_NAMES,
    VERBS,
    command_named,
    listed_below,
)
from agentctl.interfaces.commands.model.command_model import CHOICE, COMMAND, FLAG, Command, Family, Parameter
from agentctl.interfaces.commands.programs.served_commands import SERVED
from agentctl.interfaces.web.endpoint import PREFIX

_HEAD = """# The commands

What `agentctl COMMAND --help` says, on one page, and the path over HTTP where there is one ([serving.md](serving.md)).
`python -m tests.commands_page > docs/commands.md` makes this page of the same rows. Every command takes `--help`, and
can exit with 0, 1, 2 and 130 ([exit-codes.md](exit-codes.md)). [json.md](json.md) says what `--json` prints.
"""


def page() -> str:
    """Return the whole page."""
    return "\n".join([_HEAD, *_contents(), *(line for name in VERBS for line in _section(name))])


def _contents() -> Iterator[str]:
    """Yield the commands below the headings of `agentctl help all`, and the other names that are understood."""
    yield from ("| | |", "|---|---|")
    for group in GROUPS:
        yield f"| {group} | {', '.join(f'[{name}](#{name})' for name in listed_below(group))} |"
    older = ", ".join(f"`{old}` (`{new}`)" for old, new in OLDER_NAMES.items())
    aliases = ", ".join(f"`{name}` (`{command}`)" for name, command in ALIASES.items())
    yield f"| Older names, which work as ever | {older} |"
    yield f"| Understood, and not offered | {aliases} |"
    yield ""


def _section(name: str) -> Iterator[str]:
    found = command_named(name)
    if isinstance(found, Family):
        yield from (f"## {name}", "", *_paragraphs(found.help))
        for command in found.commands:
            yield from _command(f"{name} {command.name}", command, "###")
    else:
        yield from _command(name, found, "##")


def _command(words: str, command: Command, level: str) -> Iterator[str]:
    yield from (f"{level} {words}", "", *_paragraphs(command.help_page))
    rows = command.all_parameters()
    shown = [one for one in rows if not one.is_hidden and (one.help or one.is_argument)]
    if shown:
        yield from ("| | |", "|---|---|", *map(_row, shown), "")
    yield from ("```", *command.examples.strip().splitlines(), "```", "")
    exits = ", ".join(str(code.value) for code in sorted(command.exits))
    paths = "; ".join(f"`{one.method} {PREFIX}{one.path}`" for one in SERVED if one.command == words)
    documents = re.sub(r"^(?:Shown|Showing|Carried)\[(.*)\]$", r"\1", command.carry_out.__annotations__["return"])
    facts = {"Exits also with": exits, "Prints as JSON": _document(documents), "Over HTTP": paths}
    yield from (f"{what}: {said}\n" for what, said in facts.items() if said)


def _document(declared: str) -> str:
    return "" if declared in {"None", "int", "Shown", "Showing", "Carried"} else f"`{declared}`"


def _row(one: Parameter) -> str:
    return f"| {_typed(one)} | {_escaped(one.help_line)}{default_said(one)} |"


def default_said(one: Parameter) -> str:
    """Return the sentence that says the default of a parameter; none where there is none, or it is a flag's."""
    has_default = one.kind != FLAG and one.default not in (None, "")
    return f" Default: `{one.default}`." if has_default else ""


def _typed(one: Parameter) -> str:
    if one.is_argument or one.kind == COMMAND:
        return f"`{_escaped(one.metavar or one.name)}`"
    value = "" if one.kind == FLAG else f" {'|'.join(one.choices) if one.kind == CHOICE else one.metavar or one.kind}"
    names = [f"-{one.short}"] * bool(one.short) + [f"--{one.words}{value}"] + [f"--{one.off}"] * bool(one.off)
    return ", ".join(f"`{_escaped(name)}`" for name in names)


def _paragraphs(text: str) -> Iterator[str]:
    yield from text.strip().splitlines()
    yield ""


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    print(page(), end="")
