"""`Block`: 512 bits as one value in compiled code, with & | ^ ~ and popcount, and with * >> << of its words.

It is LLVM's vector <8 x i64>, which becomes one AVX-512 register, two AVX2 registers, or four of SSE2 or
NEON. LLVM chooses the instructions, so the code runs on every machine. In arrays, a block is eight uint64
words.
"""

import operator

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model

WORDS = 8
BITS = 64 * WORDS
COMPARED = 64  # numbers that `equal_bits` compares

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
    """Return zeros (*shape, 8) uint64, aligned so that no block straddles two cache lines."""
    words = int(np.prod(shape, dtype=np.int64)) * WORDS
    raw = np.zeros(words + WORDS - 1, np.uint64)
    skip = -(raw.ctypes.data // 8) % WORDS
    return raw[skip : skip + words].reshape(*shape, WORDS)


def _address(context, builder, array_type, array, index):
    """Return the pointer to block `index` of an array, counted in blocks from its first word."""
    first = cgutils.create_struct_proxy(array_type)(context, builder, array).data
    word = builder.mul(index, ir.Constant(index.type, WORDS))
    return builder.bitcast(builder.gep(first, [word]), _VECTOR.as_pointer())


@intrinsic
def load(typing, array, index):
    """Read block `index` of a contiguous uint64 array, counted in blocks from its first word."""

    def build(context, builder, signature, arguments):
        block = builder.load(_address(context, builder, signature.args[0], *arguments))
        # Without this LLVM assumes 64 bytes, but arrays of NumPy may be aligned only to their words.
        block.align = 8
        return block

    return block_type(array, types.intp), build


@intrinsic
def store(typing, array, index, block):
    """Write block `index` of a contiguous uint64 array, counted in blocks from its first word."""

    def build(context, builder, signature, arguments):
        address = _address(context, builder, signature.args[0], *arguments[:2])
        builder.store(arguments[2], address, align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, block_type), build


@intrinsic
def prefetch(typing, array, index):
    """Prefetch the cache line of array[index], which will be read soon."""

    def build(context, builder, signature, arguments):
        data = cgutils.create_struct_proxy(signature.args[0])(context, builder, arguments[0]).data
        address = builder.gep(data, [arguments[1]])
        word = ir.IntType(32)
        function_type = ir.FunctionType(ir.VoidType(), [address.type, word, word, word])
        function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.prefetch.p0")
        # The constants mean: for a read, of high locality, into the data cache.
        builder.call(function, [address, *(ir.Constant(word, number) for number in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(array, types.intp), build


@intrinsic
def fill(typing, word):
    """Return the block whose eight words are all the uint64 `word`."""

    def build(context, builder, signature, arguments):
        undefined, first = ir.Constant(_VECTOR, ir.Undefined), ir.Constant(ir.IntType(32), 0)
        lane = builder.insert_element(undefined, arguments[0], first)
        return builder.shuffle_vector(
            lane, undefined, ir.Constant(ir.VectorType(ir.IntType(32), WORDS), None)
        )

    return block_type(types.uint64), build


def _compared(relation):
    @intrinsic
    def operation(typing, numbers, first, wanted):
        def build(context, builder, signature, arguments):
            array, start, value = arguments
            vector = ir.VectorType(ir.IntType(16), COMPARED)
            data = cgutils.create_struct_proxy(signature.args[0])(context, builder, array).data
            loaded = builder.load(builder.bitcast(builder.gep(data, [start]), vector.as_pointer()))
            loaded.align = 2
            undefined, lane = ir.Constant(vector, ir.Undefined), ir.Constant(ir.IntType(32), 0)
            everywhere = ir.Constant(ir.VectorType(ir.IntType(32), COMPARED), None)
            copies = builder.shuffle_vector(
                builder.insert_element(undefined, value, lane), undefined, everywhere
            )
            return builder.bitcast(builder.icmp_unsigned(relation, loaded, copies), ir.IntType(64))

        return types.uint64(numbers, types.intp, types.uint16), build

    return operation


equal_bits = _compared("==")
"""A uint64 whose bit k is 1 where numbers[first + k] == wanted, of uint16 numbers, for k = 0..63."""


def _unary(emit, result, operand):
    """Return a compiled function of one value, whose LLVM code comes from `emit(builder, value)`.

    `operand` is the Numba type of the value, and `result` that of the result.
    """

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
    """Return a function emit(builder, block), for `_unary`, that calls the LLVM function `name`.

    `result` is the LLVM type of the function's result.
    """

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

# The 1 lets LLVM assume that the word is not 0; all callers have tested this.
lowest_bit = _unary(
    lambda builder, word: builder.cttz(word, ir.Constant(ir.IntType(1), 1)), types.int64, types.uint64
)
"""The index (0..63) of the lowest set bit of a uint64 that is not 0."""

bit_count = _unary(lambda builder, word: builder.ctpop(word), types.int64, types.uint64)
"""The number of set bits of a uint64."""

plus = _binary("add")
"""Sums the words of two blocks."""


@intrinsic
def _product(typing, a, b):
    def build(context, builder, signature, arguments):
        halves = ir.Constant(_VECTOR, [2**32 - 1] * WORDS)
        return builder.mul(*(builder.and_(factor, halves) for factor in arguments))

    return block_type(block_type, block_type), build


def _of_two(operation, instruction):
    """Let Numba compile Python's `operation` on two blocks as `instruction`.

    Either of the two may be a uint64, which stands for a block of eight equal words.
    """

    @overload(operation)
    def define(a, b):
        if isinstance(a, BlockType) and isinstance(b, BlockType):
            return lambda a, b: instruction(a, b)
        if isinstance(a, BlockType) and b == types.uint64:
            return lambda a, b: instruction(a, fill(b))
        if a == types.uint64 and isinstance(b, BlockType):
            return lambda a, b: instruction(fill(a), b)


_of_two(operator.and_, _binary("and_"))
_of_two(operator.or_, _binary("or_"))
_of_two(operator.xor, _binary("xor"))
_of_two(operator.rshift, _binary("lshr"))
_of_two(operator.lshift, _binary("shl"))
_of_two(operator.mul, _product)  # only of the lower 32 bits of the words, which is one instruction


_not = _unary(ir.IRBuilder.not_, block_type, block_type)


@overload(operator.invert)
def _invert(block):
    if isinstance(block, BlockType):
        return lambda block: _not(block)
