"""What `agentctl` and `python -m agentctl` run; where the program itself is missing in an upgrade, it says so."""

from __future__ import annotations

import sys


def run() -> None:
    """Run the program, and leave."""
    try:
        from agentctl.interfaces.cli.app import run as run_program
    except (ImportError, SyntaxError, FileNotFoundError) as error:
        # The module that has these words, `world_errors`, may be missing, too.
        sys.exit(
            f"error: agentctl is incomplete: {ascii(str(error))[1:-1]}\n"
            "hint: an upgrade may be under way: try again in a moment; if that does not help, install it again"
        )
    run_program()


if __name__ == "__main__":
    run()
