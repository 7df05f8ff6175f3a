"""agentctl's own tools in this program: to start other agents, without a server and without its library.

What the tools are is read from the offer that the host has prepared; what carries them out is loaded by the first call.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from agentctl.adapters.wake_pipe import WakePipe
from agentctl.domain.agent.own_tools import OFFER_VARIABLE
from agentctl.drivers.values import list_in, object_in, text_in
from agentctl.tools.prepared_offer import prepared
from agentctl.worker_programs.plain_model.break_off import BreakOff, Interrupted
from agentctl.worker_programs.plain_model.model.request import ToolSpec

if TYPE_CHECKING:
    from agentctl.tools.registry import Toolbox

#: This program asks the person itself.
_OWN = frozenset({"ask_user"})
_DIALECT = "codex"


class DelegationTools:
    """The tools that agentctl gives to an agent.

    Args:
        offer: The file that the host prepares.
    """

    def __init__(self, offer: str) -> None:
        os.environ[OFFER_VARIABLE] = offer
        found = prepared()
        self._toolbox: Toolbox | None = None
        tools = map(object_in, list_in(found.get("tools"))) if found is not None else self._made()
        self.instructions = text_in(found.get("instructions")) if found is not None else ""
        specs = map(_spec, tools)
        self.specs = [spec for spec in specs if spec.name not in _OWN]

    def _made(self) -> Iterable[dict[str, Any]]:
        """Return the tools where nobody has prepared them."""
        try:
            return [one.to_json() for one in self._loaded().offered()]
        except Exception:  # noqa: BLE001 - whatever is wrong with the task: the agent does without
            return []

    def names(self) -> list[str]:
        """Return the names of the tools."""
        return [spec.name for spec in self.specs]

    def has(self, name: str) -> bool:
        """Return whether it is one of these tools."""
        return name in self.names()

    def call(self, name: str, arguments: Mapping[str, Any], breaker: BreakOff) -> tuple[str, str]:
        """Call a tool; return the text of its answer, and whether the call completed or failed.

        Raises:
            Interrupted: It was broken off; workers that it has started go on.
        """
        toolbox = self._loaded()
        from agentctl.errors import BrokenOff
        from agentctl.tools.definition import Call
        from agentctl.tools.registry import is_error

        try:
            with WakePipe() as broken, breaker.stopping(broken.wake):
                answer = toolbox.call(name, dict(arguments), Call(broken=broken.fd))
        except BrokenOff:
            raise Interrupted from None
        text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
        return text, "failed" if is_error(answer) else "completed"

    def _loaded(self) -> Toolbox:
        if self._toolbox is None:
            if sys.flags.no_site and "site" not in sys.modules:
                import site

                site.main()
            from agentctl.tools.registry import Toolbox
            from agentctl.tools.scope import ScopeSource

            self._toolbox = Toolbox(ScopeSource(None, None, None), _DIALECT, call_s=0)
        return self._toolbox


def _spec(tool: Mapping[str, Any]) -> ToolSpec:
    return ToolSpec(text_in(tool.get("name")), text_in(tool.get("description")), object_in(tool.get("inputSchema")))
