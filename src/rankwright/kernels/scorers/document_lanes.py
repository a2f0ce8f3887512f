"""Operations on 64 documents at once, written in the compiler's own vector terms.

The compiler turns them into the vector instructions of the processor, whatever their width. A *lane* is the place of a
document among the 64. A *mask* says for each lane whether a condition holds: 64 bits where the processor has
instructions that take them (AVX-512), else 64 bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types

from rankwright.kernels.jit import llvm

LANES = 64
TILE = 16  # rows and columns that are transposed at a time
TREES_AT_ONCE = 4  # each step waits for the one before it in its tree, so that several trees fill the waiting time
PLANE_LEAVES = 64  # of a tree whose values are looked up by a byte permutation

_BIT, _BYTE, _WORD, _LONG = ir.IntType(1), ir.IntType(8), ir.IntType(32), ir.IntType(64)
_SINGLE, _DOUBLE = ir.FloatType(), ir.DoubleType()
_BYTES = ir.VectorType(_BYTE, LANES)
_BITS = ir.VectorType(_BIT, LANES)
_WIDTHS = {1: _BYTE, 2: ir.IntType(16), 4: _WORD}


def _has(target: Any, feature: str) -> bool:
    """Return whether the processor that is compiled for has a feature, such as "avx512bw"."""
    return f"+{feature}" in target.codegen().magic_tuple()[2].split(",")


def _get_data(target: Any, builder: Any, signature: Any, arguments: Any, i: int) -> Any:
    """Return the pointer to the first element of the array that is argument ``i``."""
    return target.make_array(signature.args[i])(target, builder, arguments[i]).data


def _locate(builder: Any, data: Any, offset: Any, kind: Any) -> Any:
    """Return a pointer to a vector that begins at an element of an array."""
    return builder.bitcast(builder.gep(data, [offset]), kind.as_pointer())


def _number(value: int) -> Any:
    """Return a constant of 64 bits."""
    return ir.Constant(_LONG, value)


def _shuffle(builder: Any, one: Any, other: Any, places: Sequence[int]) -> Any:
    """Return the elements at these places of two vectors, counted through both."""
    return builder.shuffle_vector(one, other, ir.Constant(ir.VectorType(_WORD, len(places)), list(places)))


def _repeat(builder: Any, value: Any) -> Any:
    """Return a vector with a value in each lane."""
    nothing = ir.Constant(ir.VectorType(value.type, LANES), ir.Undefined)
    first = builder.insert_element(nothing, value, ir.Constant(_WORD, 0))
    return _shuffle(builder, first, nothing, [0] * LANES)


@llvm
def count_mask_words(context: Any) -> Any:
    """Return how many words of 64 bits a mask has: ``count_mask_words()``."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _number(1 if _has(target, "avx512bw") else LANES // 8)

    return types.intp(), generate


