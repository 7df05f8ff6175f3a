"""Gets the distribution's Slurm for the tests that need a real one: `python -m tests.slurm.install`.

No service starts: each cluster of the tests runs its own daemons, in a folder of its own.

What a file system of the tests' own needs is fetched too; without it, only the tests with that are skipped. Its library
goes into the virtual environment, and not into the extra `dev`: it is of use only where FUSE is.
"""

from __future__ import annotations

import ctypes.util
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.agents.install import Unavailable, run_installer

PACKAGES = ("slurmctld", "slurmd", "slurm-client", "munge", "iproute2")
FUSE_PACKAGES = ("fuse3",)
#: One minor version, as of what other tests fetch.
FUSE_LIBRARY, FUSE_REQUIREMENT = "mfusepy", "mfusepy>=3.1,<3.2"
PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "squeue", "scancel", "sinfo", "scontrol", "ip")
#: Daemons and `ip` are there, which not every user has in PATH.
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: Debian asks this program whether a service may start.
POLICY = Path("/usr/sbin/policy-rc.d")
NOT_ALLOWED = 101


def missing_programs() -> list[str]:
    """Return the programs that are not here."""
    return [name for name in PROGRAMS if shutil.which(name, path=SYSTEM_PATH) is None]


def why_not() -> str | None:
    """Return why no cluster can run here; None where one can."""
    if sys.platform != "linux":
        return "Slurm needs Linux"
    if missing := missing_programs():
        return f"there is no {' and no '.join(missing)}"
    if os.geteuid() != 0:
        return "only root can make the namespaces in which the nodes live"
    return None


def why_no_fuse() -> str | None:
    """Return why no file system of the tests' own can be mounted here; None where one can."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "there is no /dev/fuse that may be used"
    if not _has_fuse():
        return "there is no libfuse"
    if importlib.util.find_spec(FUSE_LIBRARY) is None:
        return f"there is no {FUSE_LIBRARY}"
    return None


def _has_fuse() -> bool:
    return any(ctypes.util.find_library(name) for name in ("fuse3", "fuse"))


def install_fuse() -> None:
    """Install what a file system of the tests' own needs, where it can run.

    Raises:
        Unavailable: Something cannot be had.
    """
    if Path("/dev/fuse").exists():
        if not _has_fuse():
            _install_packages(FUSE_PACKAGES, "libfuse")
        if importlib.util.find_spec(FUSE_LIBRARY) is None:
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            _run([*pip, FUSE_REQUIREMENT], f"pip could not install {FUSE_REQUIREMENT}")
            importlib.invalidate_caches()
    if (reason := why_no_fuse()) is not None:
        raise Unavailable(reason)


def install() -> None:
    """Install what is missing.

    Raises:
        Unavailable: Something cannot be had.
    """
    if sys.platform == "linux" and missing_programs():
        _install_packages(PACKAGES, "Slurm")
    if (reason := why_not()) is not None:
        raise Unavailable(reason)


def _install_packages(packages: tuple[str, ...], what: str) -> None:
    names = " ".join(packages)
    if os.geteuid() != 0:
        raise Unavailable(f"there is no {what}, and only root can install it: apt-get install {names}")
    if shutil.which("apt-get") is None:
        raise Unavailable(f"there is neither {what} nor apt-get, which could install it")
    failure = f"apt-get could not install {names}"
    get = ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=300"]
    with _no_service_starts():
        _run([*get, "update"], failure)
        _run([*get, "install", "--yes", "--no-install-recommends", *packages], failure)


@contextmanager
def _no_service_starts() -> Iterator[None]:
    """Forbid services to start meanwhile; somebody's own policy stays what it is."""
    try:
        file = os.open(POLICY, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o755)
    except FileExistsError:
        yield
        return
    try:
        with os.fdopen(file, "w", encoding="ascii") as policy:
            policy.write(f"#!/bin/sh\nexit {NOT_ALLOWED}\n")
        yield
    finally:
        POLICY.unlink()


def _run(argv: list[str], failure: str) -> None:
    print(f"running {' '.join(argv)}", file=sys.stderr, flush=True)
    run_installer(argv, failure, os.environ | {"DEBIAN_FRONTEND": "noninteractive"})


def version() -> str:
    """Return what Slurm says of itself."""
    controller = shutil.which("slurmctld", path=SYSTEM_PATH)
    assert controller is not None
    return subprocess.run([controller, "-V"], capture_output=True, text=True, timeout=30, check=True).stdout.strip()


def main() -> int:
    """Install, and say what is there."""
    try:
        install()
    except Unavailable as error:
        print(f"skipped: everything about a real Slurm: {error}")
        return os.EX_UNAVAILABLE
    print(version())
    try:
        install_fuse()
    except Unavailable as error:
        print(f"skipped: a file system that shows late what others do: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
