"""The command line as typer reads it: its errors, its help pages and its completion, made from the commands.

The only module that loads typer; plain lines are read without it.
"""

from __future__ import annotations

import inspect
import math
import shlex
from collections.abc import Callable
from typing import Annotated, Any, Literal

import typer
from typer.core import CompletionItem, TyperCommand, TyperGroup  # type: ignore[attr-defined]

from agentctl import __version__
from agentctl.errors import Argument, AtTerminal, ExitCode, Next, UsageError, WithArguments
from agentctl.interfaces.cli.completion import names_offered
from agentctl.interfaces.cli.plain_lines import reads_as_prompt
from agentctl.interfaces.cli.presentation import carry_out
from agentctl.interfaces.commands.model.catalogue import (
    ALIASES,
    CLOSE_LINES,
    GROUPS,
    OLDER_NAMES,
    VERBS,
    command_named,
    listed_below,
)
from agentctl.interfaces.commands.model.command_model import (
    CHOICE,
    COMMAND,
    FLAG,
    HOST,
    NUMBER,
    OUTPUT,
    PLACE,
    PROMPT,
    SECONDS,
    TEXT,
    TEXTS,
    WHOLE,
    Command,
    Family,
    Parameter,
)
from agentctl.interfaces.commands.model.parameters import JSON

EXIT_WORDS: dict[ExitCode, str] = {
    ExitCode.DONE: "done",
    ExitCode.REFUSED: "refused or failed; the message says why",
    ExitCode.USAGE: "bad usage: a wrong option, name or file",
    ExitCode.NOT_FOUND: "no such task or worker",
    ExitCode.TIMED_OUT: "the wait timed out; no worker was stopped",
    ExitCode.NO_SLOT: "every slot is in use; --queue waits for one",
    ExitCode.NOTHING_LEFT: "nothing is left to wait for",
    ExitCode.UNSUCCESSFUL: "a worker ended without completing",
    ExitCode.CONFLICT: "the key was used for another request",
    ExitCode.INTERRUPTED: "interrupted by Ctrl-C",
}
#: What every command can return.
_ALWAYS = (ExitCode.DONE, ExitCode.REFUSED, ExitCode.USAGE, ExitCode.INTERRUPTED)
_CONTEXT = {"help_option_names": ["--help", "-h"]}
#: Longer than the first sentence of any command.
_LONGEST = 1000
_EXAMPLES = """
agentctl new "Survey the auth module"
agentctl spawn --name size -- du -sh .
agentctl wait-all && agentctl result size
"""


def run_line(argv: list[str], program_name: str) -> int:
    """Read a command line and carry it out; return the exit code.

    Not typer's own `main`: that turns a Ctrl-C into a code and colours errors with rich.

    Raises:
        UsageError: The line is not valid.
        KeyboardInterrupt: The command was broken off.
    """
    command = program()
    try:
        with command.make_context(program_name, list(argv)) as context:
            return int(command.invoke(context) or ExitCode.DONE)
    except typer.Exit as leave:
        return leave.exit_code
    except (typer.Abort, EOFError) as error:
        raise KeyboardInterrupt from error
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        where = program_name if context is None else context.command_path
        raise UsageError(error.format_message().rstrip("."), hint=AtTerminal(f"{where} --help")) from error


def complete_line(program_name: str, variable: str) -> None:
    """Answer a shell that completes a line, and leave."""
    program().main(prog_name=program_name, complete_var=variable)


def program() -> Any:
    """Return the whole program as one command."""
    app = _family_app(
        inspect.cleandoc(_start.__doc__ or ""), _EXAMPLES, tuple(ExitCode), group=_Program, add_completion=True
    )
    app.callback(invoke_without_command=True)(_start)
    return typer.main.get_command(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"agentctl {__version__}")
        raise typer.Exit


