"""The program of a stand-in (`python -I -S .../placing/__main__.py`), and of a post (`python -I ... --post FOLDER`)."""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    if "--post" in sys.argv:
        from agentctl.placing.post import main as post

        code = post(sys.argv[-1])
    else:
        from agentctl.placing.stand_in import main

        code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
