"""What is taken from `typing` without loading it, which would cost each shim half a megabyte.

Nor does a named tuple compile its annotations: with those of typing a command that starts an agent takes 4 ms longer.

A type checker sees `typing` itself.
"""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NamedTuple, NoReturn, NotRequired, TypedDict  # noqa: TID251

    from typing_extensions import ReadOnly
else:
    # Annotations are never evaluated; in an alias such as dict[str, Any] anything may stand.
    Any = NoReturn = NotRequired = ReadOnly = object
    #: A literal of such a type is a dict all the same.
    TypedDict = dict

    class _Declared(type):
        """Makes a named tuple of a class that declares its fields."""

        def __new__(cls, name, bases, namespace):
            if not bases:
                return super().__new__(cls, name, bases, namespace)
            fields = list(namespace.get("__annotations__", ()))
            optional = [field for field in fields if field in namespace]
            if optional != fields[len(fields) - len(optional) :]:
                raise TypeError(f"{name}: a field without a default stands behind one with")
            defaults = [namespace[field] for field in optional]
            made = namedtuple(name, fields, defaults=defaults, module=namespace["__module__"])
            for key, value in namespace.items():
                if key not in fields and key not in ("__module__", "__qualname__", "__annotations__"):
                    setattr(made, key, value)
            return made

    class NamedTuple(metaclass=_Declared):
        """As `typing.NamedTuple`."""


__all__ = ["TYPE_CHECKING", "Any", "NamedTuple", "NoReturn", "NotRequired", "ReadOnly", "TypedDict"]
