// The layout of the data on a GPU, and the distances of all keys (data rows) from a query, as bits.
//
// engine.py explains the engine, and compiles its files as one, with the macros
//   PLANES     bits of a symbol, 1..16            WARPS         warps per block
//   BITS       bits of a distance, 1..15          RESIDENT      blocks per multiprocessor
//   TOLERANCE, WEIGHT_BITS of the rule            SHARED_BYTES  sizeof(Shared), as engine.py knows it
//
// A word holds one bit of 32 keys, and a warp takes a *tile* of 32 words, one per lane. There are
//   columns    [position][plane][word]            the tokens: padding is 0
//   held       [position][symbol / 32]            a bit for each symbol that some key holds there
//   distances  [bit][word]                        from the query that the block walks
// A thread finds the same words whenever the block goes through the tiles: no other thread needs them.

// A loop of constant length, unrolled, so that the arrays in it stay in registers.
#define EACH(index, count) _Pragma("unroll") for (int index = 0; index < (count); ++index)

constexpr int LANES = 32;
constexpr int THREADS = WARPS * LANES;
constexpr int LEVELS = 4;  // consecutive distances that are counted together, a *band*; a power of two
constexpr int LEVEL_BITS = 2;
constexpr int HELD_WORDS = PLANES > 5 ? 1 << (PLANES - 5) : 1;
constexpr unsigned ALL = 0xffffffffu;

static_assert(PLANES <= 16 && BITS <= 15 && LEVELS == 1 << LEVEL_BITS, "limits of the layout");

#if PLANES > 8  // as KernelLayout.token says
typedef unsigned short Token;
#else
typedef unsigned char Token;
#endif

struct Place {
    unsigned short position, symbol;
};

struct Jump {
    unsigned short position, from, to;
};

struct alignas(16) Shared {
    unsigned tally[THREADS][LEVELS];  // how many keys at each distance of a band agree at a place
    Place open[THREADS];              // the places of the candidates that are not decided
    unsigned members[LEVELS];         // how many keys there are at each distance of a band
    unsigned open_count;
    unsigned candidates;              // their number in this step
    unsigned jumps;                   // their number in this step
    int nearest;                      // the distance of the nearest key
};
static_assert(sizeof(Shared) == SHARED_BYTES, "engine.py has another size of shared memory");

struct Keys {
    const unsigned* columns;
    const unsigned* held;
    const int* constants;  // the symbol that all keys have at a position; -1: it varies
    int count;
    int words;             // a multiple of 32
    int length;
};

// The data and the memory of a block of threads.
struct Block {
    Shared& shared;
    const Keys& keys;
    unsigned* distances;         // (BITS, words)
    unsigned short* candidates;  // (length,) positions
    Jump* jumps;                 // (length,)
};

__device__ inline int lane() { return threadIdx.x % LANES; }
__device__ inline int warp() { return threadIdx.x / LANES; }

// The offset of an entry in an array with `columns` columns: in 64 bits, which large data need.
__device__ inline size_t at(size_t row, size_t columns, size_t column = 0) { return row * columns + column; }

// The word and the bit that say whether a key holds the symbol.
__device__ inline size_t held_word(int position, unsigned symbol) {
    return at(position, HELD_WORDS, symbol / LANES);
}
__device__ inline unsigned held_bit(unsigned symbol) { return 1u << symbol % LANES; }

// The keys among the 32 of a word that are no padding.
__device__ inline unsigned valid(const Keys& keys, int word) {
    const int left = keys.count - LANES * word;
    return left >= LANES ? ALL : left > 0 ? (1u << left) - 1 : 0u;
}

// A word of 32 copies of one bit of a number.
__device__ inline unsigned spread(unsigned number, int bit) { return 0u - (number >> bit & 1u); }

__device__ inline void read_tokens(const Keys& keys, int position, int word, unsigned (&token)[PLANES]) {
    const unsigned* column = keys.columns + at(at(position, PLANES), keys.words, word);
    EACH(plane, PLANES) token[plane] = column[at(plane, keys.words)];
}

