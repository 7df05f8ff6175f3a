"""Makes the manual pages in `man/`: `python -m tests.man_pages`. A test compares them with the code.

They are made of the same rows as `docs/commands.md`: one for each command, or family of commands. A wheel has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from agentctl import __version__
from agentctl.errors import ExitCode
from agentctl.interfaces.cli import typer_commands
from agentctl.interfaces.cli.typer_commands import EXIT_WORDS
from agentctl.interfaces.commands.model.catalogue import GROUPS, OLDER_NAMES, VERBS, command_named, listed_below
from agentctl.interfaces.commands.model.command_model import (
    CHOICE,
    COMMAND,
    FLAG,
    OUTPUT,
    TEXT,
    Command,
    Family,
    Parameter,
)
from tests.commands_page import default_said
from tests.support import REPOSITORY

FOLDER = REPOSITORY / "man"
#: What `--help` says beside the rows; typer's own words differ from version to version.
_HELP = Parameter("help", FLAG, "Print all this in short.", short="h", group=OUTPUT)
_OF_PROGRAM = ("version", "host")
_COMPLETION = (
    Parameter("install_completion", FLAG, "Have the shell that calls complete commands, options and names."),
    Parameter("show_completion", FLAG, "Print the script that does so."),
)
#: Characters that would mean something else: to roff, or once a font has other ones for them.
_ESCAPES = {"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti", '"': "\\(dq"}
_ARGUMENTS, _OPTIONS = "Arguments", "Options"


def pages() -> dict[str, str]:
    """Return all pages, by the names of their files."""
    found = {"agentctl.1": _program_page()}
    for name in VERBS:
        one = command_named(name)
        lines = _family_page(name, one) if isinstance(one, Family) else _command_page(name, one)
        found[f"agentctl-{name}.1"] = _whole(lines)
    return found


def escaped(text: str) -> str:
    """Return a text that roff prints as it is, within a line.

    >>> print(escaped("printf 'a-b\\\\n'"))
    printf \\(aqa\\-b\\en\\(aq
    """
    return "".join(_ESCAPES.get(one, one if one.isascii() else f"\\[u{ord(one):04X}]") for one in text)


# -- one page ----------------------------------------------------------------------------------------------------------


def _program_page() -> str:
    said = _undented(typer_commands._start.__doc__ or "")
    options = [*_program_options(), *_COMPLETION, _HELP._replace(group="")]
    lines = [
        *_head("agentctl", said.splitlines()[0]),
        *_synopsis([f"{_usage('agentctl', ())} [\\fICOMMAND\\fR ...]"]),
        *_section("DESCRIPTION", _described(said)),
        *_section("COMMANDS", _commands()),
        *_section("OPTIONS", _rows(options)),
        *_section("ENVIRONMENT", _environment()),
        *_section("FILES", _verbatim(_files())),
        *_section("EXAMPLES", _verbatim(typer_commands._EXAMPLES.strip().splitlines())),
        *_exit_status(tuple(ExitCode)),
        *_see_also(f"agentctl-{name}" for name in VERBS),
    ]
    return _whole(lines)


def _command_page(name: str, command: Command) -> Iterator[str]:
    words = f"agentctl {name}"
    yield from _head(f"agentctl-{name}", VERBS[name].help)
    yield from _synopsis([_usage(words, command.all_parameters())])
    yield from _section("DESCRIPTION", _described(command.help_page))
    headings = _by_heading(command)
    if _ARGUMENTS in headings:
        yield from _section("ARGUMENTS", _rows(headings.pop(_ARGUMENTS)))
    yield from _section("OPTIONS", _rows(headings.pop(_OPTIONS, ())))
    for heading, rows in headings.items():
        yield f".SS {_quoted(heading)}"
        yield from _rows(rows)
    yield from _section("EXAMPLES", _verbatim(command.examples.strip().splitlines()))
    yield from _exit_status(command.exits)
    yield from _see_also(_related(name, command.examples))


def _family_page(name: str, family: Family) -> Iterator[str]:
    words = f"agentctl {name}"
    alone = [] if family.without is None else [f"\\fB{escaped(words)}\\fR [\\fB\\-\\-json\\fR]"]
    usages = {one.name: _usage(f"{words} {one.name}", one.all_parameters()) for one in family.commands}
    yield from _head(f"agentctl-{name}", VERBS[name].help)
    yield from _synopsis([*alone, *usages.values()])
    yield from _section("DESCRIPTION", _described(family.help))
    yield ".SH COMMANDS"
    for one in family.commands:
        yield f".SS {_quoted(f'{words} {one.name}')}"
        yield from _described(one.help_page)
        yield from _rows(row for rows in _by_heading(one).values() for row in rows)
        yield ".PP"
        yield "Examples:"
        yield from _verbatim(one.examples.strip().splitlines())
        if one.exits:
            yield ".PP"
            yield f"Exits also with {', '.join(str(code.value) for code in sorted(one.exits))}."
    yield from _section("EXAMPLES", _verbatim(family.examples.strip().splitlines()))
    yield from _exit_status({*family.exits, *(code for one in family.commands for code in one.exits)})
    examples = "\n".join([family.examples, *(one.examples for one in family.commands)])
    yield from _see_also(_related(name, examples))


def _whole(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


# -- its sections ------------------------------------------------------------------------------------------------------


def _head(name: str, sentence: str) -> Iterator[str]:
    """Yield the title, and the line by which `whatis` and `apropos` know the page."""
    yield f'.TH {_quoted(name.upper())} "1" "" {_quoted(f"agentctl {__version__}")} "agentctl"'
    yield from (".nh", ".ad l")  # No command or option is broken in two.
    yield ".SH NAME"
    yield f"{escaped(name)} \\- {escaped(sentence.rstrip('.').replace('`', ''))}"


def _synopsis(usages: Iterable[str]) -> Iterator[str]:
    yield ".SH SYNOPSIS"
    for number, usage in enumerate(usages):
        yield from [".br"] * bool(number)
        yield usage


def _usage(words: str, rows: Iterable[Parameter]) -> str:
    """Return how a command is typed; what may be left out is in brackets."""
    given = [one for one in rows if (one.is_argument or one.kind == COMMAND) and not one.is_hidden]
    values = [one.metavar or one.name.upper() for one in given]
    shown = [
        value if one.is_required or value.startswith("[") else f"[{value}]"
        for one, value in zip(given, values, strict=True)
    ]
    return " ".join([f"\\fB{escaped(words)}\\fR [\\fIOPTIONS\\fR]", *map(_value, shown)])


def _section(heading: str, lines: Iterable[str]) -> Iterator[str]:
    yield f".SH {heading}"
    yield from lines


def _commands() -> Iterator[str]:
    yield _line("`agentctl help` lists those of every day, `agentctl help all` all of them.")
    for group in GROUPS:
        yield f".SS {_quoted(group)}"
        for name, listed in listed_below(group).items():
            yield from _item(f"\\fB{escaped(f'agentctl-{name}')}\\fR(1)", listed.help)
    yield '.SS "Older names, which work as ever"'
    for old, new in OLDER_NAMES.items():
        yield from _item(f"\\fB{escaped(f'agentctl {old}')}\\fR", f"`agentctl {new}`")


def _exit_status(codes: Iterable[ExitCode]) -> Iterator[str]:
    yield '.SH "EXIT STATUS"'
    for code in sorted({*typer_commands._ALWAYS, *codes}):
        yield from _item(f"\\fB{code.value}\\fR", EXIT_WORDS[code])


def _see_also(names: Iterable[str]) -> Iterator[str]:
    yield '.SH "SEE ALSO"'
    yield ",\n".join(f"\\fB{escaped(name)}\\fR(1)" for name in names)


def _related(name: str, examples: str) -> list[str]:
    """Return the pages beside that of a command: those of the commands of its module, and of its examples."""
    named = set(re.findall(r"\bagentctl ([a-z-]+)", examples))
    near = {other for other in VERBS if VERBS[other].module == VERBS[name].module}
    return ["agentctl", *(f"agentctl-{other}" for other in VERBS if other in named | near and other != name)]


# -- rows --------------------------------------------------------------------------------------------------------------


def _by_heading(command: Command) -> dict[str, list[Parameter]]:
    """Return what the help page shows of a command, below its headings, in their order."""
    found: dict[str, list[Parameter]] = {}
    for one in (*command.all_parameters(), _HELP):
        if not one.is_hidden and (one.help or one.is_argument):
            is_argument = one.is_argument or one.kind == COMMAND
            found.setdefault(_ARGUMENTS if is_argument else one.group or _OPTIONS, []).append(one)
    return dict(sorted(found.items(), key=lambda item: typer_commands._place_of_heading(item[0])))


def _rows(rows: Iterable[Parameter]) -> Iterator[str]:
    for one in rows:
        yield from _item(_typed(one), f"{one.help_line}{_more(one)}")


def _typed(one: Parameter) -> str:
    if one.is_argument or one.kind == COMMAND:
        return _value(one.metavar or one.name.upper())
    words = [f"-{one.short}"] * bool(one.short) + [f"--{one.words}"] + [f"--{one.off}"] * bool(one.off)
    names = ", ".join(f"\\fB{escaped(word)}\\fR" for word in words)
    choices = "|".join(f"\\fB{escaped(choice)}\\fR" for choice in one.choices)
    value = "" if one.kind == FLAG else choices or _value(one.metavar or one.kind.upper())
    return f"{names} {value}".rstrip()


def _more(one: Parameter) -> str:
    """Return the default of a parameter, and the values of an argument that has few."""
    choices = f" One of {', '.join(one.choices)}." if one.kind == CHOICE and one.is_argument else ""
    if one.off and one.default is not None:
        return f"{choices} Default: `--{one.words if one.default else one.off}`."
    return choices + default_said(one)


def _program_options() -> list[Parameter]:
    """Return the options of the program itself, which stand before a command."""
    made = {one.name: one for one in typer_commands.program().params}
    return [
        Parameter(name, FLAG if made[name].is_flag else TEXT, made[name].help, made[name].metavar)
        for name in _OF_PROGRAM
    ]  # fmt: skip


# -- what documents say ------------------------------------------------------------------------------------------------


def _environment() -> Iterator[str]:
    """Yield the variables that a worker finds."""
    formats = (REPOSITORY / "docs/file-formats.md").read_text(encoding="utf-8")
    section = formats.partition("\n## What a worker finds in its environment\n")[2].partition("\n## ")[0]
    yield "What a worker finds in its environment:"
    for names, said in re.findall(r"^\| (`.+?) \| (.+) \|$", section, flags=re.MULTILINE):
        yield from _item(_in_fonts(names), said)


def _files() -> list[str]:
    """Return the picture of what is where on disk."""
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    section = readme.partition("\n## Where everything is on disk\n")[2].partition("\n## ")[0]
    return [line.removeprefix("    ") for line in section.splitlines() if line.startswith("    ")]


# -- lines of roff -----------------------------------------------------------------------------------------------------


def _item(tag: str, text: str) -> Iterator[str]:
    yield from (".TP", tag, _line(text))


def _described(text: str) -> Iterator[str]:
    """Yield a text of several paragraphs."""
    for number, paragraph in enumerate(re.split(r"\n\s*\n", text.strip())):
        yield from [".PP"] * bool(number)
        yield from (_line(line.strip()) for line in paragraph.splitlines())


def _undented(text: str) -> str:
    return "\n".join(line.strip() for line in text.splitlines())


def _verbatim(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines that are shown as they are, and can be copied."""
    yield from (".PP", ".RS 4", ".nf")
    yield from (_protected(escaped(line.rstrip())) for line in lines)
    yield from (".fi", ".RE")


def _line(text: str) -> str:
    return _protected(_in_fonts(text))


def _in_fonts(text: str) -> str:
    """Return a text in which what stands between backticks is bold."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return escaped(text)
    return "".join(f"\\fB{escaped(part)}\\fR" if number % 2 else escaped(part) for number, part in enumerate(parts))


def _value(text: str) -> str:
    """Return a metavar: what is to be replaced is in italics."""
    return "".join(
        f"\\fI{part}\\fR" if part.isupper() else escaped(part) for part in re.split(r"([A-Z]+)", text) if part
    )


def _protected(line: str) -> str:
    """Return a line that does not begin as a request of roff."""
    return f"\\&{line}" if line.startswith(".") else line


def _quoted(text: str) -> str:
    return f'"{escaped(text)}"'


def main() -> None:
    """Write all pages, and remove those of commands that are gone."""
    FOLDER.mkdir(exist_ok=True)
    wanted = pages()
    for file in FOLDER.iterdir():
        if file.name not in wanted:
            file.unlink()
    for name, text in wanted.items():
        (FOLDER / name).write_text(text, encoding="ascii")


if __name__ == "__main__":
    main()
