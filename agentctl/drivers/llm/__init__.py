"""All facts about plain models: our own agent program, what it is told, what it prints, and where the models are."""

from __future__ import annotations

from agentctl.drivers.llm.dialogue import DRIVER

__all__ = ["DRIVER"]