// The keys that do not hold the symbol.
__device__ inline unsigned differing(const unsigned (&token)[PLANES], unsigned symbol) {
    unsigned differs = 0;
    EACH(plane, PLANES) differs |= token[plane] ^ spread(symbol, plane);
    return differs;
}

__device__ inline unsigned differing_at(const Keys& keys, int position, int word, unsigned symbol) {
    unsigned token[PLANES];
    read_tokens(keys, position, word, token);
    return differing(token, symbol);
}

// The sum of three bits, and its carry, for 32 keys: one instruction each.
__device__ inline unsigned odd(unsigned a, unsigned b, unsigned c) { return a ^ b ^ c; }
__device__ inline unsigned most(unsigned a, unsigned b, unsigned c) { return (a & b) | (c & (a | b)); }

// Adds to 32 distances the numbers whose two lowest bits are `ones` and `twos`, and whose others are `sign`.
__device__ inline void add(unsigned (&distance)[BITS], unsigned ones, unsigned twos, unsigned sign) {
    unsigned carry = 0;
    EACH(bit, BITS) {
        const unsigned term = bit == 0 ? ones : bit == 1 ? twos : sign, old = distance[bit];
        distance[bit] = odd(old, term, carry);
        carry = most(old, term, carry);
    }
}

// Updates `nearest` by the nearest key of a warp's tile; every tile has a key.
__device__ inline void find_nearest(const Block& block, const unsigned (&distance)[BITS], int word) {
    unsigned nearest_keys = valid(block.keys, word);
    int nearest = 0;
    EACH(i, BITS) {
        const int bit = BITS - 1 - i;
        const unsigned nearer = nearest_keys & ~distance[bit];
        if (__any_sync(ALL, nearer != 0)) nearest_keys = nearer;
        else nearest |= 1 << bit;
    }
    if (lane() == 0) atomicMin(&block.shared.nearest, nearest);
}

__device__ inline void forget_nearest(Shared& shared) {
    if (threadIdx.x == 0) shared.nearest = 1 << BITS;
    __syncthreads();
}

// Counts the distances of all keys from `state` (length,). Constant columns are left out: they would change
// all distances by the same number, and so no level.
__device__ void measure(const Block& block, const unsigned short* state) {
    const Keys& keys = block.keys;
    forget_nearest(block.shared);
    for (int word = threadIdx.x; word < keys.words; word += THREADS) {
        unsigned distance[BITS] = {};
        for (int first = 0; first < keys.length; first += 3) {
            unsigned differs[3];
            EACH(i, 3) {
                const int position = first + i;
                const bool varies = position < keys.length && keys.constants[position] < 0;
                differs[i] = varies ? differing_at(keys, position, word, state[position]) : 0;
            }
            const unsigned(&d)[3] = differs;
            add(distance, odd(d[0], d[1], d[2]), most(d[0], d[1], d[2]), 0);
        }
        EACH(bit, BITS) block.distances[at(bit, keys.words, word)] = distance[bit];
        find_nearest(block, distance, word);
    }
}

// Updates the distances after jumps: + 1 for keys with the old symbol, - 1 for keys with the new one.
__device__ void move(const Block& block, int jumps) {
    const Keys& keys = block.keys;
    forget_nearest(block.shared);
    for (int word = threadIdx.x; word < keys.words; word += THREADS) {
        unsigned distance[BITS];
        EACH(bit, BITS) distance[bit] = block.distances[at(bit, keys.words, word)];
        for (int i = 0; i < jumps; ++i) {
            const Jump jump = block.jumps[i];
            unsigned token[PLANES];
            read_tokens(keys, jump.position, word, token);
            const unsigned farther = ~differing(token, jump.from), nearer = ~differing(token, jump.to);
            add(distance, farther | nearer, nearer, nearer);  // + 1, or - 1 in two's complement
        }
        EACH(bit, BITS) block.distances[at(bit, keys.words, word)] = distance[bit];
        find_nearest(block, distance, word);
    }
}
