"""`acp`: agentctl as an agent for editors, over the Agent Client Protocol."""

from typing import Annotated

import typer

from agentctl.cli import options as opt
from agentctl.cli.verb import FINDS, module, verb

app = module()


@verb(
    app,
    "acp",
    exits=FINDS,
    examples="""
agentctl acp
agentctl acp --agent plan --task survey-auth
agentctl acp --driver claude --model opus --permissions ask
""",
)
def acp(
    agent: Annotated[
        str, typer.Option("--agent", metavar="AGENT", help="Which agent new sessions have.", show_default=True)
    ] = "general",
    driver: Annotated[
        str | None, typer.Option("--driver", metavar="DRIVER", help="claude, opencode, llm, ...; else the first found.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="MODEL", help="The agent's model, as its program names it.")
    ] = None,
    permissions: Annotated[
        str | None,
        typer.Option(
            "--permissions", metavar="POLICY", help="ask, allow, deny, or rules in JSON; by default as defined."
        ),
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep/--no-keep", help="Keep each agent after its answer, for the next prompt.")
    ] = True,
    task: opt.Task = None,
    root: opt.Root = None,
) -> None:
    """Be an agent for an editor, over the Agent Client Protocol.

    An editor starts this on standard input and output. Each of its sessions is a worker, with all that agentctl does
    for workers: sub-agents of any program, questions that can be answered anywhere, an end that is proven. No worker is
    stopped when the editor goes away; its session can be loaded again.
    """
    from agentctl.acp.serving import check_acp_library, serve

    check_acp_library()
    from agentctl.acp.agent import EditorOptions
    from agentctl.acp.choices import Choices

    serve(EditorOptions(Choices(agent, driver, model, permissions, known_model=model), task, root, keep))
