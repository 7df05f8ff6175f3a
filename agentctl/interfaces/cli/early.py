"""The program of an agent's own server: `python -P -S .../cli/early.py --tools=DIALECT --call-seconds=N [--offer]`.

It is `agentctl mcp`, but answers before most modules are loaded, because an agent's program waits for it. `-S`:
installed packages are found only once they are needed; `-P`: nothing in the project's folder is taken for a module.
"""

import os
import sys

if __name__ == "__main__":
    sys.path.append(os.path.abspath(__file__).rsplit("/", 4)[0])
    from agentctl.encoding import ensure_utf8

    ensure_utf8()
    from agentctl.domain.agent.own_tools import OFFER
    from agentctl.interfaces.mcp.entry import Serving, load_site, open_early, print_offer, serving_of

    words = [word for word in sys.argv[1:] if word != OFFER]
    if "AGENTCTL_LAUNCH" in os.environ:  # On a node: the whole server is at the head.
        from agentctl.interfaces.cli.app import run

        os._exit(0) if OFFER in sys.argv else run(["mcp", *words])
    serving = serving_of(words) or Serving()
    if OFFER in sys.argv:
        print_offer(serving)
        sys.stdout.flush()
        os._exit(0)
    begun = open_early(serving)
    if begun is None:
        os._exit(0)
    load_site()
    from agentctl.interfaces.cli.app import run

    run(["mcp", *words], begun)