def _start(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    host: Annotated[
        str | None,
        typer.Option(
            "--host",
            metavar="HOST",
            help="Run the command there, over ssh: a name in your config.yaml, or user@machine. Put it first.",
            autocompletion=lambda incomplete: names_offered(HOST, incomplete),
        ),
    ] = None,
) -> None:
    """Give work to several agents or commands at once: real processes, plain files, no daemon.

    Without a command it shows what needs you, what has failed and what runs (`agentctl status`).

    The task is --task, else AGENTCTL_TASK, else the current one of the nearest .agentctl folder, up to the top of
    the git repository.
    Data goes to stdout, everything else to stderr; --json prints one JSON document.
    """
    if host is not None:  # Where it comes first, none of this is reached.
        raise UsageError(
            WithArguments(Argument("host"), " comes before everything else"),
            hint=AtTerminal(f"agentctl --host {host} COMMAND"),
        )
    if context.invoked_subcommand is None:
        raise UsageError("no command is given", hint=AtTerminal("agentctl help all lists them"))


# -- commands and families as typer's ----------------------------------------------------------------------------------


def typer_command(found: Command | Family) -> Any:
    """Return what typer makes of a command or of a family."""
    if isinstance(found, Command):
        return _one(found)
    app = _family_app(found.help, found.examples, found.exits)
    if found.without is not None:
        app.callback(invoke_without_command=True)(_without_subcommand(found))
    group = typer.main.get_group(app)
    for command in found.commands:
        group.add_command(_one(command), command.name)
    return group


def _one(command: Command) -> Any:
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    takes_command = any(one.kind == COMMAND for one in command.parameters)
    settings = {"allow_interspersed_args": False} if takes_command else {}
    app.command(
        command.name,
        cls=_WithCommand if takes_command else _Verb,
        epilog=_epilog(command.examples, command.exits),
        context_settings={**_CONTEXT, **settings},
    )(_function_of(command))
    return typer.main.get_command(app)


def _family_app(
    text: str,
    examples: str,
    exits: tuple[ExitCode, ...],
    *,
    group: type[TyperGroup] | None = None,
    add_completion: bool = False,
) -> typer.Typer:
    return typer.Typer(
        cls=group or _Group,
        help=text or None,
        epilog=_epilog(examples, exits),
        add_completion=add_completion,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings=_CONTEXT,
    )


def _function_of(command: Command) -> Callable[..., int]:
    """Return a function with the parameters of a command, which typer reads from its signature."""

    def called(**values: Any) -> int:
        return carry_out(command, {name: value for name, value in values.items() if value is not None})

    called.__doc__ = command.help_page
    called.__annotations__ = {}
    called.__signature__ = inspect.Signature([*map(_declared, command.all_parameters())])  # type: ignore[attr-defined]
    return called


def _without_subcommand(found: Family) -> Callable[..., None]:
    """Return the function of a family that is called without one of its commands: it has the option --json alone."""

    def called(context: typer.Context, **values: Any) -> None:
        if context.invoked_subcommand is None and found.without is not None:
            raise typer.Exit(carry_out(found.without, values))

    keyword = inspect.Parameter.KEYWORD_ONLY
    context = inspect.Parameter("context", keyword, annotation=typer.Context)
    called.__doc__ = found.help
    called.__annotations__ = {}
    called.__signature__ = inspect.Signature([context, _declared(JSON)])  # type: ignore[attr-defined]
    return called


_TYPES: dict[str, Any] = {
    TEXT: str, PROMPT: str, WHOLE: int, NUMBER: float, SECONDS: float, TEXTS: list[str], COMMAND: list[str],
}  # fmt: skip


