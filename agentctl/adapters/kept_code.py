"""Keeps the compiled code of modules open that a long-lived program loads later, if at all.

An upgrade replaces the files of a package under the programs that run: what is loaded then is gone, half there, or of
another version than what is loaded already. A file that is open stays as it was, and takes no memory of the process
(decision 36). The standard library is not kept: it is the interpreter's, and no upgrade of agentctl touches it.
"""

from __future__ import annotations

import marshal
import os
import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import MAGIC_NUMBER
from collections.abc import Mapping, Sequence
from types import ModuleType

from agentctl.lean import NamedTuple

#: Where fewer descriptors are allowed, none is spent on this: the modules are loaded at once.
_ENOUGH_DESCRIPTORS = 512
#: The head of a compiled file: magic number, flags, then time and size of its source (PEP 552).
_HEAD, _WORD = 16, 4


def keep_open(later: Mapping[str, Sequence[str]]) -> None:
    """Make sure that modules can be loaded until this program ends, whatever becomes of their files.

    One whose compiled file is not there, or not of its source, is loaded at once.

    Args:
        later: The modules, by their packages, which are kept as well.
    """
    names = {f"{package}.{module}": False for package, modules in later.items() for module in modules}
    missing = {name: is_package for name, is_package in _with_packages(names).items() if name not in sys.modules}
    has_room = os.sysconf("SC_OPEN_MAX") >= _ENOUGH_DESCRIPTORS
    kept = {name: found for name, is_package in missing.items() if has_room and (found := _opened(name, is_package))}
    sys.meta_path.insert(0, _KeptCode(kept))
    for name in missing:
        if name not in kept:
            _load(name)
    sys.path_importer_cache.clear()  # What is in the folders: 80 KB, and hardly ever needed from now on.


def _load(name: str) -> None:
    try:
        __import__(name)
    except ModuleNotFoundError as error:  # A library that is not there now will not be there later either.
        if (error.name or "").partition(".")[0] == name.partition(".")[0]:
            raise


def _with_packages(names: Mapping[str, bool]) -> dict[str, bool]:
    """Return the names and those of their packages, and of each whether it is a package."""
    packages = {name[:at]: True for name in names for at, character in enumerate(name) if character == "."}
    return {**packages, **names}


class _KeptModule(NamedTuple):
    """A module that is kept."""

    #: Its compiled file, open.
    fd: int
    source: str
    is_package: bool


class _KeptCode:
    """Finds the modules that are kept, and loads them from there."""

    def __init__(self, kept: dict[str, _KeptModule]) -> None:
        self._kept = kept

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        """Return where a kept module is loaded from; None for any other (importlib.abc.MetaPathFinder)."""
        kept = self._kept.get(name)
        if kept is None:
            return None
        spec = ModuleSpec(name, self, origin=kept.source, is_package=kept.is_package)  # type: ignore[arg-type]
        spec.has_location = True
        if kept.is_package:
            spec.submodule_search_locations = [os.path.dirname(kept.source)]
        return spec

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave it to the interpreter to make the module (importlib.abc.Loader)."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the code of a module, whose file is not needed any more then (importlib.abc.Loader)."""
        fd = self._kept[module.__name__].fd
        code = marshal.loads(os.pread(fd, os.fstat(fd).st_size - _HEAD, _HEAD))  # noqa: S302 - as the interpreter does.
        exec(code, module.__dict__)  # noqa: S102 - it is a module of ours.
        del self._kept[module.__name__]
        os.close(fd)


def _opened(name: str, is_package: bool) -> _KeptModule | None:
    """Open the compiled file of a module; None if it cannot be used."""
    top, *parts = name.split(".")
    *folders, leaf = [os.path.dirname(sys.modules[top].__file__ or ""), *parts, *(["__init__"] if is_package else [])]
    folder = "/".join(folders)
    source, fd = f"{folder}/{leaf}.py", None
    try:
        fd = os.open(f"{folder}/__pycache__/{leaf}.{sys.implementation.cache_tag}.pyc", os.O_RDONLY | os.O_CLOEXEC)
        if os.pread(fd, _HEAD, 0) == _head_for(os.stat(source)):
            return _KeptModule(fd, source, is_package)
    except OSError:
        pass
    if fd is not None:
        os.close(fd)
    return None


def _head_for(source: os.stat_result) -> bytes:
    """Return how the compiled file of a source begins, if it is of this interpreter and of the source as it is now."""
    words = (0, int(source.st_mtime), source.st_size)
    return MAGIC_NUMBER + b"".join((word & 0xFFFFFFFF).to_bytes(_WORD, "little") for word in words)
