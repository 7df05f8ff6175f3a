"""All facts about Claude Code: how it is started, what it asks, what it prints about its work, and why it ended."""

from __future__ import annotations

from agentctl.drivers.claude.conversation import DRIVER

__all__ = ["DRIVER"]
