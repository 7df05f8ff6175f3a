"""The program of a stand-in (`python -I -S .../on_node/__main__.py`); `--post`, `--probe`, `--trial` others."""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    sys.path.insert(0, os.path.abspath(__file__).rsplit("/", 4)[0])
    from agentctl.adapters.kept_code import keep_open
    from agentctl.encoding import ensure_utf8
    from agentctl.worker_programs.on_node.later import POST, STAND_IN

    ensure_utf8()
    what, folder = (sys.argv[1], sys.argv[-1]) if len(sys.argv) > 2 else ("", "")
    if what == "--post":
        from agentctl.worker_programs.on_node.post import main as post

        keep_open(POST)
        code = post(folder)
    elif what == "--probe":
        from agentctl.worker_programs.on_node.node_probe import main as probe

        code = probe(folder)
    elif what == "--trial":
        from agentctl.worker_programs.on_node.filesystem_trial import main as trial

        code = trial(folder)
    elif what == "--second":
        from agentctl.worker_programs.on_node.filesystem_trial import second

        code = second(folder)
    else:
        from agentctl.worker_programs.on_node.stand_in import main

        keep_open(STAND_IN)
        code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
