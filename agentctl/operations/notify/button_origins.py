"""Which pages may press the buttons of messages: those of the servers of ntfy to which buttons are sent."""

from __future__ import annotations

from urllib.parse import urlsplit

from agentctl.domain.notice.targets import NTFY
from agentctl.errors import AgentctlError
from agentctl.operations.where.personal_config import NOTIFY, section


def button_origins() -> frozenset[str]:
    """Return the origins of these pages as browsers send them, by config.yaml as it is now; none if it is at fault."""
    try:
        targets = section(NOTIFY).targets.values()
    except (AgentctlError, OSError):
        return frozenset()
    return frozenset(_origin_of(one.url) for one in targets if one.type == NTFY and one.buttons)


def _origin_of(url: str) -> str:
    parts = urlsplit(url.lower())
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    port = "" if parts.port in (None, usual) else f":{parts.port}"
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}{port}"
