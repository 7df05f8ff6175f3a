"""Calls functions of the C library that Python does not offer; `ctypes` itself would cost each shim 0.2 MB and 2 ms."""

from __future__ import annotations

try:
    from _ctypes import call_function, dlopen, dlsym
except ImportError:  # Another Python has only what is documented.
    import ctypes

    _NATIVE = False
else:
    _NATIVE = True

_RTLD_NOW = 2


def libc(name: str, *args: int | bytes) -> int | None:
    """Call a function that takes and returns integers; None where there is no such function."""
    if not _NATIVE:
        function = getattr(ctypes.CDLL(None), name, None)
        return None if function is None else int(function(*args))
    try:
        address = dlsym(dlopen(None, _RTLD_NOW), name)  # type: ignore[arg-type]
    except OSError:
        return None
    return int(call_function(address, args))
