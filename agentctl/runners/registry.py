"""Which runners there are: those that come with agentctl, and those that other packages declare."""

from __future__ import annotations

from agentctl.domain.placement import LOCAL
from agentctl.errors import NotFound
from agentctl.parts import part
from agentctl.runners.runner import Runner

GROUP = "agentctl.runners"
_OWN = {"slurm": "agentctl.runners.slurm", "loopback": "agentctl.runners.loopback"}


def load(name: str) -> Runner:
    """Return a runner by its name.

    Raises:
        NotFound: There is none of this name.
    """
    if name in _OWN:
        runner: Runner = part(_OWN[name], "RUNNER")
        return runner
    from importlib.metadata import entry_points  # 10 ms: only for runners of other packages.

    for one in entry_points(group=GROUP, name=name):
        found: Runner = one.load()
        return found
    raise NotFound(f"there is no runner {name!r}", hint=f"known: {', '.join(names())}")


def names() -> list[str]:
    """Return the names of all runners."""
    from importlib.metadata import entry_points

    return [LOCAL, *sorted({*_OWN, *(one.name for one in entry_points(group=GROUP))})]
