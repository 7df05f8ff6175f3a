"""All facts about Codex: how it is started, what it asks, what it prints, and why it ended."""

from __future__ import annotations

from agentctl.drivers.codex.driver import DRIVER

__all__ = ["DRIVER"]
