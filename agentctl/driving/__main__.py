"""The program of a worker that is an agent: `python -I -S .../driving/__main__.py DRIVER`.

Its folder is in the environment, as every worker's is.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    # -I -S: no site-packages, no script folder; only the standard library and this package are wanted.
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    from agentctl.driving.running import main

    sys.exit(main())
