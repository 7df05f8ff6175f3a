"""How `spawn` tells a prompt from a command: an agent that is started by mistake costs money."""

import shlex
from typing import Any

from agentctl.cli.verb import Verb
from agentctl.errors import UsageError


class SpawnVerb(Verb):
    """`spawn`: behind `--` stands a command; one text without it is an agent's prompt."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        given = list(args)
        args = _with_prompt_marked(given)
        rest = super().parse_args(ctx, args if ctx.resilient_parsing else self._with_prompt_last(ctx, args))
        words = ctx.params.get("command") or []
        if words and given[-len(words) - 1 : -len(words)] != ["--"] and not ctx.resilient_parsing:
            _check_prompt(words, is_agent_named=ctx.params.get("agent") is not None)
            ctx.params["prompt"], ctx.params["command"] = words[0], None
        return rest

    def _with_prompt_last(self, ctx: Any, args: list[str]) -> list[str]:
        """Return the arguments, the options that stand behind a prompt in front of it."""
        if "--" in args:
            return args
        words: list[str] = list(self.make_parser(ctx).parse_args(list(args))[0].get("command") or ())
        is_prompt = bool(words) and (" " in words[0].strip() or _names_agent(args))
        if not is_prompt or not words[1:] or not words[1].startswith("-"):
            return args
        self.make_parser(ctx).parse_args(words[1:])  # An option without its value must not take the mark for one.
        return [*args[: -len(words)], *words[1:], "--", words[0]]


def _names_agent(args: list[str]) -> bool:
    return any(arg == "--agent" or arg.startswith("--agent=") for arg in args)


def _with_prompt_marked(args: list[str]) -> list[str]:
    """Return the arguments, a prompt that begins with a dash (a list) behind a mark: no option's name has a space."""
    last = args[-1] if args else ""
    is_prompt = last.startswith("-") and any(map(str.isspace, last.partition("=")[0]))
    return [*args[:-1], "--", last] if is_prompt and "--" not in args else list(args)


def _check_prompt(words: list[str], *, is_agent_named: bool) -> None:
    """Refuse what is rather a command: an agent that is started by mistake costs money."""
    if len(words) == 1 and not (is_agent_named or " " in words[0].strip()):
        raise UsageError(
            f"{words[0]!r} is one word: --agent says that it is a prompt, and a command stands behind --",
            hint=f"agentctl spawn --agent general {shlex.quote(words[0])}; agentctl spawn -- {shlex.quote(words[0])}",
        )
    if len(words) > 1:
        raise UsageError(
            f"what is {words[0]!r}? a command stands behind --, and a prompt is one text, in quotes",
            hint='agentctl spawn [OPTIONS] -- CMD ARGS...; agentctl spawn --agent explore "WHAT TO DO"',
        )
