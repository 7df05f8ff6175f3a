"""The program of a worker that is an agent: `python -I -S .../driving/__main__.py DRIVER`.

Its folder is in the environment, as every worker's is.
"""

from __future__ import annotations

import gc
import os
import sys

if __name__ == "__main__":
    # -I -S: no site-packages, no script folder; only the standard library and this package are wanted.
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    # asyncio takes its place to be empty, as in a Python without OpenSSL: 8 ms and 3 MB of each agent are not needed.
    sys.modules["ssl"] = None  # type: ignore[assignment]
    gc.disable()
    from agentctl.driving.running import main

    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # All is on disk; what an interpreter tidies up while it ends takes 10 ms.
