"""Stand-ins for names of `typing`: loading `typing` would cost each shim half a megabyte.

Named tuples do not compile their annotations either: with those of `typing`, starting an agent takes 4 ms longer.

A type checker sees `typing` itself.
"""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NamedTuple, NoReturn, Protocol  # noqa: TID251
else:
    # Annotations are never evaluated; an alias such as dict[str, Any] takes any object.
    Any = NoReturn = object
    # Nobody asks at run time whether something has the methods of a protocol.
    Protocol = object

    class _Declared(type):
        """Turns a class that declares fields into a named tuple."""

        def __new__(cls, name, bases, namespace):
            if not bases:
                return super().__new__(cls, name, bases, namespace)
            fields = list(namespace.get("__annotations__", ()))
            optional = [field for field in fields if field in namespace]
            if optional != fields[len(fields) - len(optional) :]:
                raise TypeError(f"{name}: a field without a default follows one with a default")
            defaults = [namespace[field] for field in optional]
            made = namedtuple(name, fields, defaults=defaults, module=namespace["__module__"])
            for key, value in namespace.items():
                if key not in fields and key not in ("__module__", "__qualname__", "__annotations__"):
                    setattr(made, key, value)
            return made

    class NamedTuple(metaclass=_Declared):
        """Works like `typing.NamedTuple`."""


__all__ = ["TYPE_CHECKING", "Any", "NamedTuple", "NoReturn", "Protocol"]
