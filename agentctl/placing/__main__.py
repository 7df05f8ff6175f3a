"""The program of a stand-in (`python -I -S .../placing/__main__.py`); `--post FOLDER` makes it a post, and so on."""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    from agentctl.adapters.kept_code import keep_open
    from agentctl.encoding import ensure_utf8
    from agentctl.placing.later import POST, STAND_IN

    ensure_utf8()
    what, folder = (sys.argv[1], sys.argv[-1]) if len(sys.argv) > 2 else ("", "")
    if what == "--post":
        from agentctl.placing.post import main as post

        keep_open(POST)
        code = post(folder)
    elif what == "--probe":
        from agentctl.placing.probe import main as probe

        code = probe(folder)
    elif what == "--trial":
        from agentctl.placing.trial import main as trial

        code = trial(folder)
    elif what == "--second":
        from agentctl.placing.trial import second

        code = second(folder)
    else:
        from agentctl.placing.stand_in import main

        keep_open(STAND_IN)
        code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
