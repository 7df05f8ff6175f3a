"""`python -m agentctl`."""

from agentctl.cli.app import run

run()
