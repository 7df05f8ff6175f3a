"""How a command is declared: its help ends with examples and with the exit codes that it can give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from agentctl.errors import ExitCode

F = TypeVar("F", bound=Callable[..., Any])

EXIT_WORDS: dict[ExitCode, str] = {
    ExitCode.DONE: "done",
    ExitCode.REFUSED: "refused or failed; the message says why",
    ExitCode.USAGE: "bad usage: an option, a name or a file that cannot be meant",
    ExitCode.NOT_FOUND: "no such task or worker",
    ExitCode.TIMED_OUT: "the time limit of the wait passed; nobody was harmed",
    ExitCode.NO_SLOT: "every slot is in use; --queue waits for one",
    ExitCode.NOTHING_LEFT: "nothing is left to wait for",
    ExitCode.UNSUCCESSFUL: "a worker ended, but not as completed",
    ExitCode.INTERRUPTED: "interrupted by Ctrl-C",
}
#: What every command can give.
_ALWAYS = (ExitCode.DONE, ExitCode.REFUSED, ExitCode.USAGE, ExitCode.INTERRUPTED)
#: What every command can give that looks for a task or a worker.
FINDS = (ExitCode.NOT_FOUND,)

#: No first sentence of a command is as long.
_LONGEST = 1000

_CONTEXT = {"help_option_names": ["--help", "-h"]}


def write_epilog(command: Any, formatter: Any) -> None:
    """Write the end of a help page as it stands: an example must not be wrapped."""
    if command.epilog:
        formatter.write_paragraph()
        formatter.write(command.epilog)


class Verb(TyperCommand):
    """A command."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line, without the braces that typer puts around what must be given."""
        return [piece.removeprefix("{").removesuffix("}") for piece in super().collect_usage_pieces(ctx)]

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        write_epilog(self, formatter)


class Family(TyperGroup):
    """Commands under one name."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each command with the whole of its first sentence."""
        with formatter.section("Commands"):
            named = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
            formatter.write_dl([(name, command.get_short_help_str(_LONGEST)) for name, command in named if command])

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        write_epilog(self, formatter)


def module() -> typer.Typer:
    """Return what the commands of a module are declared in."""
    return typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def family(
    text: str,
    *,
    examples: str,
    exits: tuple[ExitCode, ...] = (),
    group: type[TyperGroup] = Family,
    add_completion: bool = False,
) -> typer.Typer:
    """Return what commands of one name are declared in (`interact ask`, `interact list`)."""
    return typer.Typer(
        cls=group,
        help=text or None,
        epilog=_epilog(examples, exits),
        add_completion=add_completion,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings=_CONTEXT,
    )


def verb(
    app: typer.Typer,
    name: str,
    *,
    examples: str,
    exits: tuple[ExitCode, ...] = FINDS,
    kind: type[TyperCommand] = Verb,
    **settings: Any,
) -> Callable[[F], F]:
    """Declare a command; `exits` are the codes it can give beside those of every command."""
    context = {**_CONTEXT, **settings}
    return app.command(name, cls=kind, epilog=_epilog(examples, exits), context_settings=context)


def _epilog(examples: str, exits: tuple[ExitCode, ...]) -> str:
    shown = "\n".join(f"  {line}" for line in examples.strip().splitlines())
    codes = "\n".join(f"  {code.value:<3}  {EXIT_WORDS[code]}" for code in sorted({*_ALWAYS, *exits}))
    return f"Examples:\n{shown}\n\nExit codes:\n{codes}\n"
