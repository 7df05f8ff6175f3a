"""Claude Code behind its adapter: as loose as by itself, and with nobody's hooks where anything is to be held."""

from __future__ import annotations

from tests.agents.loose.claude import KINDS, guarded, loosen, steps, tool

__all__ = ["GUARDS", "KINDS", "OWN_KINDS", "guarded", "loosen", "steps", "tool"]

GUARDS = ("rule",)
#: In plan mode a model decides, if nothing is set against that.
OWN_KINDS = tuple(kind for kind in KINDS if kind != "after a change of mode")
