"""The shim's program: `python -I -S .../shim/__main__.py ROOT-TASK-DIRECTORY`, or `--bury AGENT-FOLDER`.

With `--bury` it is an undertaker. With `--wake ENVIRONMENTS ROOT-TASK-DIRECTORY` it is a waker: it starts the workers
that wait for an account when the account may be used again. With `--tell` and the same two it is a sender: it tells the
person what happened. A shim is started by `supervision.dispatch.launching` with an empty environment and two
descriptors. The directory on its command line lets a sweep verify that it is a shim.
"""

from __future__ import annotations

import gc
import os
import sys

if __name__ == "__main__":
    # -I -S leave out site-packages and the script's folder: only the standard library and this package are wanted.
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    gc.disable()
    from agentctl.adapters.kept_code import keep_open
    from agentctl.shim.later import UNDERTAKER, WAKER
    from agentctl.shim.loop import main

    # Modules loaded so far are never collected: no scans of them, and no writes that copy pages in each forked child.
    # What they only needed while they were loaded goes before that: 50 KB, for 1 ms.
    gc.collect()
    gc.freeze()
    gc.enable()
    if "--bury" in sys.argv:
        from agentctl.supervision.stop.undertaker import main as bury

        bury(sys.argv[-1], lambda: keep_open(UNDERTAKER))
    elif "--wake" in sys.argv:
        from agentctl.supervision.dispatch.waker import main as wake

        folder, root = sys.argv[-2:]
        wake(folder, root, lambda: keep_open(WAKER))
    elif "--tell" in sys.argv:
        from agentctl.supervision.notify.sender import main as tell

        tell(*sys.argv[-2:])
    else:
        main()
