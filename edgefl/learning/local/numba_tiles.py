"""Tiles of matrix products for numba, written with LLVM's vectors so that a tile's sums stay in registers.

Numba's own vectoriser does not keep the sums of a tile in registers. Vectors have the same length on every processor,
and multiply-adds round once, so results do not depend on the processor either.

Matrices [n, m] are in panels of 16 columns, [m / 16, n, 16]. Addresses count bytes; strides count float32 values.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES, HALF = 16, 8
NUMBER, PLACE, INDEX = ir.FloatType(), ir.IntType(64), ir.IntType(32)
EXPONENT, BIAS = 23, 127  # first bit of a float32's exponent, and the stored exponent of 1.0


class _Code:
    """Emit LLVM instructions for vectors of one length."""

    def __init__(self, builder: Any, lanes: int) -> None:
        self.builder, self.lanes = builder, lanes
        self.vector = ir.VectorType(NUMBER, lanes)

    def at(self, address: Any, *offsets: Any) -> Any:
        """Emit the pointer to a float32 at a byte address plus offsets, which are counted in float32 values."""
        pointer = self.builder.inttoptr(address, NUMBER.as_pointer())
        for offset in offsets:
            pointer = self.builder.gep(pointer, [offset if hasattr(offset, "type") else PLACE(offset)])
        return pointer

    def read(self, pointer: Any) -> Any:
        return self.builder.load(self.builder.bitcast(pointer, self.vector.as_pointer()), align=4)

    def write(self, vector: Any, pointer: Any) -> None:
        self.builder.store(vector, self.builder.bitcast(pointer, self.vector.as_pointer()), align=4)

    def spread(self, number: Any) -> Any:
        """Emit a vector with the same number in every lane."""
        empty = ir.Constant(self.vector, ir.Undefined)
        first = self.builder.insert_element(empty, number, INDEX(0))
        return self.builder.shuffle_vector(
            first, empty, ir.Constant(ir.VectorType(INDEX, self.lanes), [0] * self.lanes)
        )

    def add_product(self, a: Any, b: Any, total: Any) -> None:
        """Emit total += a b for vectors; `total` is a pointer, but LLVM keeps the value in a register."""
        kind = ir.FunctionType(self.vector, [self.vector] * 3)
        fma = cgutils.get_or_insert_function(self.builder.module, kind, f"llvm.fma.v{self.lanes}f32")
        self.builder.store(self.builder.call(fma, [a, b, self.builder.load(total)]), total)

    def sum(self, vector: Any) -> Any:
        """Emit the sum of a vector's elements, computed by adding halves of the vector."""
        for width in (4, 2, 1):
            empty = ir.Constant(vector.type, ir.Undefined)
            low, high = (
                ir.Constant(ir.VectorType(INDEX, width), list(range(begin, begin + width)))
                for begin in (0, width)
            )
            shuffle = self.builder.shuffle_vector
            vector = self.builder.fadd(shuffle(vector, empty, low), shuffle(vector, empty, high))
        return self.builder.extract_element(vector, INDEX(0))


def _sums(code: _Code, rows: int, operands: Any, first: Any) -> list[Any]:
    """Emit `first(i) + a[i] @ b` for each row i of a tile; return the addresses of the results."""
    builder = code.builder
    a, row, column, panel, panels, count, b = operands
    totals = [cgutils.alloca_once(builder, code.vector) for _ in range(rows)]
    for i, total in enumerate(totals):
        builder.store(first(i), total)
    with cgutils.for_range(builder, panels, intp=PLACE) as outside:
        left = builder.mul(outside.index, panel)
        behind = builder.mul(builder.mul(outside.index, count), PLACE(LANES))
        with cgutils.for_range(builder, count, intp=PLACE) as inside:
            many = code.read(code.at(b, behind, builder.mul(inside.index, PLACE(LANES))))
            place = builder.add(left, builder.mul(inside.index, column))
            for i, total in enumerate(totals):
                one = builder.load(code.at(a, builder.mul(row, PLACE(i)), place), align=4)
                code.add_product(code.spread(one), many, total)
    return totals


