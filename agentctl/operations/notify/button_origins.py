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
    pages = (_origin_of(one.url) for one in targets if one.type == NTFY and one.buttons)
    return frozenset(page for page in pages if page is not None)


def _origin_of(url: str) -> str | None:
    """Return the origin of a page as browsers send it; None where no page can be.

    >>> _origin_of("https://ntfy.example:443/mine"), _origin_of("http://[::1]:8080"), _origin_of("http://x:99999")
    ('https://ntfy.example', 'http://[::1]:8080', None)
    >>> _origin_of("http://[::1") is None
    True
    """
    try:
        parts = urlsplit(url.lower())
        given = parts.port
    except ValueError:  # A bracket that is never closed; a port over 65535, or no number.
        return None
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    port = "" if given in (None, usual) else f":{given}"
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}{port}"
