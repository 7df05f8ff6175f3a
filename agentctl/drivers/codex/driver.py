"""The `codex` driver: the command line and environment of `codex app-server`, which speaks JSON-RPC on its stdin.

The code relies on these facts, observed with the version in `DRIVER`:

- The program serves until its input is closed. A run has ended when the root thread's turn has ended and no
  sub-agent's thread is at work. A command that an interrupted turn leaves behind lives until the program ends.
- A `cwd` in `thread/start` makes Codex write the folder into the person's config as trusted. Starting the program in
  that folder works as well, and adds no trust.
- A command that rules allow always runs outside the sandbox, even with `read-only` and `never`, unless the profile
  denies a read: a denied read can be enforced only inside the sandbox.
- With `never`, a tool of an MCP server still runs if the config approves it.
"""

from __future__ import annotations

from collections.abc import Mapping

from agentctl.drivers.codex.account import codex_account
from agentctl.drivers.codex.dialogue import CodexDialogue
from agentctl.drivers.codex.errors import INSTALL, OLDEST
from agentctl.drivers.codex.home import DATABASES, replaced_home
from agentctl.drivers.codex.sessions import by_hand, writer_lock
from agentctl.drivers.dialogue import Driver
from agentctl.drivers.marks import SHIPPED
from agentctl.drivers.order import Order

#: Set by another Codex for what it starts: they describe that one's sandbox, session and installation.
_OF_ANOTHER = frozenset(
    {
        "CODEX_CI",
        "CODEX_INTERNAL_ORIGINATOR_OVERRIDE",
        "CODEX_MANAGED_BY_BUN",
        "CODEX_MANAGED_BY_NPM",
        "CODEX_MANAGED_BY_PNPM",
        "CODEX_MANAGED_PACKAGE_ROOT",
        "CODEX_PERMISSION_PROFILE",
        "CODEX_SANDBOX",
        "CODEX_SANDBOX_NETWORK_DISABLED",
        "CODEX_SESSION_ID",
        "CODEX_THREAD_ID",
        "CODEX_TOOL_CALL_ID",
    }
)
#: Offers the question tool outside plan mode too; suppresses the warning that this feature is unfinished.
_ALWAYS = ("features.default_mode_request_user_input=true", "suppress_unstable_features_warning=true")
#: Switches off what acts outside the sandbox and is configured for the person, not for this agent.
_CONFINED = ("features.apps=false", "features.plugins=false")


def argv(order: Order) -> list[str]:
    """Return the command line."""
    flags = [*_ALWAYS, *(_CONFINED if order.read_only else ())]
    return [order.program, "app-server", *(word for flag in flags for word in ("-c", flag))]


def environ(order: Order, inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the environment: the worker's, without the variables of another Codex, and of what lies elsewhere now."""
    left_out = _OF_ANOTHER | ({DATABASES} if order.home else set())
    return {name: value for name, value in inherited.items() if name not in left_out}


DRIVER = Driver(
    name="codex",
    program="codex",
    version_argv=("--version",),
    tested="0.171.0",
    install=INSTALL,
    honours=frozenset(
        {"model", "effort", "readOnly", "maxTurns", "permissions", "resume", "keep", "mcpServers", "outputSchema"}
    ),
    argv=argv,
    environ=environ,
    dialogue=CodexDialogue,
    oldest=OLDEST,
    reports=frozenset({"tokens"}),
    asks=True,
    account=codex_account,
    home=replaced_home,
    marks=SHIPPED["codex"],
    by_hand=by_hand,
    writer_lock=writer_lock,
    leaves_mount_points=True,
    resets_path=True,
)
