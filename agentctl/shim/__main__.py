"""The shim's program: `python -I -S .../shim/__main__.py ROOT-TASK-DIRECTORY`, or `--bury AGENT-FOLDER`.

With `--wake ENVIRONMENTS ROOT-TASK-DIRECTORY` it starts those who wait for an account when that may be used again.

Started by `supervision.launching` with an empty environment and three descriptors; the directory on its command line
lets a sweep verify that it is a shim.
"""

from __future__ import annotations

import gc
import os
import sys

if __name__ == "__main__":
    # -I -S: no site-packages, no script folder; only the standard library and this package are wanted.
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    gc.disable()
    from agentctl.shim.loop import main

    # What is loaded stays: never looked at again, and not written to (copied, that is) in every forked child.
    gc.freeze()
    gc.enable()
    if "--bury" in sys.argv:
        from agentctl.supervision.stop.undertaker import main as bury

        bury(sys.argv[-1])
    elif "--wake" in sys.argv:
        from agentctl.supervision.dispatch.waker import main as wake

        wake(*sys.argv[-2:])
    else:
        main()
