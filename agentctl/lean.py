"""Stand-ins for names of `typing`: loading `typing` would cost each shim half a megabyte.

Named tuples do not compile their annotations either: with those of `typing`, starting an agent takes 4 ms longer.

A type checker sees `typing` itself.
"""

from __future__ import annotations

from collections import _tuplegetter  # type: ignore[attr-defined]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NamedTuple, NoReturn, Protocol  # noqa: TID251
    from typing import Generic as Generic  # noqa: PLC0414

    from typing_extensions import ReadOnly as ReadOnly  # noqa: PLC0414
    from typing_extensions import TypeVar as TypeVar  # noqa: PLC0414
else:
    # Annotations are never evaluated; an alias such as dict[str, Any] takes any object.
    Any = NoReturn = object
    # Nobody asks at run time whether something has the methods of a protocol.
    Protocol = object

    class Generic:
        """A class that is generic for a type checker alone."""

        def __class_getitem__(cls, kinds):
            return cls

    class ReadOnly:
        """A key that a type checker lets nobody change; a program that asks for its type gets the type alone."""

        def __class_getitem__(cls, kind):
            return kind

    def TypeVar(name, **_):  # noqa: N802
        return name

    class _Declared(type):
        """Turns a class that declares fields into a named tuple."""

        def __new__(cls, name, bases, namespace):
            if not bases:
                return super().__new__(cls, name, bases, namespace)
            fields = tuple(namespace.get("__annotations__", ()))
            optional = tuple(field for field in fields if field in namespace)
            if optional != fields[len(fields) - len(optional) :]:
                raise TypeError(f"{name}: a field without a default follows one with a default")
            defaults = {field: namespace[field] for field in optional}
            getters = {field: _tuplegetter(index, None) for index, field in enumerate(fields)}
            own = {
                **namespace, **getters,
                "__slots__": (), "__match_args__": fields, "_fields": fields, "_field_defaults": defaults,
            }  # fmt: skip
            return type(name, (_NamedTuple,), own)

    class _NamedTuple(tuple):
        """What all named tuples have in common: `collections.namedtuple` makes it anew for each, 5 KB and 0.1 ms."""

        __slots__ = ()

        def __new__(cls, *args, **kwargs):
            """Make the first one of a class, and the function that makes the others: many classes are never used."""
            declared = next(one for one in cls.__mro__ if "_fields" in one.__dict__)
            declared.__new__ = _maker(declared._fields, declared._field_defaults)
            return declared.__new__(cls, *args, **kwargs)

        @classmethod
        def _make(cls, iterable):
            made = tuple.__new__(cls, iterable)
            if len(made) != len(cls._fields):
                raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
            return made

        def _replace(self, /, **kwargs):
            made = self._make(map(kwargs.pop, self._fields, self))
            if kwargs:
                raise ValueError(f"Got unexpected field names: {list(kwargs)!r}")
            return made

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self):
            return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._asdict().items())})"

        def __getnewargs__(self):
            return tuple(self)

    def _maker(fields, defaults):
        """Compile what makes an instance, as `collections.namedtuple` does: by far the fastest way."""
        names = ", ".join(fields)
        code = f"lambda _cls, {names}: _new(_cls, ({names}{',' if fields else ''}))"
        made = eval(code, {"_new": tuple.__new__, "__builtins__": {}})  # noqa: S307 - names of fields.
        made.__name__ = "__new__"
        made.__defaults__ = tuple(defaults.values())
        return made

    class NamedTuple(metaclass=_Declared):
        """Works like `typing.NamedTuple`."""


__all__ = ["TYPE_CHECKING", "Any", "NamedTuple", "NoReturn", "Protocol"]
