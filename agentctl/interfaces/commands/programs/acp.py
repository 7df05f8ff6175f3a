"""`acp`: agentctl as an agent for editors, over the Agent Client Protocol."""

from __future__ import annotations

from agentctl.interfaces.commands.model.command_model import (
    AGENTS,
    DRIVERS,
    FINDS,
    FLAG,
    POLICIES,
    TEXT,
    Command,
    Parameter,
)
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import ROOT, TASK


def acp(
    call: Invocation,
    *,
    agent: str = "general",
    driver: str | None = None,
    model: str | None = None,
    permissions: str | None = None,
    keep: bool = True,
) -> None:
    """Be an agent for an editor, over the Agent Client Protocol.

    An editor starts this on standard input and output. Each of its sessions is a worker, with all that agentctl does
    for workers: sub-agents of any program, questions that can be answered anywhere, an end that is proven. No worker is
    stopped when the editor goes away; its session can be loaded again.
    """
    from agentctl.interfaces.editor.client_entry import check_acp_library, serve_editor

    check_acp_library()
    from agentctl.interfaces.editor.methods import EditorOptions
    from agentctl.interfaces.editor.session.session_options import Choices

    serve_editor(
        EditorOptions(
            Choices(agent, driver, model, permissions, known_model=model), call.task_named, call.root_named, keep
        )
    )


COMMANDS = (
    Command(
        "acp",
        acp,
        (TASK, ROOT),
        """
agentctl acp
agentctl acp --agent plan --task survey-auth
agentctl acp --driver claude --model opus --permissions ask
""",
        (
            Parameter("agent", TEXT, "Which agent new sessions have.", "AGENT", default="general", completes=AGENTS),
            Parameter("driver", TEXT, "claude, opencode, llm, ...; else the first found.", "DRIVER", completes=DRIVERS),
            Parameter("model", TEXT, "The agent's model, as its program names it.", "MODEL"),
            Parameter(
                "permissions",
                TEXT,
                "ask, allow, deny, or rules in JSON; else the definition's.",
                "POLICY",
                completes=POLICIES,
            ),
            Parameter(
                "keep", FLAG, "Keep each agent after its answer, for the next prompt.", default=True, off="no-keep"
            ),
        ),
        exits=FINDS,
    ),
)
