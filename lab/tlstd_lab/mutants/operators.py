"""The mutants of one source text: each replaces the text of one syntax node, and no line moves."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

COMPARISONS = {
    **{"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="},
    **{"is": "is not", "is not": "is", "in": "not in", "not in": "in"},
}
SIGNS = {"+": "-", "-": "+", "*": "/", "/": "*", "//": "*", "+=": "-=", "-=": "+=", "*=": "/=", "/=": "*="}
JUNCTIONS = {"and": "or", "or": "and"}

LEFT_OUT = {"annotation", "returns", "decorator_list"}
"""Fields of nodes that say nothing about what is computed."""
TEXTS = (ast.Import, ast.ImportFrom, ast.Assert, ast.Raise, ast.JoinedStr)
"""Nodes below which nothing is changed: imports, checks for the type checker, and messages."""
LISTS = {"__all__", "__slots__"}


@dataclass(frozen=True)
class Change:
    """One operator at one node: the bytes of the source that it replaces, and those that take their place."""

    operator: str
    line: int
    start: int
    old: bytes
    new: bytes

    def fits(self, source: bytes) -> bool:
        """Whether the mutated source is Python: a statement that is dropped may share its line with others."""
        try:
            ast.parse(self.apply(source))
        except SyntaxError:
            return False
        return True

    def apply(self, source: bytes) -> bytes:
        """The mutated source."""
        return source[: self.start] + self.new + source[self.start + len(self.old) :]


def changes(source: bytes) -> list[Change]:
    """All mutants of a source text, in the order of their places."""
    text = _Text(source)
    found = {change for node in _nodes(ast.parse(source)) for change in text.changes(node)}
    return sorted(found, key=lambda one: (one.start, one.operator, one.new))


def _nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The node and those below it that may be changed."""
    yield node
    if isinstance(node, TEXTS) or (isinstance(node, ast.Call) and ast.unparse(node.func) == "warnings.warn"):
        return
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if name not in LEFT_OUT and isinstance(child, ast.AST) and not _is_left_out(child):
                yield from _nodes(child)


def _is_left_out(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING"
    return isinstance(node, ast.Assign) and any(ast.unparse(target) in LISTS for target in node.targets)


class _Text:
    """A source text, and the changes of one of its nodes."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.lines = [0]  # columns of nodes count bytes, as these do
        for line in source.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))

    def start(self, node: ast.expr | ast.stmt) -> int:
        return self.lines[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.lines[node.end_lineno - 1] + node.end_col_offset

    def of(self, node: ast.expr | ast.stmt) -> bytes:
        return self.source[self.start(node) : self.end(node)]

    def change(self, operator: str, node: ast.expr | ast.stmt, new: bytes) -> Change:
        return Change(operator, node.lineno, self.start(node), self.of(node), new)

    def swapped(
        self, operator: str, node: ast.expr | ast.stmt, pairs: list[Pair], table: dict[str, str]
    ) -> list[Change]:
        """The change of the tokens between these pairs of operands, unless one of them is not in the table."""
        new = self.of(node)
        for left, right in reversed(pairs):
            begin, end = self.end(left), self.start(right)
            token = self.source[begin:end].strip(b" ()\n\\").decode()
            if token not in table:
                return []
            between = self.source[begin:end].replace(token.encode(), table[token].encode())
            new = new[: begin - self.start(node)] + between + new[end - self.start(node) :]
        return [self.change(operator, node, new)]

    def changes(self, node: ast.AST) -> Iterator[Change]:
        match node:
            case ast.Compare():
                for pair in pairwise([node.left, *node.comparators]):
                    yield from self.swapped("comparison", node, [pair], COMPARISONS)
            case ast.BoolOp():
                yield from self.swapped("and/or", node, list(pairwise(node.values)), JUNCTIONS)
            case ast.BinOp() if not any(_is_text(side) for side in (node.left, node.right)):
                yield from self.swapped("sign", node, [(node.left, node.right)], SIGNS)
            case ast.UnaryOp(op=ast.USub()):
                yield self.change("sign", node, self.of(node.operand))
            case ast.UnaryOp(op=ast.Not()):
                yield self.change("negated condition", node, b"(" + self.of(node.operand) + b")")
            case ast.Constant(value=bool() | int() | float() as value):
                yield self.change("constant", node, _other(value).encode())
            case ast.Slice():
                if node.lower:
                    yield from self.moved(node.lower, b" + 1")
                if node.upper:
                    yield from self.moved(node.upper, b" - 1")
            case ast.Call(func=ast.Name("range")) if not isinstance(node.args[-1], ast.Starred):
                yield from self.moved(node.args[-1 if len(node.args) < 3 else 1], b" - 1")
        match node:
            case ast.If() | ast.IfExp() if not isinstance(node.test, ast.UnaryOp):
                yield self.change("negated condition", node.test, b"not (" + self.of(node.test) + b")")
            case ast.AugAssign():
                yield from self.swapped("sign", node, [(node.target, node.value)], SIGNS)
        if _is_droppable(node):
            assert isinstance(node, ast.stmt)
            yield self.change("dropped statement", node, b"pass" + b"\n" * self.of(node).count(b"\n"))

    def moved(self, node: ast.expr, by: bytes) -> Iterator[Change]:
        if not isinstance(node, ast.Constant):  # constants have their own operator
            yield self.change("off by one", node, b"(" + self.of(node) + b")" + by)


Pair = tuple[ast.expr, ast.expr]


def _other(value: bool | float) -> str:
    if isinstance(value, bool):
        return str(not value)
    return str(value + 1) if isinstance(value, int) or value == 0.0 else repr(2.0 * value)


def _is_text(node: ast.AST) -> bool:
    """Whether an operand is known to be no number, so that another sign would only be an error."""
    return isinstance(node, ast.JoinedStr | ast.List | ast.Tuple) or (
        isinstance(node, ast.Constant) and not isinstance(node.value, int | float)
    )


def _is_droppable(node: ast.AST) -> bool:
    match node:
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Break() | ast.Delete():
            return True
        case ast.Assign():
            return all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets)
    return False
