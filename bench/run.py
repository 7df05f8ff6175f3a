"""`make bench`: see `python bench/run.py --help`."""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    # Python puts a script's own folder first on the path; the modules here belong to the package `bench`.
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    from bench.program import main

    sys.exit(main())
