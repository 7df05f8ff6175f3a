"""`mcp`: the tools for agents, over the Model Context Protocol."""

import sys
from typing import Annotated

import typer

from agentctl.cli import options as opt
from agentctl.cli.verb import FINDS, module, verb
from agentctl.errors import UsageError

app = module()


@verb(
    app,
    "mcp",
    exits=FINDS,
    examples="""
agentctl mcp
agentctl mcp --tools claude --call-seconds 0
agentctl mcp --http 8931 --task survey-auth
agentctl install claude
""",
)
def mcp(
    tools: Annotated[
        str, typer.Option("--tools", metavar="DIALECT", help="codex, claude, subtask or all.", show_default=True)
    ] = "codex",
    agents: Annotated[
        str | None, typer.Option("--agents", metavar="LIST", help="The agents to offer, instead of the project's.")
    ] = None,
    http: Annotated[
        int | None,
        typer.Option(
            "--http", metavar="PORT", min=1, max=65535, help="Serve streamable HTTP on 127.0.0.1 instead of stdio."
        ),
    ] = None,
    call_seconds: Annotated[
        float | None,
        typer.Option(
            "--call-seconds",
            metavar="N",
            parser=opt.seconds,
            help="How long one call may take; 0: no limit; by default a safe one.",
        ),
    ] = None,
    progress_seconds: Annotated[
        float,
        typer.Option(
            "--progress-seconds",
            metavar="N",
            parser=opt.seconds,
            help="How often to send progress to a waiting caller.",
        ),
    ] = 10.0,
    task: opt.Task = None,
    root: opt.Root = None,
) -> None:
    """Serve the tools for agents over MCP.

    With them an agent starts sub-agents, waits for them, answers and stops them. On standard input and output, for one
    client: the server of a worker starts that worker's children; that of a person's session works in the task that
    `spawn` would use. No worker ends when a client goes away.
    """
    from agentctl.mcp.serving import Serving, check_mcp_library, serve

    check_mcp_library()
    if not progress_seconds:
        raise UsageError("--progress-seconds must be more than 0")
    serving = Serving(tools, agents, task, root, call_seconds, progress_seconds)
    if http is None:
        serve(serving)
        return
    from agentctl.mcp import http as over_http

    place = over_http.listen(http)
    token = over_http.make_token(http)
    print(f"http://{over_http.HOST}:{http}{over_http.PATH}, the token is in {token.file}", file=sys.stderr, flush=True)
    over_http.serve(serving.toolbox(), place, token, call_s=call_seconds, progress_s=progress_seconds)
