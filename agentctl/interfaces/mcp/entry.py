"""What `agentctl mcp` runs: it answers the opening without the protocol's library, then hands over to `stdio`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from agentctl.errors import Refused
from agentctl.interfaces.mcp.early_answers import OpenedConversation, open_conversation
from agentctl.lean import TYPE_CHECKING, NamedTuple
from agentctl.tools.prepared_offer import Offer, prepared

if TYPE_CHECKING:
    from agentctl.tools.registry import Toolbox

PROGRESS_S = 10.0


class Serving(NamedTuple):
    """The options of a server."""

    tools: str = "codex"
    agents: str | None = None
    task: str | None = None
    root: str | None = None
    #: How long a call may take; 0: without a limit; None: as long as the client is known to wait.
    call_seconds: float | None = None
    progress_seconds: float = PROGRESS_S

    def toolbox(self) -> Toolbox:
        """Return the tools."""
        from agentctl.tools.registry import Toolbox
        from agentctl.tools.scope import ScopeSource

        named = (name.strip() for name in (self.agents or "").split(","))
        source = ScopeSource(self.task, self.root, tuple(name for name in named if name) or None)
        return Toolbox(source, self.tools, call_s=self.call_seconds)


def serve_client(serving: Serving) -> None:
    """Serve one client, from its first line on.

    Raises:
        Refused: The protocol's library is not installed.
    """
    check_mcp_library()
    toolbox = serving.toolbox()
    begun = open_conversation(lambda: offer_of(toolbox))
    if begun is not None:
        go_on(serving, begun, toolbox)


def go_on(serving: Serving, begun: OpenedConversation, toolbox: Toolbox | None = None) -> None:
    """Serve a client whose opening was answered, with the library.

    Raises:
        Refused: It is not installed.
    """
    check_mcp_library()
    from agentctl.interfaces.mcp import stdio
    from agentctl.interfaces.mcp.worker_environment import complete_environment

    complete_environment()
    stdio.serve_stdio(
        toolbox or serving.toolbox(), begun, call_s=serving.call_seconds, progress_s=serving.progress_seconds
    )


def check_mcp_library() -> None:
    """Raise `Refused` if the protocol's library is not installed."""
    from importlib.util import find_spec

    if find_spec("mcp") is None:
        from agentctl.adapters.extras import install_command

        raise Refused("the Model Context Protocol's library is not installed", hint=install_command("mcp"))


def offer_of(toolbox: Toolbox) -> Offer:
    """Return what the opening says about the tools, as they are now."""
    return {"instructions": toolbox.instructions(), "tools": [one.to_json() for one in toolbox.offered()]}


def open_early(serving: Serving) -> OpenedConversation | None:
    """Answer the opening of an agent's own server, with only the standard library loaded."""

    def offered() -> Offer:
        return prepared() or _made(serving)

    return open_conversation(offered)


def print_offer(serving: Serving) -> None:
    """Print the offer of an agent's own server, to prepare its first answers."""
    import json

    json.dump(_made(serving), sys.stdout)


def _made(serving: Serving) -> Offer:
    load_site()
    return offer_of(serving.toolbox())


def load_site() -> None:
    """Make installed packages known to a Python that was started without them (`-S`)."""
    if sys.flags.no_site and "site" not in sys.modules:
        import site

        site.main()


def serving_of(words: Sequence[str]) -> Serving | None:
    """Return the options in a plain command line; None if it needs a parser.

    >>> serving_of(["--tools=claude", "--call-seconds", "0"])
    Serving(tools='claude', agents=None, task=None, root=None, call_seconds=0.0, progress_seconds=10.0)
    >>> serving_of(["--http", "8931"]), serving_of(["--tools"])
    (None, None)
    """
    given: dict[str, str] = {}
    rest = list(words)
    while rest:
        name, is_whole, value = rest.pop(0).partition("=")
        if not is_whole:
            if not rest:
                return None
            value = rest.pop(0)
        name = name.removeprefix("--").replace("-", "_")
        if name not in Serving._fields or not value or value.startswith("-") or name in given:
            return None
        given[name] = value
    numbers = {name: given.pop(name) for name in ("call_seconds", "progress_seconds") if name in given}
    if not all(number.isdecimal() and number.isascii() and len(number) < 10 for number in numbers.values()):
        return None
    if given.get("tools", "codex") not in {"codex", "claude", "subtask", "all"}:
        return None
    if float(numbers.get("progress_seconds", 1)) == 0:
        return None
    return Serving(**given, **{name: float(number) for name, number in numbers.items()})  # type: ignore[arg-type]
