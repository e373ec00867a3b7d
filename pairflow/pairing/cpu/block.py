"""`Block`: 512 bits as one value in compiled code, with & | ^ ~ and popcount.

It is LLVM's vector <8 x i64>, which LLVM lowers to whatever the machine has: one AVX-512 register with
VPOPCNTQ and VPTERNLOGQ, two AVX2 registers, four of SSE2 or NEON. No instruction is named here, so nothing
needs a guard. Arrays hold a block as eight consecutive uint64 words.
"""

import operator

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model

WORDS = 8
BITS = 64 * WORDS

_WORD = ir.IntType(64)
_VECTOR = ir.VectorType(_WORD, WORDS)


class BlockType(types.Type):
    def __init__(self):
        super().__init__(name="Block")


block_type = BlockType()


@register_model(BlockType)
class _BlockModel(models.PrimitiveModel):
    def __init__(self, manager, frontend_type):
        super().__init__(manager, frontend_type, _VECTOR)


def zero_blocks(*shape: int) -> np.ndarray:
    """Zeros as (*shape, 8) uint64, aligned to whole blocks so that no block straddles two cache lines."""
    words = int(np.prod(shape, dtype=np.int64)) * WORDS
    raw = np.zeros(words + WORDS - 1, np.uint64)
    skip = -(raw.ctypes.data // 8) % WORDS
    return raw[skip : skip + words].reshape(*shape, WORDS)


def _address(context, builder, array_type, array, index):
    """Pointer to block `index` of an array, counted in blocks from its first word."""
    first = cgutils.create_struct_proxy(array_type)(context, builder, array).data
    word = builder.mul(index, ir.Constant(index.type, WORDS))
    return builder.bitcast(builder.gep(first, [word]), _VECTOR.as_pointer())


@intrinsic
def load(typing, array, index):
    """Block `index` of a contiguous uint64 array, counted in blocks from its first word."""

    def build(context, builder, signature, arguments):
        block = builder.load(_address(context, builder, signature.args[0], *arguments))
        block.align = 8
        return block

    return block_type(array, types.intp), build


@intrinsic
def store(typing, array, index, block):
    """Writes block `index` of a contiguous uint64 array, counted in blocks from its first word."""

    def build(context, builder, signature, arguments):
        address = _address(context, builder, signature.args[0], *arguments[:2])
        builder.store(arguments[2], address, align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, block_type), build


@intrinsic
def fill(typing, word):
    """The block whose eight words are all the uint64 `word`."""

    def build(context, builder, signature, arguments):
        undefined, first = ir.Constant(_VECTOR, ir.Undefined), ir.Constant(ir.IntType(32), 0)
        lane = builder.insert_element(undefined, arguments[0], first)
        return builder.shuffle_vector(
            lane, undefined, ir.Constant(ir.VectorType(ir.IntType(32), WORDS), None)
        )

    return block_type(types.uint64), build


@intrinsic
def popcount(typing, block):
    """The number of set bits in each word, as a block to `plus` or `total`."""

    def build(context, builder, signature, arguments):
        return _call(builder, "llvm.ctpop.v8i64", _VECTOR, arguments)

    return block_type(block_type), build


@intrinsic
def total(typing, block):
    """The sum of the eight words, int64."""

    def build(context, builder, signature, arguments):
        return _call(builder, "llvm.vector.reduce.add.v8i64", _WORD, arguments)

    return types.int64(block_type), build


@intrinsic
def any_bit(typing, block):
    """Whether any bit is set."""

    def build(context, builder, signature, arguments):
        united = _call(builder, "llvm.vector.reduce.or.v8i64", _WORD, arguments)
        return builder.icmp_unsigned("!=", united, ir.Constant(_WORD, 0))

    return types.boolean(block_type), build


@intrinsic
def lowest_bit(typing, word):
    """The place (0..63) of the lowest set bit of a uint64 that is not 0."""

    def build(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), build


def _call(builder, name, result, arguments):
    function_type = ir.FunctionType(result, [argument.type for argument in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, function_type, name), arguments)


def _binary(instruction):
    @intrinsic
    def operation(typing, a, b):
        def build(context, builder, signature, arguments):
            return getattr(builder, instruction)(*arguments)

        return block_type(block_type, block_type), build

    return operation


plus = _binary("add")
"""Sums the words of two blocks."""

for _python, _llvm in ((operator.and_, "and_"), (operator.or_, "or_"), (operator.xor, "xor")):

    def _define(operation):
        def of_blocks(a, b):
            if isinstance(a, BlockType) and isinstance(b, BlockType):
                return lambda a, b: operation(a, b)

        return of_blocks

    overload(_python)(_define(_binary(_llvm)))


@intrinsic
def _not(typing, block):
    def build(context, builder, signature, arguments):
        return builder.not_(arguments[0])

    return block_type(block_type), build


@overload(operator.invert)
def _invert(block):
    if isinstance(block, BlockType):
        return lambda block: _not(block)
