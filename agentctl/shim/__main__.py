"""The shim's program: `python -I -S .../shim/__main__.py ROOT-TASK-DIRECTORY`.

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
    main()