def product(rows: int) -> Callable[..., None]:
    """Make a function for a tile: c [rows, 16] += a [rows, k] b [k, 16].

    The function takes the address of a, the strides of a's rows, columns and panels, the number of panels, the number
    of columns in a panel, and the addresses of b and c, which have contiguous rows.
    """

    @intrinsic
    def tile(context, a, row, column, panel, panels, count, b, c):
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            *operands, c = arguments
            code = _Code(builder, LANES)
            totals = _sums(code, rows, operands, lambda i: code.read(code.at(c, LANES * i)))
            for i, total in enumerate(totals):
                code.write(builder.load(total), code.at(c, LANES * i))
            return context.get_dummy_value()

        return types.void(*[types.intp] * 8), generate

    return tile


def descent(rows: int) -> Callable[..., None]:
    """Make a function for a tile of a step: u [rows, 16] = momentum u + a b + decay w, w -= lr u.

    The function takes the arguments of a `product` function up to the address of b, then the addresses of u and w,
    momentum, decay and lr.
    """

    @intrinsic
    def tile(context, a, row, column, panel, panels, count, b, u, w, momentum, decay, lr):
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            *operands, u, w, momentum, decay, lr = arguments
            code = _Code(builder, LANES)

            def first(i: int) -> Any:
                return builder.fmul(code.spread(momentum), code.read(code.at(u, LANES * i)))

            for i, total in enumerate(_sums(code, rows, operands, first)):
                place = code.at(w, LANES * i)
                weights = code.read(place)
                code.add_product(code.spread(decay), weights, total)
                move = builder.load(total)
                code.write(move, code.at(u, LANES * i))
                code.write(builder.fsub(weights, builder.fmul(code.spread(lr), move)), place)
            return context.get_dummy_value()

        return types.void(*[types.intp] * 9, *[types.float32] * 3), generate

    return tile


def dots(rows: int, columns: int) -> Callable[..., None]:
    """Make a function for a tile: c [rows, columns] = a [rows, m] b [columns, m]^T, with sums along the lanes.

    The function takes the address of a and the stride of a's panels, the address of b and the stride of b's panels,
    the number of panels, the address of c and the stride of c's rows.
    """

    @intrinsic
    def tile(context, a, a_panel, b, b_panel, panels, c, c_row):
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            a, a_panel, b, b_panel, panels, c, c_row = arguments
            code = _Code(builder, HALF)
            totals = [
                [cgutils.alloca_once(builder, code.vector) for _ in range(columns)] for _ in range(rows)
            ]
            for total in (total for line in totals for total in line):
                builder.store(ir.Constant(code.vector, None), total)
            with cgutils.for_range(builder, panels, intp=PLACE) as loop:
                here, there = builder.mul(loop.index, a_panel), builder.mul(loop.index, b_panel)
                for half in (0, HALF):
                    right = [code.read(code.at(b, there, LANES * j + half)) for j in range(columns)]
                    for i, line in enumerate(totals):
                        left = code.read(code.at(a, here, LANES * i + half))
                        for total, one in zip(line, right, strict=True):
                            code.add_product(left, one, total)
            for i, line in enumerate(totals):
                for j, total in enumerate(line):
                    place = code.at(c, builder.mul(c_row, PLACE(i)), j)
                    builder.store(code.sum(builder.load(total)), place, align=4)
            return context.get_dummy_value()

        return types.void(*[types.intp] * 7), generate

    return tile


@intrinsic
def power_of_two(context, shifted):
    """Return 2^n for the float32 n + 1.5 x 2^23, with n from -126 to 127."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = builder.add(builder.bitcast(arguments[0], INDEX), INDEX(BIAS))
        return builder.bitcast(builder.shl(number, INDEX(EXPONENT)), NUMBER)

    return types.float32(types.float32), generate


@intrinsic
def copy(context, source, target):
    """Copy a row of 16 values from one address to another."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        code = _Code(builder, LANES)
        code.write(code.read(code.at(arguments[0])), code.at(arguments[1]))
        return context.get_dummy_value()

    return types.void(types.intp, types.intp), generate


@intrinsic
def prefetch(context, address):
    """Fetch the cache line at an address into the cache."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bytes_at = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [bytes_at, INDEX, INDEX, INDEX])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        read, kept, data = INDEX(0), INDEX(3), INDEX(1)
        builder.call(function, [builder.inttoptr(arguments[0], bytes_at), read, kept, data])
        return context.get_dummy_value()

    return types.void(types.intp), generate
