"""The one Jinja2 environment of the library, hardened; imported when the first template is rendered, not before.

A template reads plain data (`base/templates/plain_data.py`) and writes text. It reaches no object of Python, calls nothing but a few
methods of texts, lists and dicts, includes no other template, and stops at the limits of `base/templates/jinja_work.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import BuiltinMethodType, MethodType
from typing import Any, Final, cast

from jinja2 import StrictUndefined, Template, TemplateSyntaxError, Undefined, UndefinedError, nodes, pass_context
from jinja2.exceptions import SecurityError
from jinja2.meta import find_undeclared_variables
from jinja2.runtime import Context, LoopContext, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from SimpleLLMFunc.base.templates.jinja_rules import (
    METHODS,
    check_method,
    check_operator,
    filters,
    number_range,
    tests,
    written,
)
from SimpleLLMFunc.base.templates.jinja_work import TooMuch, charge, checked, items_of, settled

__all__ = ["Compiled", "MissingName", "SecurityError", "TemplateSyntaxError", "UndefinedError", "compiled"]

MAX_SOURCE: Final = 1 << 18
"""Characters of a template's source."""

MAX_NODES: Final = 20_000
"""Names, constants, operators and statements in it; about a second to compile."""


class MissingName(UndefinedError):
    """A name, or a part of a value, that is not there; `.name` is it."""

    def __init__(self, message: str | None = None, name: str = "") -> None:
        super().__init__(message)
        self.name = name


class _Missing(StrictUndefined):
    """What is not there; every use but ``is defined`` and ``default`` is an error that knows the name."""

    __slots__ = ()

    def __init__(self, hint: str | None = None, obj: Any = None, name: str | None = None, exc: Any = None) -> None:
        def missing(message: str) -> Exception:
            return MissingName(message, "" if name is None else str(name))

        keywords = {} if obj is None else {"obj": obj}
        super().__init__(hint, name=name, exc=exc or missing, **keywords)  # type: ignore[arg-type]  # it is only called