def _declared(one: Parameter) -> inspect.Parameter:
    """Return a parameter as typer reads it."""
    kind: Any = Literal[one.choices] if one.kind == CHOICE else _TYPES.get(one.kind, bool)
    settings: dict[str, Any] = {
        "metavar": one.metavar, "help": one.help_line or None, "hidden": one.is_hidden,
        "min": one.least, "max": one.most,
        "parser": _seconds if one.kind == SECONDS else None,
        "autocompletion": _completion(one) if one.completes else None,
    }  # fmt: skip
    if one.is_argument or one.kind == COMMAND:
        declared = typer.Argument(**settings)
    else:
        flags = f"--{one.words}" + (f"/--{one.off}" if one.off else "")
        declared = typer.Option(flags, *[f"-{one.short}"] * bool(one.short), rich_help_panel=one.group or None,
                                **settings)  # fmt: skip
    default: Any = inspect.Parameter.empty
    if not one.is_required:
        default = bool(one.default) if one.kind == FLAG and not one.off else one.default
        kind = kind if default is not None else kind | None
    return inspect.Parameter(
        one.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, declared]
    )


def _seconds(text: str) -> float:
    """Return a number of seconds; `nan` and `inf` are refused."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise typer.BadParameter(f"{text!r} is not a number of seconds, 0 or more")
    return value


def _completion(one: Parameter) -> Callable[[typer.Context, str], list[str]]:
    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        given = {**ctx.params, "host": ctx.find_root().params.get("host")}
        there = ctx.params.get(one.name)
        return names_offered(one.completes, incomplete, given, there if isinstance(there, (list, tuple)) else ())

    return complete


def _epilog(examples: str, exits: tuple[ExitCode, ...]) -> str:
    shown = "\n".join(f"  {line}" for line in examples.strip().splitlines())
    codes = "\n".join(f"  {code.value:<3}  {EXIT_WORDS[code]}" for code in sorted({*_ALWAYS, *exits}))
    return f"Examples:\n{shown}\n\nExit codes:\n{codes}\n"


# -- help pages, and what typer does not do ----------------------------------------------------------------------------


def _write_epilog(command: Any, formatter: Any) -> None:
    """Write the end of a help page unchanged: an example must not be wrapped."""
    if command.epilog:
        formatter.write_paragraph()
        formatter.write(command.epilog)


class _Verb(TyperCommand):
    """A command."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line, without the braces that typer puts around required arguments."""
        return [piece.removeprefix("{").removesuffix("}") for piece in super().collect_usage_pieces(ctx)]

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        _write_epilog(self, formatter)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options below the headings of their rows, if there are any but those of all commands."""
        records: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            is_argument = parameter.param_type_name == "argument"
            # Of all options only --help, which is not declared here, has no row.
            named = OUTPUT if parameter.name == "help" else getattr(parameter, "rich_help_panel", None) or _OPTIONS
            record = parameter.get_help_record(ctx)
            if record is not None:
                records.setdefault(_ARGUMENTS if is_argument else named, []).append(record)
        if records.keys() <= _USUAL:
            super().format_options(ctx, formatter)
            return
        for heading in sorted(records, key=_place_of_heading):
            with formatter.section(heading):
                formatter.write_dl(records[heading])


_ARGUMENTS, _OPTIONS = "Arguments", "Options"
_USUAL = frozenset({_ARGUMENTS, _OPTIONS, PLACE, OUTPUT})


def _place_of_heading(heading: str) -> int:
    """Return where a heading stands: what is of one command alone goes before its place and its output."""
    from agentctl.operations.start.options import GROUPS  # Only for a help page.

    ordered = (_ARGUMENTS, _OPTIONS, *GROUPS)
    return ordered.index(heading) if heading in ordered else 2


class _Group(TyperGroup):
    """Commands under one name."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each command with its whole first sentence."""
        with formatter.section("Commands"):
            named = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
            formatter.write_dl([(name, command.get_short_help_str(_LONGEST)) for name, command in named if command])

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        _write_epilog(self, formatter)


