"""`mcp`: the tools for agents, over the Model Context Protocol."""

from __future__ import annotations

from agentctl.errors import Argument, UsageError, WithArguments
from agentctl.interfaces.commands.model.command_model import (
    AGENT_LIST,
    DIALECTS,
    FINDS,
    SECONDS,
    TEXT,
    WHOLE,
    Command,
    Parameter,
)
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import ROOT, TASK


def mcp(
    call: Invocation,
    *,
    tools: str = "codex",
    agents: str | None = None,
    http: int | None = None,
    call_seconds: float | None = None,
    progress_seconds: float = 10.0,
) -> None:
    """Serve the tools for agents over MCP.

    With them an agent starts sub-agents, waits for them, answers and stops them. By default there is one client, on
    standard input and output. Inside a worker the server starts that worker's children; in a session of yours it works
    in the task that `spawn` would use. No worker ends when a client goes away.
    """
    from agentctl.interfaces.mcp.entry import Serving, check_mcp_library, serve_client

    check_mcp_library()
    if not progress_seconds:
        raise UsageError(WithArguments(Argument("progress_seconds"), " must be more than 0"))
    serving = Serving(tools, agents, call.task_named, call.root_named, call_seconds, progress_seconds)
    if http is None:
        serve_client(serving)
        return
    from agentctl.interfaces.mcp import http as over_http

    place = over_http.listen(http)
    token = over_http.make_token(http)
    call.note(f"http://{over_http.HOST}:{http}{over_http.PATH}, the token is in {token.file}")
    over_http.serve_http(serving.toolbox(), place, token, call_s=call_seconds, progress_s=progress_seconds)


COMMANDS = (
    Command(
        "mcp",
        mcp,
        (TASK, ROOT),
        """
agentctl mcp
agentctl mcp --tools claude --call-seconds 0
agentctl mcp --http 8931 --task survey-auth
agentctl install claude
""",
        (
            Parameter("tools", TEXT, "codex, claude, subtask or all.", "DIALECT", default="codex", completes=DIALECTS),
            Parameter("agents", TEXT, "The agents to offer, instead of the project's.", "LIST", completes=AGENT_LIST),
            Parameter(
                "http", WHOLE, "Serve streamable HTTP on 127.0.0.1 instead of stdio.", "PORT", least=1, most=65535
            ),
            Parameter("call_seconds", SECONDS, "How long one call may take; 0: no limit; by default a safe one.", "N"),
            Parameter(
                "progress_seconds", SECONDS, "How often to send progress to a waiting caller.", "N", default=10.0
            ),
        ),
        exits=FINDS,
    ),
)
