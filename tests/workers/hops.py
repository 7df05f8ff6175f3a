"""Lives on from process to process: each forks the next one and exits. All ignore INT and TERM.

Its first process exits at once with 0. Each of the others adds a byte to FILE; after 10 s, or 20,000 of them, there is
no next one.
"""

from __future__ import annotations

import os
import signal
import sys
import time

import bounded

LIFETIME_S = 10
MOST = 20_000


def main() -> None:
    """Fork the first of them, and end."""
    file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    bounded.ignore(signal.SIGINT, signal.SIGTERM)
    ends_at = time.monotonic() + LIFETIME_S
    for _ in range(MOST):
        if os.fork():
            os._exit(0)
        os.write(file, b".")
        if time.monotonic() > ends_at:
            return


if __name__ == "__main__":
    main()
