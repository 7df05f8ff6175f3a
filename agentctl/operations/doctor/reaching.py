"""Which hosts agent programs need, for `doctor` to have a node try whether it reaches them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from agentctl.drivers.registry import AGENT_DRIVERS, load, program_of
from agentctl.errors import Argument, UsageError, WithArguments

#: The word that stands for the hosts of the agent programs that are installed here.
AGENTS = "agents"
#: Driver -> the variable that names another server, and the hosts that it needs otherwise.
_HOSTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "claude": ("ANTHROPIC_BASE_URL", ("api.anthropic.com:443",)),
    "codex": ("OPENAI_BASE_URL", ("api.openai.com:443", "chatgpt.com:443")),
}
#: The variables that name a proxy: through it, a node without a way of its own reaches the hosts.
_PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}


def hosts_for(asked: Sequence[str], environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return HOST:PORT of each that is to be tried.

    Raises:
        UsageError: One is neither HOST:PORT nor `agents`.
    """
    found = []
    for one in asked:
        found += _of_agents(environ) if one == AGENTS else [_checked(one)]
    return list(dict.fromkeys(found))


def programs_here() -> list[str]:
    """Return the paths of the agent programs that are installed here: workers call them by these."""
    drivers = [driver for driver in map(load, AGENT_DRIVERS) if not driver.is_ours]
    return [program for driver in drivers if (program := program_of(driver)) is not None]


def _of_agents(environ: Mapping[str, str]) -> list[str]:
    found: list[str] = []
    for name, (variable, usual) in _HOSTS.items():
        if program_of(load(name)) is not None:
            own = _host_in(environ.get(variable, ""))
            found += [own] if own else usual
    proxy = next((host for name in _PROXIES if (host := _host_in(environ.get(name, "")))), "")
    return [proxy] if proxy and found else found


def _host_in(url: str) -> str:
    """Return HOST:PORT of an address; "" if it has none.

    >>> _host_in("http://proxy:3128/"), _host_in("https://models.lab/v1"), _host_in("nonsense")
    ('proxy:3128', 'models.lab:443', '')
    """
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return ""
    return f"{parts.hostname}:{port}" if parts.hostname and port else ""


def _checked(text: str) -> str:
    host, mark, port = text.rpartition(":")
    if not (mark and host and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise UsageError(
            WithArguments(Argument("network"), f" takes HOST:PORT or {AGENTS}, not {text!r}"),
            hint=WithArguments(Argument("network", "api.example.org:443")),
        )
    return text