class _Program(_Group):
    """The program's commands; each is loaded only when it is called."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        if cmd_name not in self.commands and cmd_name in VERBS:
            self.commands[cmd_name] = typer_command(command_named(cmd_name))
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if name not in VERBS and not name.startswith("-") and not ctx.resilient_parsing:
            raise UsageError(f"there is no command {name!r}", hint=_similar(name))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """Write the commands below their headings, and the older names of some of them."""
        width = max(map(len, VERBS))
        for group in GROUPS:
            with formatter.section(group):
                formatter.write_dl([(f"{name:<{width}}", listed.help) for name, listed in listed_below(group).items()])
        with formatter.section("Older names, which work as ever"):
            formatter.write_text(", ".join(f"{old} ({new})" for old, new in OLDER_NAMES.items()))

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        listed = (name for group in GROUPS for name in listed_below(group))
        return [CompletionItem(name) for name in (*listed, "help") if name.startswith(incomplete)]


def _similar(name: str) -> str:
    if name in CLOSE_LINES:
        return f"agentctl {CLOSE_LINES[name]}"
    from difflib import get_close_matches

    known = [*(one for group in GROUPS for one in listed_below(group)), "help"]
    near = get_close_matches(name, known, n=3) or get_close_matches(name, ALIASES, n=1)
    return f"did you mean {' or '.join(near)}?" if near else "agentctl help all lists them"


class _WithCommand(_Verb):
    """`spawn`: a command follows `--`; one text without it is an agent's prompt."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        given = list(args)
        args = _with_prompt_marked(given)
        rest = super().parse_args(ctx, args if ctx.resilient_parsing else self._with_prompt_last(ctx, args))
        words = ctx.params.get("command") or []
        if words and given[-len(words) - 1 : -len(words)] != ["--"] and not ctx.resilient_parsing:
            _check_prompt(words, [name for name, value in ctx.params.items() if value])
            ctx.params["prompt"], ctx.params["command"] = words[0], None
        return rest

    def _with_prompt_last(self, ctx: Any, args: list[str]) -> list[str]:
        """Return the arguments with the options that follow a prompt moved in front of it."""
        if "--" in args:
            return args
        words: list[str] = list(self.make_parser(ctx).parse_args(list(args))[0].get("command") or ())
        is_prompt = bool(words) and reads_as_prompt(words[0], _named_in(args))
        if not is_prompt or not words[1:] or not words[1].startswith("-"):
            return args
        self.make_parser(ctx).parse_args(words[1:])  # An option that lacks its value must not take `--` for it.
        return [*args[: -len(words)], *words[1:], "--", words[0]]


def _named_in(args: list[str]) -> list[str]:
    """Return the names of the options that are written out in these words."""
    return [arg[2:].partition("=")[0].replace("-", "_") for arg in args if arg.startswith("--")]


def _with_prompt_marked(args: list[str]) -> list[str]:
    """Return the arguments, with `--` before a prompt that begins with a dash: no option's name contains a space."""
    last = args[-1] if args else ""
    is_prompt = last.startswith("-") and any(map(str.isspace, last.partition("=")[0]))
    return [*args[:-1], "--", last] if is_prompt and "--" not in args else list(args)


def _check_prompt(words: list[str], given: list[str]) -> None:
    """Refuse what looks like a command: an agent that is started by mistake costs money."""
    if len(words) == 1 and not reads_as_prompt(words[0], given):
        raise UsageError(
            WithArguments(
                f"{words[0]!r} is one word: ", Argument("agent"), " makes it a prompt, and a command follows --"
            ),
            hint=(
                AtTerminal(f"agentctl spawn --agent general {shlex.quote(words[0])}"),
                AtTerminal(f"agentctl spawn -- {shlex.quote(words[0])}"),
            ),
        )
    if len(words) > 1:
        raise UsageError(
            f"what is {words[0]!r}? a command follows --, and a prompt is one text, in quotes",
            hint=(AtTerminal("agentctl spawn [OPTIONS] -- CMD ARGS..."), Next("spawn an agent")),
        )