@llvm
def set_in_mask(context: Any, masks: Any, mask: Any, lane: Any, holds: Any) -> Any:
    """Write whether a condition holds for one lane, of a mask that was 0: ``set_in_mask(masks, mask, lane, holds)``."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data, (_, mask, lane, holds) = _get_data(target, builder, signature, arguments, 0), arguments
        if _has(target, "avx512bw"):
            place = builder.gep(data, [mask])
            bit = builder.shl(builder.zext(holds, _LONG), lane)
            builder.store(builder.or_(builder.load(place), bit), place)
        else:
            own = builder.bitcast(builder.gep(data, [builder.mul(mask, _number(LANES // 8))]), _BYTE.as_pointer())
            builder.store(builder.sext(holds, _BYTE), builder.gep(own, [lane]))
        return target.get_dummy_value()

    return types.void(masks, types.intp, types.intp, types.boolean), generate


@llvm
def transpose_tile(context: Any, rows: Any, first: Any, width: Any, columns: Any, start: Any) -> Any:
    """Copy a tile of 16 rows and 16 columns to columns of 64 lanes.

    ``transpose_tile(rows, first, width, columns, start)``: ``first`` and ``start`` are the places of its first value
    in both arrays, and a row has ``width`` values.
    """

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, out = (_get_data(target, builder, signature, arguments, i) for i in (0, 3))
        kind, (_, place, width, _, start) = ir.VectorType(_SINGLE, TILE), arguments
        tile = []
        for _ in range(TILE):
            tile.append(builder.load(_locate(builder, source, place, kind), align=4))
            place = builder.add(place, width)
        half = TILE // 2
        low = [place for i in range(half) for place in (i, TILE + i)]
        high = [place + half for place in low]
        for _ in range(TILE.bit_length() - 1):  # each step interleaves rows that are half the tile apart
            pairs = [(tile[r], tile[r + half]) for r in range(half)]
            tile = [_shuffle(builder, *pair, places) for pair in pairs for places in (low, high)]
        for row in tile:
            builder.store(row, _locate(builder, out, start, kind), align=4)
            start = builder.add(start, _number(LANES))
        return target.get_dummy_value()

    return types.void(rows, types.intp, types.intp, columns, types.intp), generate


def _compare(is_ordered: bool, columns: Any, thresholds: Any, masks: Any) -> Any:
    """Return the type and the code of a comparison of a column with thresholds, one after another."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data, bars, out = (_get_data(target, builder, signature, arguments, i) for i in (0, 2, 5))
        values = builder.load(_locate(builder, data, arguments[1], ir.VectorType(_SINGLE, LANES)), align=4)
        compare = builder.fcmp_ordered if is_ordered else builder.fcmp_unordered
        with cgutils.for_range_slice(builder, arguments[3], arguments[4], _number(1)) as (at, _):
            above = compare(">", values, _repeat(builder, builder.load(builder.gep(bars, [at]))))
            if _has(target, "avx512bw"):
                builder.store(builder.bitcast(above, _LONG), builder.gep(out, [at]))
            else:
                place = _locate(builder, out, builder.mul(at, _number(LANES // 8)), _BYTES)
                builder.store(builder.sext(above, _BYTES), place, align=8)
        return target.get_dummy_value()

    return types.void(columns, types.intp, thresholds, types.intp, types.intp, masks), generate


@llvm
def compare_known(context: Any, columns: Any, start: Any, thresholds: Any, first: Any, stop: Any, masks: Any) -> Any:
    """Write the masks of the lanes whose values are above thresholds; NaN is above none.

    ``compare_known(columns, start, thresholds, first, stop, masks)`` writes the masks ``first`` to ``stop``.
    """
    return _compare(True, columns, thresholds, masks)


@llvm
def compare_or_missing(
    context: Any, columns: Any, start: Any, thresholds: Any, first: Any, stop: Any, masks: Any
) -> Any:
    """Write the masks of the lanes whose values are above thresholds or NaN; arguments as of ``compare_known``."""
    return _compare(False, columns, thresholds, masks)


def _load_mask(target: Any, builder: Any, masks: Any, mask: Any) -> Any:
    """Return a mask as a vector of bits."""
    if _has(target, "avx512bw"):
        return builder.bitcast(builder.load(builder.gep(masks, [mask])), _BITS)
    own = builder.load(_locate(builder, masks, builder.mul(mask, _number(LANES // 8)), _BYTES), align=8)
    return builder.icmp_signed("<", own, ir.Constant(_BYTES, [0] * LANES))


@llvm
def find_leaf_positions(
    context: Any, masks: Any, condition: Any, start: Any, first: Any, rounds: Any, positions: Any
) -> Any:
    """Write the position, from left to right, of the leaf of each lane in four trees that are processed together.

    ``find_leaf_positions(masks, condition, start, first, rounds, positions)``. Nodes come in the order of the first
    leaf of their right side: 1, 2, 3, ... A lane is at a leaf, at first 0. A node whose left side is the leaves from
    ``start`` on moves the lanes that are there and in the mask of its ``condition`` to its right side. So after all
    nodes a lane is at the first leaf that no node excludes, which is its own: the rule of QuickScorer (Lucchese et al.,
    SIGIR 2015), with a byte per document in place of a bit per leaf.
    """

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data, conditions, starts, out = (_get_data(target, builder, signature, arguments, i) for i in (0, 1, 2, 5))
        none, one = ir.Constant(_BYTES, [0] * LANES), ir.Constant(_BYTES, [1] * LANES)
        before, check, step, after = builder.block, *(builder.append_basic_block() for _ in range(3))
        builder.branch(check)
        builder.position_at_end(check)
        at, right = builder.phi(_LONG), builder.phi(_BYTES)
        own = [builder.phi(_BYTES) for _ in range(TREES_AT_ONCE)]
        builder.cbranch(builder.icmp_signed("<", at, arguments[4]), step, after)
        builder.position_at_end(step)
        place = builder.add(arguments[3], builder.mul(at, _number(TREES_AT_ONCE)))
        moved = []
        for t, position in enumerate(own):
            node = builder.add(place, _number(t))
            condition = builder.zext(builder.load(builder.gep(conditions, [node])), _LONG)
            mask = _load_mask(target, builder, data, condition)
            start = _repeat(builder, builder.load(builder.gep(starts, [node])))
            moves = builder.and_(builder.icmp_unsigned(">=", position, start), mask)
            moved.append(builder.select(moves, right, position))
        following = [builder.add(at, _number(1)), builder.add(right, one), *moved]
        for value, first, next_ in zip((at, right, *own), (_number(0), one, *[none] * len(own)), following):
            value.add_incoming(first, before)
            value.add_incoming(next_, step)
        builder.branch(check)
        builder.position_at_end(after)
        for t, position in enumerate(own):
            builder.store(position, _locate(builder, out, _number(LANES * t), _BYTES), align=1)
        return target.get_dummy_value()

    return types.void(masks, condition, start, types.intp, types.intp, positions), generate


def _interleave(planes: Sequence[Any], shuffle: Callable[[Any, Any, list[int], int], Any]) -> list[Any]:
    """Return the numbers of 8 bytes whose first, second, ... bytes the planes hold, in the lanes of ``LANE_ORDER``.

    Pairs of planes become numbers of 2 bytes, of 4 and of 8, always within quarters of a vector, as processors do.
    """
    found = [[plane] for plane in planes]
    for width in (1, 2, 4):
        n, quarter = LANES // width, LANES // width // 4
        low = [place for q in range(4) for i in range(quarter // 2) for place in (q * quarter + i, n + q * quarter + i)]
        high = [place + quarter // 2 for place in low]
        found = [
            [shuffle(a, b, places, width) for a, b in zip(one, other) for places in (low, high)]
            for one, other in zip(found[::2], found[1::2])
        ]
    return found[0]


def _find_lane_order() -> Any:
    """Return the lane of each sum that ``add_leaf_values`` adds to."""

    def shuffle(one: Any, other: Any, places: list[int], width: int) -> Any:
        return np.concatenate([one.reshape(-1, width), other.reshape(-1, width)])[places].ravel()

    return np.concatenate([lanes[::8] for lanes in _interleave([np.arange(LANES)] * 8, shuffle)])


LANE_ORDER = _find_lane_order()


@llvm
def add_leaf_values(
    context: Any, planes: Any, plane: Any, values: Any, first: Any, positions: Any, start: Any, sums: Any
) -> Any:
    """Add the values of the leaves of one tree to the sums of the lanes, which come in the order of ``LANE_ORDER``.

    ``add_leaf_values(planes, plane, values, first, positions, start, sums)``: the tree's values begin at
    ``values[first]``, and as planes of bytes, 64 leaves each, at ``planes[plane]``, unless ``plane`` is below 0. A
    processor with AVX-512 VBMI looks up a byte of all lanes at once.
    """

    def look_up_planes(builder: Any, data: Any, arguments: Any) -> None:
        table, _, places, sums = data
        kind, eight = ir.FunctionType(_BYTES, [_BYTES, _BYTES]), ir.VectorType(_DOUBLE, 8)
        permute = builder.module.declare_intrinsic("llvm.x86.avx512.permvar.qi.512", [], kind)
        own = builder.load(_locate(builder, places, arguments[5], _BYTES), align=1)
        offsets = [builder.add(arguments[1], _number(LANES * i)) for i in range(8)]
        tables = [builder.load(_locate(builder, table, offset, _BYTES), align=1) for offset in offsets]

        def shuffle(one: Any, other: Any, chosen: list[int], width: int) -> Any:
            kind = ir.VectorType(_WIDTHS[width], LANES // width)
            return _shuffle(builder, builder.bitcast(one, kind), builder.bitcast(other, kind), chosen)

        for i, found in enumerate(_interleave([builder.call(permute, [table, own]) for table in tables], shuffle)):
            place = _locate(builder, sums, _number(8 * i), eight)
            added = builder.fadd(builder.load(place, align=8), builder.bitcast(found, eight))
            builder.store(added, place, align=8)

    def look_up_values(builder: Any, data: Any, arguments: Any) -> None:
        _, values, places, sums = data
        own = builder.gep(values, [arguments[3]])
        for i, lane in enumerate(LANE_ORDER.tolist()):
            leaf = builder.load(builder.gep(places, [builder.add(arguments[5], _number(lane))]))
            value = builder.load(builder.gep(own, [builder.zext(leaf, _LONG)]))
            place = builder.gep(sums, [_number(i)])
            builder.store(builder.fadd(builder.load(place), value), place)

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = [_get_data(target, builder, signature, arguments, i) for i in (0, 2, 4, 6)]
        if _has(target, "avx512vbmi"):
            with builder.if_else(builder.icmp_signed(">=", arguments[1], _number(0))) as (has_planes, has_none):
                with has_planes:
                    look_up_planes(builder, data, arguments)
                with has_none:
                    look_up_values(builder, data, arguments)
        else:
            look_up_values(builder, data, arguments)
        return target.get_dummy_value()

    return types.void(planes, types.intp, values, types.intp, positions, types.intp, sums), generate
