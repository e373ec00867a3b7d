// Steps 1 and 2 of Algorithm 1 on a GPU: the layout of the data, distances, and how many keys lie at each.
//
// engine.py explains how the whole works and how fast, and compiles its files as one, with the macros
//   LENGTH     N, positions of a row                   QUERIES  queries per block (at most 32)
//   PLANES     bits of a symbol, 1..16                 KEYS     keys per thread
//   CHUNK      groups of positions summed at a time    WARPS    warps per block
//   SUM        double or long long: holds integers below 2^53 exactly; whichever the device adds faster
//   DENSE      of 32 keys, with a weight: if more, all 32 are added without looking for them
//   BY_LEVEL   keys with a weight, per level: if more, levels are added instead of keys
//   NEAR_WORDS words of bits, one for each slice of keys; slices beyond them share bits
//   RESIDENT   blocks per multiprocessor               SHARED_BYTES  sizeof(Shared), as engine.py knows it
//   TOLERANCE, WEIGHT_BITS of the rule
//
// A *group* is 32 positions, one bit each in a word. Tokens come twice, as bits:
//   rows     [group][plane][key]                       32 positions of one key in a word: for distances
//   columns  [key / 32][plane][position]               32 keys of one position in a word: for sums over keys
// `stride`, the number of keys made a multiple of SLICE, bounds both; positions are padded to whole groups.
// Padding is 0 everywhere, so padded positions never differ; padded keys are put out of reach by FAR.

// A loop of constant length, unrolled, so that the arrays in it stay in registers.
#define EACH(index, count) _Pragma("unroll") for (int index = 0; index < (count); ++index)

constexpr int LANES = 32;
constexpr int SLICE = LANES * KEYS;  // keys that a warp compares at a time
constexpr int GROUPS = (LENGTH + LANES - 1) / LANES;
constexpr int WIDTH = GROUPS * LANES;
constexpr int FAR = 1 << 15;  // beyond any distance; with N added it still fits 16 bits
constexpr unsigned ALL = 0xffffffffu;

static_assert(LENGTH <= 1 << 14 && PLANES <= 16 && QUERIES <= LANES && CHUNK <= GROUPS, "limits of the layout");

struct alignas(16) Shared {
    SUM weight[WARPS][SLICE];                        // of the keys, or of the levels, that a warp adds up
    double scale[QUERIES];                           // 2^(52 - e)
    long long total[QUERIES];                        // the sum of all weights
    unsigned state[GROUPS][QUERIES][PLANES];         // z, packed like `rows`
    unsigned count[QUERIES][LENGTH + 1];             // of keys, by distance
    unsigned near[NEAR_WORDS];                       // a bit per slice of keys: one of them was counted
    int nearest[QUERIES];                            // the distance of the nearest key
    int last[QUERIES];                               // the largest distance with a weight; -1: no such query
    int jumps[QUERIES];                              // in the last step
    unsigned waiting[WARPS];                         // a bit per query to which a warp's slice matters
    unsigned short distance[WARPS][QUERIES][SLICE];  // from the keys of each warp's slice
};
static_assert(sizeof(Shared) == SHARED_BYTES, "engine.py has another size of shared memory");

struct alignas(16) Two {
    SUM first, second;
};

struct Keys {
    const unsigned* rows;
    const unsigned* columns;
    int count;
    int stride;
};

__device__ inline int lane() { return threadIdx.x % LANES; }
__device__ inline int warp() { return threadIdx.x / LANES; }

// ---- step 1: the distances of SLICE keys from all queries of the block

__device__ void measure(const Keys& keys, const Shared& shared, int first, int (&distance)[KEYS][QUERIES]) {
    __syncwarp();  // else the compiler keeps all of `state` in registers, and spills
    const int key = first + lane();
    EACH(k, KEYS) EACH(q, QUERIES) distance[k][q] = key + k * LANES < keys.count ? 0 : FAR;
#pragma unroll 1
    for (int group = 0; group < GROUPS; ++group) {
        unsigned row[KEYS][PLANES];
        EACH(plane, PLANES) EACH(k, KEYS)
            row[k][plane] = keys.rows[(size_t)(group * PLANES + plane) * keys.stride + key + k * LANES];
        EACH(q, QUERIES) EACH(k, KEYS) {
            unsigned differs = 0;
            EACH(plane, PLANES) differs |= row[k][plane] ^ shared.state[group][q][plane];
            distance[k][q] += __popc(differs);
        }
    }
}

// ---- step 2: how many keys lie at each distance, as far as it can matter

__device__ inline unsigned& slice_word(Shared& shared, int first) {
    return shared.near[first / SLICE / 32 % NEAR_WORDS];
}
__device__ inline unsigned slice_bit(int first) { return 1u << (first / SLICE % 32); }

__device__ void count_levels(const Keys& keys, Shared& shared, int reach) {
    for (int at = threadIdx.x; at < QUERIES * (LENGTH + 1); at += blockDim.x)
        shared.count[at / (LENGTH + 1)][at % (LENGTH + 1)] = 0;
    for (int at = threadIdx.x; at < NEAR_WORDS; at += blockDim.x) shared.near[at] = 0;
    __syncthreads();  // from here on, the jumps of the last step are seen too
    int distance[KEYS][QUERIES];
    for (int first = warp() * SLICE; first < keys.stride; first += WARPS * SLICE) {
        measure(keys, shared, first, distance);
        bool near = false;
        EACH(q, QUERIES) {
            // The nearest key was at `nearest` and came at most `jumps` further away.
            const int limit = min(shared.nearest[q] + shared.jumps[q] + reach, LENGTH);
            EACH(k, KEYS)
                if (distance[k][q] <= limit) {
                    atomicAdd(&shared.count[q][distance[k][q]], 1u);
                    near = true;
                }
        }
        if (__any_sync(ALL, near) && lane() == 0) atomicOr(&slice_word(shared, first), slice_bit(first));
    }
    __syncthreads();
}
