"""The program of a worker that is an agent: `python -I -S .../driving/__main__.py DRIVER`.

The worker's folder is in the environment, as for every worker.
"""

from __future__ import annotations

import gc
import os
import sys

if __name__ == "__main__":
    # -I -S: no site-packages, no script folder; only the standard library and this package are wanted.
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    from agentctl.encoding import ensure_utf8

    ensure_utf8()
    # asyncio then finds no `ssl`, as in a Python without OpenSSL: saves 8 ms and 3 MB per agent.
    sys.modules["ssl"] = None  # type: ignore[assignment]
    gc.disable()
    from agentctl.driving.running import main

    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # Everything is on disk; the interpreter's cleanup at its end would take 10 ms.
