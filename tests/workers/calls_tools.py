"""Calls our tools, as an agent would, and prints each answer as a line of JSON.

calls_tools.py DIALECT CALLS: CALLS is a JSON list of [name, arguments, how long the call may take], or `-` for one on
standard input; the first line tells what is offered.
"""

from __future__ import annotations

import json
import sys

from agentctl.tools.definition import Call
from agentctl.tools.registry import Toolbox
from agentctl.tools.scope import ScopeSource


def main() -> None:
    """Make the calls."""
    toolbox = Toolbox(ScopeSource(), sys.argv[1])
    print(json.dumps({one.tool.name: one.description for one in toolbox.offered()}), flush=True)
    for name, given, limit_s in json.loads(sys.stdin.read() if sys.argv[2] == "-" else sys.argv[2]):
        print(json.dumps(toolbox.call(name, given, Call(limit_s=limit_s))), flush=True)


main()
