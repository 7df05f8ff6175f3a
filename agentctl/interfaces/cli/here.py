"""The far end on this machine, as `--hosts` starts it for `here`: `python -P .../cli/here.py`.

`-P`: nothing in the project's folder is taken for a module.
"""

import os
import sys

if __name__ == "__main__":
    sys.path.append(os.path.abspath(__file__).rsplit("/", 4)[0])
    from agentctl.interfaces.cli.app import run

    run(["_far"])