class _Environment(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        # By exact type: a subclass may have given a method another meaning.
        allowed = METHODS.get(type(obj))
        if allowed is None:
            return _is_group(obj) and attr in {"grouper", "list"}
        return attr in allowed and super().is_safe_attribute(obj, attr, value)

    def is_safe_callable(self, obj: Any) -> bool:
        if type(obj) in {Macro, LoopContext} or obj is number_range:
            return True
        if isinstance(obj, (BuiltinMethodType, MethodType)):
            return obj.__name__ in METHODS.get(type(obj.__self__), ())
        return False

    def wrap_str_format(self, value: Any) -> None:  # noqa: ARG002 - it is not wrapped but refused, like any other
        return None

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return an attribute, or an item of a dict: ``d.update`` is the item, no template calls the method."""
        if isinstance(obj, Undefined):
            str(obj)  # names what is missing; otherwise a private attribute of ours would be the complaint
        if type(obj) is dict and attribute in obj and attribute not in METHODS[dict]:
            return obj[attribute]
        return super().getattr(obj, attribute)

    def call(self, context: Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        if isinstance(obj, Undefined):
            obj()
        if not self.is_safe_callable(obj):
            raise SecurityError(f"a {type(obj).__name__} may not be called")
        if isinstance(obj, LoopContext):
            args = tuple(items_of(arg) for arg in args)
        elif isinstance(obj, (BuiltinMethodType, MethodType)):
            check_method(obj, args, kwargs)
        charge(1 + len(args) + len(kwargs))
        return checked(settled(context.call(obj, *args, **kwargs)))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if not isinstance(left, Undefined) and not isinstance(right, Undefined):
            check_operator(operator, left, right)
        return checked(super().call_binop(context, operator, left, right))


def _is_group(obj: Any) -> bool:
    """Whether it is what the filter `groupby` makes."""
    return type(obj).__module__ == "jinja2.filters" and isinstance(obj, tuple)


@pass_context
def _finalize(_context: Context, value: Any) -> str:
    # Given the context so that nothing is computed when the template is compiled, where no budget is open.
    return str(checked(written(value)))


# --- compiling -------------------------------------------------------------------------------------------

_REFUSED: Mapping[type[nodes.Node], str] = {
    nodes.Extends: "extends",
    nodes.Include: "include",
    nodes.Import: "import",
    nodes.FromImport: "from … import",
    nodes.Block: "block",
    nodes.EvalContextModifier: "autoescape",
}


class _Metered(NodeTransformer):
    """Puts a meter on what the sandbox does not ask about: loops, bodies, comparisons, keys, slices and ``~``."""

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802 - Jinja2 calls it by this name
        self.generic_visit(node)
        node.iter = _filtered(node.iter, " items")
        node.body.insert(0, _meter(node.body, node.lineno))
        return node

    def visit_Macro(self, node: nodes.Macro) -> nodes.Node:  # noqa: N802 - Jinja2 calls it by this name
        self.generic_visit(node)
        node.body.insert(0, _meter(node.body, node.lineno))
        return node

    def visit_CallBlock(self, node: nodes.CallBlock) -> nodes.Node:  # noqa: N802 - Jinja2 calls it by this name
        self.generic_visit(node)
        node.body.insert(0, _meter(node.body, node.lineno))
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802 - Jinja2 calls it by this name
        self.generic_visit(node)
        return _filtered(nodes.List(node.nodes, lineno=node.lineno), " concat")

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:  # noqa: N802 - Jinja2 calls it by this name
        self.generic_visit(node)
        node.expr = _filtered(node.expr, " weighed")
        for operand in node.ops:
            operand.expr = _filtered(operand.expr, " weighed")
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:  # noqa: N802 - Jinja2 calls it by this name
        self.generic_visit(node)
        if isinstance(node.arg, nodes.Slice):
            return _filtered(node, " weighed")
        node.arg = _filtered(node.arg, " weighed")
        return node

    def visit_Pair(self, node: nodes.Pair) -> nodes.Node:  # noqa: N802 - Jinja2 calls it by this name
        self.generic_visit(node)
        # A key is hashed, all of it.
        node.key = _filtered(node.key, " weighed")
        return node

    def visit_TemplateData(self, node: nodes.TemplateData) -> nodes.Node:  # noqa: N802 - Jinja2 calls it by this name
        # Text of the template itself is written through `finalize` too, which charges for it.
        return nodes.Const(node.data, lineno=node.lineno)


def _filtered(node: nodes.Node, name: str) -> nodes.Filter:
    return nodes.Filter(cast("nodes.Expr", node), name, [], [], None, None, lineno=node.lineno)


def _meter(body: Sequence[nodes.Node], line: int) -> nodes.Output:
    statements = 1 + sum(1 for child in body for _ in child.find_all(nodes.Node))
    return nodes.Output([_filtered(nodes.Const(statements, lineno=line), " step")], lineno=line)


@dataclass(frozen=True, slots=True)
class Compiled:
    """A template ready to be rendered.

    Attributes:
        names: every name that stands in it, its own variables too.
        free: the names that have to be given.
    """

    template: Template
    names: frozenset[str]
    free: frozenset[str]


@lru_cache(maxsize=1)
def _environment() -> _Environment:
    environment = _Environment(
        undefined=_Missing,
        finalize=_finalize,
        autoescape=False,
        cache_size=0,
    )
    environment.globals.clear()
    environment.globals["range"] = number_range
    environment.filters.clear()
    environment.filters.update(filters())
    environment.tests.clear()
    environment.tests.update(tests())
    return environment


@lru_cache(maxsize=128)
def compiled(source: str) -> Compiled:
    """Return the compiled template; the last 128 are kept.

    Raises:
        TemplateSyntaxError: it does not parse, or uses what a prompt may not.
        TooMuch: it is longer than a template may be.
    """
    if len(source) > MAX_SOURCE:
        raise TooMuch(f"its source has more than {MAX_SOURCE} characters")
    environment = _environment()
    tree = environment.parse(source)
    for node in tree.find_all(tuple(_REFUSED)):
        tag = next(tag for kind, tag in _REFUSED.items() if isinstance(node, kind))
        raise TemplateSyntaxError(f"the tag {{% {tag} %}} is not offered", node.lineno)
    if sum(1 for _ in tree.find_all(nodes.Node)) > MAX_NODES:
        raise TooMuch(f"its source has more than {MAX_NODES} names, constants and statements")
    names = frozenset(node.name for node in tree.find_all(nodes.Name))
    free = frozenset(find_undeclared_variables(tree))
    tree = _Metered().visit(tree)
    tree.set_environment(environment)
    return Compiled(environment.from_string(tree), names, free - set(environment.globals))
