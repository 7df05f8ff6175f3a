"""Reads YAML that people write, strictly; errors name file and line.

The only module that imports yaml, which takes as long as all the rest of a short command: neither the shim nor a hot
path may import it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from agentctl.adapters.document import Document
from agentctl.errors import UsageError

#: More than any honest file of ours, but not enough to make a parser in pure Python hang.
_SIZE_LIMIT = 1 << 20


class _Loader(yaml.SafeLoader):
    """Safe YAML without two harmful features: duplicate keys, and aliases (which YAML bombs consist of)."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, "aliases are not allowed here", mark)
        return super().compose_node(parent, index)

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError, TypeError) as error:  # `!!int x`, `!!bool x`, `!!timestamp x`
            problem = f"{node.value!r} is not of type {node.tag.rpartition(':')[2]}"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from error

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        if not isinstance(node, yaml.MappingNode):
            raise yaml.constructor.ConstructorError(None, None, "a mapping was expected", node.start_mark)
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} is not text", key_node.start_mark)
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} is given twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


# A time is text to us: it is shown, never calculated with.
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in rules if not tag.endswith(":timestamp")]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def parse_yaml(path: Path, data: bytes) -> Document:
    """Return the mapping that `data` holds.

    Raises:
        UsageError: It is not a YAML mapping; the message names file, line and, where there is one, the key.
    """
    if len(data) > _SIZE_LIMIT:
        raise UsageError(f"{path} is too large: {len(data)} bytes", hint=f"at most {_SIZE_LIMIT} are read")
    try:
        loader = _Loader(_decoded(path, data))
        try:
            node = loader.get_single_node()
            value = loader.construct_document(node) if node is not None else {}
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        problem = " ".join(filter(None, (error.context, error.problem)))
        raise UsageError(f"{where}: {problem}", hint="fix that line; nothing was changed") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        line = data[: getattr(error, "position", 0)].count(b"\n") + 1
        raise UsageError(f"{path}:{line}: {' '.join(str(error).split())[:300]}", hint="is it YAML in UTF-8?") from error
    if not isinstance(value, dict):
        problem = f"it must be a mapping (key: value), not {type(value).__name__}"
        raise UsageError(f"{path}:1: {problem}", hint="fix that line; nothing was changed")
    return Document(path, value, dict(_lines_of(node, ())))


def _decoded(path: Path, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        problem = f"{path}:{line}: byte {data[error.start]:#04x} is not UTF-8"
        raise UsageError(problem, hint="save the file as UTF-8; nothing was changed") from error


def _lines_of(node: Any, above: tuple[str, ...]) -> list[tuple[tuple[str, ...], int]]:
    found = []
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            found.append(((*above, key.value), key.start_mark.line + 1))
            found += _lines_of(value, (*above, key.value))
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            found.append(((*above, str(index)), item.start_mark.line + 1))
            found += _lines_of(item, (*above, str(index)))
    return found
