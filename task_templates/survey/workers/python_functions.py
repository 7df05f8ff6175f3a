"""Functions of a Python file, from its syntax tree."""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass
from typing import NamedTuple

from measures import Measure

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_EMPTY = (ast.expr_context, ast.operator, ast.boolop, ast.unaryop, ast.cmpop)
_LEAVES = frozenset([ast.Name, ast.Constant, *(kind for base in _EMPTY for kind in base.__subclasses__())])
"Most of the nodes of a tree, and nothing below them."
_BLOCKS = (
    ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match,
)  # fmt: skip
_BRANCHES = (
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.IfExp,
    ast.ExceptHandler,
    ast.match_case,
    ast.comprehension,
)

NOT_PARSED = (SyntaxError, ValueError, RecursionError, MemoryError)
"What `ast.parse` raises for text that is no Python of today; for nesting without end the last two."


def parse(text: str) -> ast.Module:
    """Parse without the file's own warnings (invalid escapes and the like) on stderr."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def measure(text: str) -> list[Measure]:
    """All functions, methods and inner functions, by their qualified names.

    Raises:
        NOT_PARSED: the text is not Python that this interpreter understands.
    """
    found: list[_Function] = []
    pending = [_Place(node=parse(text), prefix="", function=None, depth=0)]
    while pending:  # no recursion: generated code nests deeper than the interpreter's stack
        place = pending.pop()
        for child in ast.iter_child_nodes(place.node):
            if type(child) in _LEAVES:
                continue
            if isinstance(child, _FUNCTIONS):
                function = _Function(child, place.prefix + child.name)
                found.append(function)
                pending.append(_Place(child, f"{place.prefix}{child.name}.", function, 0))
            elif isinstance(child, ast.ClassDef):
                pending.append(_Place(child, f"{place.prefix}{child.name}.", None, 0))
            else:
                pending.append(_entered(child, place))
    return sorted((one.measured() for one in found), key=lambda one: one.line)


class _Place(NamedTuple):
    """A node of the tree, and where it stands."""

    node: ast.AST
    prefix: str
    function: _Function | None
    depth: int


@dataclass(slots=True)
class _Function:
    node: ast.FunctionDef | ast.AsyncFunctionDef
    name: str
    nesting: int = 0
    branches: int = 0

    def measured(self) -> Measure:
        first, last = self.node.lineno, self.node.end_lineno or self.node.lineno
        return Measure(
            name=self.name,
            line=first,
            lines=last - first + 1,
            nesting=self.nesting,
            branches=self.branches,
            method="ast",
        )


def _entered(node: ast.AST, outside: _Place) -> _Place:
    """Count the node for its function; returns the place its children stand in."""
    # An `elif` is an `if` in the tree, but no level deeper for who reads it.
    deeper = isinstance(node, _BLOCKS) and not _is_elif(outside.node, node)
    depth = outside.depth + deeper
    function = outside.function
    if function is not None:
        function.nesting = max(function.nesting, depth)
        if isinstance(node, _BRANCHES):
            function.branches += 1
        elif isinstance(node, ast.BoolOp):
            function.branches += len(node.values) - 1
    return _Place(node, outside.prefix, function, depth)


def _is_elif(parent: ast.AST, child: ast.AST) -> bool:
    return (
        isinstance(parent, ast.If)
        and isinstance(child, ast.If)
        and parent.orelse == [child]
        and child.col_offset == parent.col_offset
    )
