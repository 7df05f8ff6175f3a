"""The worker that a call of a tool waits for, and the name by which its caller knows it."""

from __future__ import annotations

from dataclasses import dataclass

from agentctl.domain.names import WorkerId


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """A worker that a call waits for, under the name by which the caller knows it."""

    id: str
    key: WorkerId

    def to_json(self) -> dict[str, str]:
        """Return it for a file."""
        return {"id": self.id, "taskId": self.key.task_id, "agentInstance": self.key.instance}
