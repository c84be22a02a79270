"""A JSON value → a value of the wanted type, with a receipt of every step.

Every step is guided by the type. None makes up a value, turns one kind of container into another, or picks
between two readings that fit equally well: such a value is a `Misfit` that says where and why.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from SimpleLLMFunc.base.parsing.alignment.alignment import Alignment, Fit, Misfit, gathered, violations_of
from SimpleLLMFunc.base.parsing.alignment.scalar_coercion import LeafFit, fit_leaf
from SimpleLLMFunc.base.parsing.alignment.shape import (
    AnyShape,
    ChoiceShape,
    FieldShape,
    LeafShape,
    ListShape,
    MappingShape,
    ObjectShape,
    OpaqueShape,
    Shape,
    TaggedShape,
    TupleShape,
    UnionShape,
    choices_of,
    folded_key,
    leaf_kinds,
    resolved,
)
from SimpleLLMFunc.base.parsing.json_node import (
    Bare,
    Braced,
    Node,
    Num,
    Open,
    Path,
    decode_strictly,
    holds,
    is_same,
    is_same_value,
    is_wire,
    plain_value,
    shown,
)
from SimpleLLMFunc.base.parsing.parsed import Repair
from SimpleLLMFunc.errors import Violation
from SimpleLLMFunc.type import without_surrogates
from SimpleLLMFunc.utils import path_text

_FOLDED_KEY: Final = 1.0
_ONE_ITEM: Final = 3.0
_DECODED: Final = 3.0
_UNWRAPPED: Final = 4.0
_UNKNOWN_KEY: Final = 3.0
_LEFT_OUT: Final = 0.01


class Aligner:
    """Aligns nodes to shapes.

    Args:
        may_coerce: take the steps beyond JSON itself: numbers out of words, keys by case, and so on.
        reads_hooked: also align what a user's own validator reads first; else that gets the value as written.
    """

    def __init__(self, *, may_coerce: bool, reads_hooked: bool = False) -> None:
        self._may_coerce = may_coerce
        self._reads_hooked = reads_hooked

    def align(self, shape: Shape, node: Node, path: Path = (), *, is_inner: bool = False) -> Alignment:
        """Return the value of `shape` that the node is.

        Args:
            shape: the wanted one.
            node: the JSON as it was written.
            path: where the node stands.
            is_inner: it was unwrapped already, which happens once.
        """
        shape = resolved(shape)
        if isinstance(shape, UnionShape):
            return self._union(shape, node, path, is_inner=is_inner)
        direct = self._direct(shape, node, path, is_inner=is_inner)
        if not self._may_coerce or isinstance(shape, AnyShape | OpaqueShape):
            return direct
        if isinstance(node, dict) and not isinstance(node, Open) and len(node) == 1 and not is_inner:
            return self._unwrapped(shape, node, path, direct)
        if isinstance(node, str) and isinstance(direct, Misfit) and not isinstance(shape, LeafShape | ChoiceShape):
            return self._decoded(shape, node, path, direct)
        return direct

    def _direct(self, shape: Shape, node: Node, path: Path, *, is_inner: bool) -> Alignment:
        match shape:
            case LeafShape():
                return _fit_of(fit_leaf(shape, node, may_coerce=self._may_coerce), shape, node, path)
            case ChoiceShape():
                return self._choice(shape, node, path)
            case ObjectShape():
                return self._object(shape, node, path, is_inner=is_inner)
            case ListShape():
                return self._list(shape, node, path, is_inner=is_inner)
            case TupleShape():
                return self._tuple(shape, node, path, is_inner=is_inner)
            case MappingShape():
                return self._mapping(shape, node, path)
            case TaggedShape():
                return self._tagged(shape, node, path, is_inner=is_inner)
            case OpaqueShape(inner=inner) if inner is not None and self._reads_hooked:
                return self.align(inner, node, path, is_inner=is_inner)
            case _:
                return self._as_written(shape, node, path)

    # --- wrappings ---------------------------------------------------------------------------------------

    def _unwrapped(self, shape: Shape, node: dict[str, Node], path: Path, direct: Alignment) -> Alignment:
        """Look inside an object with one key, unless the object itself fits."""
        if isinstance(direct, Fit) and not isinstance(shape, ListShape):
            return direct
        [(key, value)] = node.items()
        if isinstance(shape, ListShape) and not isinstance(value, list):
            return direct
        inside = self.align(shape, value, path, is_inner=True)
        # where the object could also be the one item of a list, the list inside it is what was meant
        if isinstance(inside, Misfit):
            if isinstance(direct, Fit) or not isinstance(value, dict | list):
                return direct
            # the more telling of the two
            return direct if isinstance(shape, ObjectShape) and shape.field_of(key) is not None else inside
        repairs = [(path_text(path), f"unwrapped from {key!r}"), *inside.repairs]
        return Fit(inside.value, inside.cost + _UNWRAPPED, repairs, inside.unread)

    def _decoded(self, shape: Shape, node: str, path: Path, direct: Misfit) -> Alignment:
        """Read a string that holds the JSON of the wanted container."""
        if node.lstrip()[:1] not in {"{", "["}:
            return direct
        try:
            decoded = decode_strictly(node)
        except (ValueError, RecursionError):
            return direct
        inside = self._direct(shape, decoded, path, is_inner=True)
        if isinstance(inside, Misfit):
            return inside
        repairs = [(path_text(path), "JSON taken out of a string"), *inside.repairs]
        return Fit(inside.value, inside.cost + _DECODED, repairs, inside.unread)

    # --- scalars -----------------------------------------------------------------------------------------

    def _choice(self, shape: ChoiceShape, node: Node, path: Path) -> Alignment:
        for value, wire, name in shape.members:
            if is_wire(wire, node):
                return Fit(value, 0.1 if name else 0)
        text = node.text if isinstance(node, Bare) else node
        if not isinstance(text, str | Num | bool) or not self._may_coerce:
            return Misfit.at(path, shape.name, node)
        from SimpleLLMFunc.base.parsing.alignment.enum_matching import AmbiguousChoiceError, find_choice, find_unquoted

        try:
            if isinstance(text, str):
                found = find_choice(shape, text, in_quotes=isinstance(node, str))
            else:
                found = find_unquoted(shape, text)
        except AmbiguousChoiceError as error:
            return Misfit([(path_text(path), shape.name, f"{shown(node)}, which names {error}")])
        return _fit_of(found, shape, node, path)

    def _as_written(self, shape: Shape, node: Node, path: Path) -> Alignment:
        if holds(node, Open):
            return Misfit.at(path, f"{shape.name}, complete", node)
        inner = shape.inner if isinstance(shape, OpaqueShape) and isinstance(node, Num) else None
        if isinstance(inner, LeafShape) and (exact := fit_leaf(inner, node, may_coerce=False)):
            return Fit(exact.value)
        try:
            return Fit(plain_value(node), 0.5 if isinstance(shape, AnyShape) else 0)
        except ValueError:
            return Misfit.at(path, "a number that fits", node)

    # --- objects -----------------------------------------------------------------------------------------

    def _object(self, shape: ObjectShape, node: Node, path: Path, *, is_inner: bool) -> Alignment:
        if not isinstance(node, dict):
            return self._hooked(shape, node) or Misfit.at(path, shape.name, node)
        keys = self._assigned(shape, node, path)
        if isinstance(keys, Misfit):
            return keys
        taken, unknown, repairs = keys
        violations: list[Violation] = []
        values: dict[str, Any] = {}
        cost = _FOLDED_KEY * len(repairs)
        unread = _UNKNOWN_KEY * len(unknown) if shape.extra == "ignore" else 0
        for part in shape.fields:
            if part.key not in taken:
                unread += _LEFT_OUT
                if part.is_required or isinstance(node, Open):
                    violations.append((path_text((*path, part.key)), part.shape.name, "nothing"))
                continue
            inside = self.align(part.shape, taken[part.key], (*path, part.key), is_inner=is_inner)
            if isinstance(inside, Misfit):
                violations += inside.violations
                continue
            values[part.key] = inside.value
            cost += inside.cost
            unread += inside.unread
            repairs += inside.repairs
        violations += self._unknown_keys(shape, node, taken, unknown, path)
        if violations:
            return self._hooked(shape, node) or Misfit(violations)
        if shape.extra == "allow" or shape.has_paths:
            try:
                values |= {without_surrogates(key): plain_value(value) for key, value in unknown.items()}
            except ValueError:
                return Misfit.at(path, "numbers that fit", node)
        return Fit(values, cost, repairs, unread)

    def _assigned(
        self, shape: ObjectShape, node: dict[str, Node], path: Path
    ) -> tuple[dict[str, Node], dict[str, Node], list[Repair]] | Misfit:
        """Return the values by field, the unknown keys, and the repairs; keys match by exact name first, then folded."""
        taken: dict[str, Node] = {}
        unknown = dict(node)
        repairs: list[Repair] = []
        ways: list[Callable[[str], FieldShape | None]] = [shape.by_name.get]
        ways += [shape.field_of] if self._may_coerce else []
        for find in ways:
            for key, value in list(unknown.items()):
                part = find(key)
                if part is None:
                    continue
                del unknown[key]
                where = path_text((*path, part.key))
                if part.key not in taken:
                    taken[part.key] = value
                    repairs += [] if key == part.key else [(where, f"key {key!r} read as {part.key!r}")]
                elif not is_same(taken[part.key], value):
                    return Misfit([(where, part.shape.name, f"two different values for one field of {shape.name}")])
        return taken, unknown, repairs

    def _hooked(self, shape: ObjectShape, node: Node) -> Fit | None:
        """Leave the value as it is written to the user's own validator."""
        if not shape.is_hooked or self._reads_hooked:
            return None
        found = self._as_written(shape, node, ())
        return Fit(found.value, 1) if isinstance(found, Fit) else None

    def _unknown_keys(
        self, shape: ObjectShape, node: dict[str, Node], taken: dict[str, Node], unknown: dict[str, Node], path: Path
    ) -> Iterable[Violation]:
        if shape.extra == "forbid" and not shape.has_paths:
            for key, value in unknown.items():
                yield path_text((*path, key)), "no such key", shown(value)
        elif shape.extra == "ignore" and unknown and not taken and shape.fields and not shape.has_paths:
            yield path_text(path), shape.name, f"{shown(node)}, none of which is a field"
        if isinstance(node, Open) and shape.extra == "allow":
            yield path_text(path), f"{shape.name}, complete", "an object without its closing brace"

    def _tagged(self, shape: TaggedShape, node: Node, path: Path, *, is_inner: bool) -> Alignment:
        if not isinstance(node, dict):
            return Misfit.at(path, shape.name, node)
        names = shape.tags()
        tags = [value for key, value in node.items() if key in names]
        if not tags and self._may_coerce:
            tags = [value for key, value in node.items() if folded_key(key) in map(folded_key, names)]
        where = (*path, shape.tag)
        expected = "one of " + ", ".join(map(repr, shape.choices))
        if not tags or any(not is_same(tag, tags[0]) for tag in tags):
            return Misfit([(path_text(where), expected, "nothing" if not tags else "different values")])
        found = self._choice(ChoiceShape([(tag, tag, "") for tag in shape.choices], expected), tags[0], where)
        if isinstance(found, Misfit):
            return found
        return self.align(shape.choices[found.value], node, path, is_inner=is_inner)

    # --- lists, tuples, mappings -------------------------------------------------------------------------

    def _list(self, shape: ListShape, node: Node, path: Path, *, is_inner: bool) -> Alignment:
        # [1, 2] for a list of lists could be one list or two
        is_nested = isinstance(resolved(shape.item), ListShape)
        if isinstance(node, list) and (shape.made in {set, frozenset} or not isinstance(node, Braced)):
            if is_nested and any(not isinstance(item, list) for item in node):
                return Misfit.at(path, f"list of {shape.item.name}", node)
            item = shape.item
            return gathered([self.align(item, part, (*path, at), is_inner=is_inner) for at, part in enumerate(node)])
        # An item that may be a list too: one value could then stand for a list of any depth.
        is_unclear = is_nested or any(isinstance(choice, ListShape) for choice in choices_of(shape.item))
        if not self._may_coerce or is_unclear or isinstance(node, list) or node is None or _is_several(node):
            return Misfit.at(path, f"list of {shape.item.name}", node)
        inside = self.align(shape.item, node, (*path, 0), is_inner=True)
        if isinstance(inside, Misfit):
            return Misfit.at(path, f"list of {shape.item.name}", node) if not isinstance(node, dict) else inside
        repairs = [(path_text(path), "one item taken as a list"), *inside.repairs]
        return Fit([inside.value], inside.cost + _ONE_ITEM, repairs, inside.unread)

    def _tuple(self, shape: TupleShape, node: Node, path: Path, *, is_inner: bool) -> Alignment:
        if isinstance(node, dict) and shape.named is not None:
            return self._object(shape.named, node, path, is_inner=is_inner)
        is_list = isinstance(node, list) and not isinstance(node, Braced)
        if not is_list or not shape.required <= len(node) <= len(shape.items):
            return Misfit.at(path, shape.name, node)
        pairs = enumerate(zip(shape.items, node, strict=False))
        return gathered([self.align(item, part, (*path, at), is_inner=is_inner) for at, (item, part) in pairs])

    def _mapping(self, shape: MappingShape, node: Node, path: Path) -> Alignment:
        if isinstance(node, Open):
            return Misfit.at(path, f"{shape.name}, complete", node)
        if not isinstance(node, dict):
            return Misfit.at(path, shape.name, node)
        keys = [self._key(shape.key, key, path) for key in node]
        # {"result": {"a": 1}} is the mapping in a wrapper, not a mapping of wrapped values
        values = [self.align(shape.value, value, (*path, key), is_inner=True) for key, value in node.items()]
        whole = gathered([*keys, *values])
        if isinstance(whole, Misfit):
            return whole
        made = dict(zip(whole.value[: len(keys)], whole.value[len(keys) :], strict=True))
        if len(made) != len(keys):
            return Misfit.at(path, "different keys", node)
        return Fit(made, whole.cost, whole.repairs, whole.unread)

    def _key(self, shape: Shape, key: str, path: Path) -> Alignment:
        """Align a key: JSON writes every one as a string."""
        shape = resolved(shape)
        as_number = Num(key) if re.fullmatch(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", key) else None
        if isinstance(shape, LeafShape) and shape.kind in {"int", "float", "decimal"} and as_number is not None:
            return self.align(shape, as_number, (*path, key), is_inner=True)
        if isinstance(shape, LeafShape) and shape.kind == "bool" and key in {"true", "false"}:
            return Fit(key == "true")
        if isinstance(shape, ChoiceShape) and as_number is not None:
            exact = self._choice(shape, as_number, (*path, key))
            if isinstance(exact, Fit):
                return exact
        return self.align(shape, key, (*path, key), is_inner=True)

    # --- unions ------------------------------------------------------------------------------------------

    def _union(self, shape: UnionShape, node: Node, path: Path, *, is_inner: bool) -> Alignment:
        only = list(node.values()) if isinstance(node, dict) else [node]
        if only in ([Bare("none")], [Bare("NONE")]) and {"str", "none"} <= set(leaf_kinds(shape)):
            return Misfit.at(path, shape.name, node)  # a word, or null as no language writes it
        fits: list[tuple[Fit, Shape]] = []
        misfits: list[tuple[Misfit, Shape]] = []
        # No comprehension: each is a level of the stack, which types that contain themselves use up.
        for target in choices_of(shape):
            found = self._branch(target, node, path, is_inner=is_inner)
            if isinstance(found, Fit):
                fits.append((found, target))
            else:
                misfits.append((found, target))
        if not fits:
            return _best_misfit(shape, node, path, misfits)
        fits.sort(key=lambda pair: pair[0].rank)
        best, best_shape = fits[0]
        for other, other_shape in fits[1:]:
            if other.rank - best.rank > 1e-9:
                break
            # of two scalars that are written alike the type's own order decides, as pydantic has it
            are_scalars = all(isinstance(part, LeafShape | ChoiceShape) for part in (best_shape, other_shape))
            if is_same_value(other.value, best.value) or (best.cost < 1 and are_scalars):
                continue
            got = f"{shown(node)}, which fits {best_shape.name} and {other_shape.name} equally well"
            return Misfit([(path_text(path), shape.name, got)])
        return best

    def _branch(self, shape: Shape, node: Node, path: Path, *, is_inner: bool) -> Alignment:
        found = self.align(shape, node, path, is_inner=is_inner)
        if isinstance(found, Misfit) or not isinstance(shape, ObjectShape) or shape.cls is None:
            return found
        # built here, so that pydantic's own choice among the branches cannot differ from ours
        try:
            found.value = shape.adapter.validate_python(found.value)
        except Exception as error:  # noqa: BLE001 - a validator of the user's own may raise anything
            return Misfit(violations_of(error, path))
        return found


# --- small questions -------------------------------------------------------------------------------------


def _fit_of(found: LeafFit | None, shape: Shape, node: Node, path: Path) -> Alignment:
    """Return the scalar or member that was found, with its receipt; a misfit where nothing was."""
    if found is None:
        return Misfit.at(path, shape.name, node)
    return Fit(found.value, found.cost, [(path_text(path), found.note)] if found.note else [])


def _is_several(node: Node) -> bool:
    """Tell whether one scalar may be meant as several: no list of one is made of it."""
    if isinstance(node, Bare):
        return True
    return isinstance(node, str) and (not node.strip() or re.search(r"[,;|\n、，；]|^\s*\[", node) is not None)


def _best_misfit(shape: UnionShape, node: Node, path: Path, misfits: list[tuple[Misfit, Shape]]) -> Misfit:
    """Return the violations of the only branch of the node's kind, else one for the whole union."""
    kinds = ListShape | TupleShape if isinstance(node, list) else ObjectShape | MappingShape | TaggedShape
    if isinstance(node, list | dict):
        same = [misfit for misfit, choice in misfits if isinstance(choice, kinds)]
        if len(same) == 1:
            return same[0]
    return Misfit.at(path, shape.name, node)
