"""The agent program of the driver `llm`: `python -E -P -S .../plain_model/__main__.py`, run by its host alone."""

from __future__ import annotations

import gc
import os
import sys

if __name__ == "__main__":
    # -S: installed packages are found only once a tool needs them.
    sys.path.insert(0, os.path.abspath(__file__).rsplit("/", 4)[0])
    from agentctl.encoding import ensure_utf8

    ensure_utf8()
    gc.disable()
    from agentctl.worker_programs.plain_model.main_loop import main

    gc.freeze()
    gc.enable()
    code = main()
    os._exit(code)  # Everything is on disk.
