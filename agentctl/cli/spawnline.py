"""Decides whether a line of `spawn` has a prompt or a command, and formats its help page."""

import shlex
from typing import Any

from agentctl.cli.options import OUTPUT
from agentctl.cli.plainlines import reads_as_prompt
from agentctl.cli.verb import Verb
from agentctl.errors import UsageError
from agentctl.operations.start.options import GROUPS


class SpawnVerb(Verb):
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

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options in groups."""
        groups: dict[str, list[tuple[str, str]]] = {group: [] for group in ("Arguments", *GROUPS)}
        for parameter in self.get_params(ctx):
            is_argument = parameter.param_type_name == "argument"
            # Of all options only --help, which is not declared here, names no group.
            group = "Arguments" if is_argument else getattr(parameter, "rich_help_panel", None) or OUTPUT
            record = parameter.get_help_record(ctx)
            if record is not None:
                groups[group].append(record)
        for group, records in groups.items():
            with formatter.section(group):
                formatter.write_dl(records)

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
            f"{words[0]!r} is one word: --agent makes it a prompt, and a command follows --",
            hint=f"agentctl spawn --agent general {shlex.quote(words[0])}; agentctl spawn -- {shlex.quote(words[0])}",
        )
    if len(words) > 1:
        raise UsageError(
            f"what is {words[0]!r}? a command follows --, and a prompt is one text, in quotes",
            hint='agentctl spawn [OPTIONS] -- CMD ARGS...; agentctl spawn --agent explore "WHAT TO DO"',
        )
