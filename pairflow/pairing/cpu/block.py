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


def _unary(emit, result, operand):
    """Compiled code that is `emit(builder, value)`."""

    @intrinsic
    def operation(typing, value):
        def build(context, builder, signature, arguments):
            return emit(builder, arguments[0])

        return result(operand), build

    return operation


def _binary(instruction):
    @intrinsic
    def operation(typing, a, b):
        def build(context, builder, signature, arguments):
            return getattr(builder, instruction)(*arguments)

        return block_type(block_type, block_type), build

    return operation


def _of_block(name, result):
    """The call of an LLVM function of one block, to be emitted."""

    def emit(builder, block):
        function_type = ir.FunctionType(result, [_VECTOR])
        return builder.call(cgutils.get_or_insert_function(builder.module, function_type, name), [block])

    return emit


def _is_any_bit_set(builder, block):
    united = _of_block("llvm.vector.reduce.or.v8i64", _WORD)(builder, block)
    return builder.icmp_unsigned("!=", united, ir.Constant(_WORD, 0))


popcount = _unary(_of_block("llvm.ctpop.v8i64", _VECTOR), block_type, block_type)
"""The number of set bits in each word, as a block to `plus` or `total`."""

total = _unary(_of_block("llvm.vector.reduce.add.v8i64", _WORD), types.int64, block_type)
"""The sum of the eight words, int64."""

any_bit = _unary(_is_any_bit_set, types.boolean, block_type)
"""Whether any bit is set."""

lowest_bit = _unary(
    lambda builder, word: builder.cttz(word, ir.Constant(ir.IntType(1), 1)), types.int64, types.uint64
)
"""The place (0..63) of the lowest set bit of a uint64 that is not 0."""

plus = _binary("add")
"""Sums the words of two blocks."""

for _python, _llvm in ((operator.and_, "and_"), (operator.or_, "or_"), (operator.xor, "xor")):

    def _define(operation):
        def of_blocks(a, b):
            if isinstance(a, BlockType) and isinstance(b, BlockType):
                return lambda a, b: operation(a, b)

        return of_blocks

    overload(_python)(_define(_binary(_llvm)))


_not = _unary(ir.IRBuilder.not_, block_type, block_type)


@overload(operator.invert)
def _invert(block):
    if isinstance(block, BlockType):
        return lambda block: _not(block)
