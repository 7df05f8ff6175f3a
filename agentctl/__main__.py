"""`python -m agentctl`."""

from __future__ import annotations

from agentctl.cli.app import run

run()
