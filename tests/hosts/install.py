"""Gets what the tests of other hosts need: `python -m tests.hosts.install`. It is the distribution's sshd and ssh."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.agents.install import Unavailable, run_installer

_PLACES = ("/usr/sbin/sshd", "/usr/local/sbin/sshd", "/sbin/sshd")
_PACKAGES = ("openssh-server", "openssh-client")


def sshd() -> Path | None:
    """Return the path of sshd, which has to be an absolute one (sshd(8)); None where there is none."""
    return next((Path(place) for place in (*_PLACES, shutil.which("sshd") or "") if os.access(place, os.X_OK)), None)


def is_there() -> bool:
    """Return whether all that is needed is installed."""
    return sshd() is not None and all(map(shutil.which, ("ssh", "ssh-keygen")))


def install() -> None:
    """Install what is missing.

    Raises:
        Unavailable: It cannot be had.
    """
    if is_there():
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise Unavailable(f"there is no sshd, and only root can install it: apt-get install {' '.join(_PACKAGES)}")
    get = ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=300"]
    for argv in ([*get, "update"], [*get, "install", "--yes", "--no-install-recommends", *_PACKAGES]):
        # A server of the machine itself is not wanted: where policy-rc.d or systemd would start one, it is told not to.
        run_installer(argv, f"apt-get could not install {' and '.join(_PACKAGES)}", os.environ | _QUIETLY)
    if not is_there():
        raise Unavailable("the package openssh-server of this distribution has no sshd in it")


_QUIETLY = {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}


def main() -> int:
    """Install, and say what is there."""
    try:
        install()
    except Unavailable as error:
        print(f"skipped: everything about other hosts: {error}")
        return os.EX_UNAVAILABLE
    said = subprocess.run(["ssh", "-V"], capture_output=True, text=True, timeout=30, check=False).stderr.strip()
    print(f"{said}: {sshd()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
