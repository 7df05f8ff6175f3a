"""How a command is declared: its options, and a help page that ends with examples and exit codes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar, get_args

import typer
from typer.core import TyperCommand, TyperGroup

from agentctl.errors import ExitCode

F = TypeVar("F", bound=Callable[..., Any])

EXIT_WORDS: dict[ExitCode, str] = {
    ExitCode.DONE: "done",
    ExitCode.REFUSED: "refused or failed; the message says why",
    ExitCode.USAGE: "bad usage: a wrong option, name or file",
    ExitCode.NOT_FOUND: "no such task or worker",
    ExitCode.TIMED_OUT: "the wait timed out; no worker was stopped",
    ExitCode.NO_SLOT: "every slot is in use; --queue waits for one",
    ExitCode.NOTHING_LEFT: "nothing is left to wait for",
    ExitCode.UNSUCCESSFUL: "a worker ended without completing",
    ExitCode.INTERRUPTED: "interrupted by Ctrl-C",
}
#: What every command can return.
_ALWAYS = (ExitCode.DONE, ExitCode.REFUSED, ExitCode.USAGE, ExitCode.INTERRUPTED)
#: What every command that looks for a task or a worker can return.
FINDS = (ExitCode.NOT_FOUND,)

#: Longer than the first sentence of any command.
_LONGEST = 1000

_CONTEXT = {"help_option_names": ["--help", "-h"]}


def write_epilog(command: Any, formatter: Any) -> None:
    """Write the end of a help page unchanged: an example must not be wrapped."""
    if command.epilog:
        formatter.write_paragraph()
        formatter.write(command.epilog)


class Verb(TyperCommand):
    """A command."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line, without the braces that typer puts around required arguments."""
        return [piece.removeprefix("{").removesuffix("}") for piece in super().collect_usage_pieces(ctx)]

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        write_epilog(self, formatter)


class Family(TyperGroup):
    """Commands under one name."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each command with its whole first sentence."""
        with formatter.section("Commands"):
            named = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
            formatter.write_dl([(name, command.get_short_help_str(_LONGEST)) for name, command in named if command])

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        write_epilog(self, formatter)


def module() -> typer.Typer:
    """Return an app in which the commands of a module are declared."""
    return typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def family(
    text: str,
    *,
    examples: str,
    exits: tuple[ExitCode, ...] = (),
    group: type[TyperGroup] = Family,
    add_completion: bool = False,
) -> typer.Typer:
    """Return an app for commands under one name (`interact ask`, `interact list`)."""
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
    """Declare a command; `exits` are the codes it can return besides those of every command.

    A parameter `call` becomes the options that its annotation lists.
    """
    context = {**_CONTEXT, **settings}
    declare = app.command(name, cls=kind, epilog=_epilog(examples, exits), context_settings=context)

    def declared(command: F) -> F:
        declare(_with_options_of_call(command))
        return command

    return declared


def _with_options_of_call(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function with the options of its `call` as parameters, from which typer makes the command line."""
    from agentctl.cli.invocation import Invocation  # `agentctl --help` declares no command.

    signature, defaults = inspect.signature(command), Invocation.__init__.__kwdefaults__ or {}
    own = dict(signature.parameters)
    if "call" not in own:
        return command
    _, given = get_args(own.pop("call").annotation)
    place = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults[name], annotation=option)
        for name, option in given.options.items()
    ]

    def called(**parameters: Any) -> Any:
        return command(Invocation.taken_from(parameters, given.options), **parameters)

    called.__doc__ = command.__doc__
    called.__annotations__ = {}
    own_as_keywords = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own.values()]
    called.__signature__ = signature.replace(parameters=[*own_as_keywords, *place])  # type: ignore[attr-defined]
    return called


def _epilog(examples: str, exits: tuple[ExitCode, ...]) -> str:
    shown = "\n".join(f"  {line}" for line in examples.strip().splitlines())
    codes = "\n".join(f"  {code.value:<3}  {EXIT_WORDS[code]}" for code in sorted({*_ALWAYS, *exits}))
    return f"Examples:\n{shown}\n\nExit codes:\n{codes}\n"
