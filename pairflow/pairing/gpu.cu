// Algorithm 1 on a GPU, by the rule of levels.py, bit for bit. gpu.py says how it works and how fast, and
// compiles this file after rng.cu with the macros
//   LENGTH     N, positions of a row                   QUERIES  queries per block (at most 32)
//   PLANES     bits of a symbol, 1..16                 KEYS     keys per thread
//   CHUNK      groups of positions summed at a time    WARPS    warps per block
//   SUM        double or long long: holds integers below 2^53 exactly; whichever the device adds faster
//   DENSE      of 32 keys, with a weight: if more, all 32 are added without looking for them
//   BY_LEVEL   keys with a weight, per level: if more, levels are added instead of keys
//   NEAR_WORDS words of bits, one for each slice of keys; slices beyond them share bits
//   RESIDENT   blocks per multiprocessor               SHARED_BYTES  sizeof(Shared), as gpu.py knows it
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
constexpr int FAR = 1 << 14;  // beyond any distance; with N added it still fits 16 bits
constexpr unsigned ALL = 0xffffffffu;

static_assert(LENGTH <= 4096 && PLANES <= 16 && QUERIES <= LANES && CHUNK <= GROUPS, "limits of the layout");

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
static_assert(sizeof(Shared) == SHARED_BYTES, "gpu.py and gpu.cu disagree about shared memory");

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

// ---- step 3: the integer weights, points 3 and 4 of the rule

__device__ inline SUM weight_of(double entry, double scale) {
    return (SUM)floor(__dmul_rn(entry, scale));  // the product is exact: scale is a power of two
}

__device__ void weigh(Shared& shared, int query, const double* table, int keys) {
    const unsigned* count = shared.count[query];
    int nearest = 0;
    while (count[nearest] == 0) ++nearest;
    long long left = keys;
    double total = 0;
    int kept = 0;
    while (left > 0) {
        total = __dadd_rn(total, __dmul_rn((double)count[nearest + kept], table[kept]));
        left -= count[nearest + kept];
        ++kept;
        if (left > 0 && __dmul_rn((double)left, table[kept]) <= __dmul_rn(TOLERANCE, total)) break;
    }
    // total = m * 2^e with 1/2 <= m < 1, and total >= 1
    const int exponent = (int)(__double_as_longlong(total) >> 52) - 1022;
    const double scale = __longlong_as_double((long long)(1023 + WEIGHT_BITS - exponent) << 52);
    long long sum = 0;
    for (int level = 0; level < kept; ++level)
        sum += count[nearest + level] * (long long)weight_of(table[level], scale);
    shared.nearest[query] = nearest;
    shared.last[query] = nearest + kept - 1;
    shared.scale[query] = scale;
    shared.total[query] = sum;
}

// ---- step 4: agreement_i = sum_m W(m) [d_m^i = z^i]; lanes become positions, a word holds 32 keys

// What the two kinds of SUM do each in their way. Under a condition __dadd_rn stays one instruction, where +
// becomes an addition and two selections.
__device__ inline double plus(double a, double b) { return __dadd_rn(a, b); }
__device__ inline long long plus(long long a, long long b) { return a + b; }
__device__ inline void add_to(double* sum, double term) { atomicAdd(sum, term); }
__device__ inline void add_to(long long* sum, long long term) {
    atomicAdd(reinterpret_cast<uint64*>(sum), (uint64)term);
}

// Whether these 32 keys agree with z at this lane's position of `group`, one bit each.
__device__ inline unsigned agreeing(const unsigned* column, int group, const unsigned (&state)[PLANES]) {
    unsigned differs = 0;
    EACH(plane, PLANES) differs |= column[plane * WIDTH + group * LANES + lane()] ^ state[plane];
    return ~differs;
}

__device__ inline void add_key(SUM w, unsigned key, const unsigned (&agrees)[CHUNK], SUM (&sum)[CHUNK]) {
    EACH(c, CHUNK) if (agrees[c] & (1u << key)) sum[c] = plus(sum[c], w);
}

// Key by key: `weight` (32,) of the keys, `alive` has a bit for each that is not 0.
__device__ inline void add_keys(unsigned alive, const SUM* weight, const unsigned (&agrees)[CHUNK],
                                SUM (&sum)[CHUNK]) {
    if (__popc(alive) > DENSE) {
        EACH(pair, LANES / 2) {
            const Two w = reinterpret_cast<const Two*>(weight)[pair];
            add_key(w.first, 2 * pair, agrees, sum);
            add_key(w.second, 2 * pair + 1, agrees, sum);
        }
        return;
    }
    for (; alive; alive &= alive - 1) {
        const int key = __ffs(alive) - 1;
        add_key(weight[key], key, agrees, sum);
    }
}

// The number of ones. A full adder makes two words of three: POPC is four times as slow as LOP3.
__device__ inline int ones(const unsigned (&word)[KEYS]) {
    int count = 0;
    EACH(i, KEYS / 3) {
        const unsigned a = word[3 * i], b = word[3 * i + 1], c = word[3 * i + 2];
        count += __popc(a ^ b ^ c) + 2 * __popc((a & b) | (c & (a | b)));
    }
    EACH(i, KEYS % 3) count += __popc(word[KEYS - 1 - i]);
    return count;
}

// Level by level: `level` (KEYS,) of this lane's keys, `weight` (kept,) of the levels.
__device__ inline void add_levels(const int (&level)[KEYS], int kept, const SUM* weight,
                                  const unsigned (&agrees)[KEYS][CHUNK], SUM (&sum)[CHUNK]) {
    for (int now = 0; now < kept; ++now) {
        unsigned members[KEYS];
        EACH(k, KEYS) members[k] = __ballot_sync(ALL, level[k] == now);
        const SUM w = weight[now];
        EACH(c, CHUNK) {
            unsigned agreeing_members[KEYS];
            EACH(k, KEYS) agreeing_members[k] = agrees[k][c] & members[k];
            sum[c] += w * ones(agreeing_members);  // exact, fused or not
        }
    }
}

// One query and the slice of keys from `first` on, which warp `measured_by` measured. Warps add to the same
// agreement: exact in any order.
__device__ void add_slice(const Keys& keys, Shared& shared, int first, int measured_by, int query,
                          const double* table, SUM* agreement) {
    SUM* weight = shared.weight[warp()];
    const int nearest = shared.nearest[query], kept = shared.last[query] - nearest + 1;
    const double scale = shared.scale[query];
    int level[KEYS], survivors = 0;
    unsigned alive[KEYS];
    EACH(k, KEYS) {
        level[k] = shared.distance[measured_by][query][k * LANES + lane()] - nearest;
        alive[k] = __ballot_sync(ALL, level[k] < kept);
        survivors += __popc(alive[k]);
    }
    const bool by_level = kept <= LANES && survivors > BY_LEVEL * kept;
    if (by_level) {
        weight[lane()] = lane() < kept ? weight_of(table[lane()], scale) : 0;
    } else {
        EACH(k, KEYS)
            weight[k * LANES + lane()] = level[k] < kept ? weight_of(table[level[k]], scale) : 0;
    }
    __syncwarp();
    const unsigned* column = keys.columns + (size_t)(first / LANES) * PLANES * WIDTH;
#pragma unroll 1
    for (int group = 0; group < GROUPS; group += CHUNK) {
        unsigned state[CHUNK][PLANES], agrees[KEYS][CHUNK];
        SUM sum[CHUNK];
        EACH(c, CHUNK) {
            const int own = min(group + c, GROUPS - 1);  // the last chunk may reach beyond the last group
            sum[c] = 0;
            // z's bit at this lane's position, 32 times
            EACH(plane, PLANES) state[c][plane] = 0u - (shared.state[own][query][plane] >> lane() & 1u);
            EACH(k, KEYS) agrees[k][c] =
                alive[k] ? agreeing(column + (size_t)k * PLANES * WIDTH, own, state[c]) : 0;
        }
        if (by_level) {
            add_levels(level, kept, weight, agrees, sum);
        } else {
            EACH(k, KEYS) add_keys(alive[k], weight + k * LANES, agrees[k], sum);
        }
        EACH(c, CHUNK) {
            const int position = (group + c) * LANES + lane();
            if (position < LENGTH && sum[c] != 0) add_to(&agreement[position], sum[c]);
        }
    }
    __syncwarp();
}

// The distances of a warp's slice, into shared memory; returns a bit for each query to which a key matters.
__device__ unsigned measure_again(const Keys& keys, Shared& shared, int first) {
    int distance[KEYS][QUERIES];
    measure(keys, shared, first, distance);
    unsigned queries = 0;
    EACH(q, QUERIES) {
        bool near = false;
        EACH(k, KEYS) near |= distance[k][q] <= shared.last[q];
        if (!__any_sync(ALL, near)) continue;
        queries |= 1u << q;
        EACH(k, KEYS) shared.distance[warp()][q][k * LANES + lane()] = (unsigned short)distance[k][q];
    }
    return queries;
}

// Every n-th bit, from the lowest on.
__device__ constexpr unsigned every(int n) {
    unsigned bits = 0;
    for (int bit = 0; bit < 32; bit += n) bits |= 1u << bit;
    return bits;
}

// The warps measure a slice each, then share the queries of one slice after another: its columns stay cached.
__device__ void add_agreement(const Keys& keys, Shared& shared, const double* table, SUM* agreement) {
    for (int round = 0; round < keys.stride; round += WARPS * SLICE) {
        const int own = round + warp() * SLICE;
        // No key has a weight where none was counted.
        const bool counted = own < keys.stride && (slice_word(shared, own) & slice_bit(own));
        const unsigned queries = counted ? measure_again(keys, shared, own) : 0;
        if (lane() == 0) shared.waiting[warp()] = queries;
        __syncthreads();
        for (int slice = 0; slice < WARPS; ++slice) {
            const unsigned mine = every(WARPS) << (warp() + WARPS - slice) % WARPS;  // of the queries
            for (unsigned waiting = shared.waiting[slice] & mine; waiting; waiting &= waiting - 1) {
                const int query = __ffs(waiting) - 1;
                SUM* sums = agreement + (size_t)query * LENGTH;
                add_slice(keys, shared, round + slice * SLICE, slice, query, table, sums);
            }
        }
        __syncthreads();
    }
}

// ---- step 5: the jumps; a warp takes one group of one query at a time

__device__ inline bool leaves(const Words& words, SUM agreement, long long total, double rate) {
    return uniform(words) < __dmul_rn(rate, __ddiv_rn((double)agreement, (double)total));
}

__device__ void pack_state(Shared& shared, int group, int query, unsigned symbol) {
    EACH(plane, PLANES) {
        const unsigned word = __ballot_sync(ALL, symbol >> plane & 1u);
        if (lane() == 0) shared.state[group][query][plane] = word;
    }
}

__device__ void jump(Shared& shared, unsigned short* states, SUM* agreement, const uint64* row_numbers,
                     unsigned step, double rate, uint64 seed, unsigned others) {
    for (int task = warp(); task < QUERIES * GROUPS; task += WARPS) {
        const int query = task / GROUPS, group = task % GROUPS, position = group * LANES + lane();
        if (shared.last[query] < 0) continue;
        const size_t at = (size_t)query * LENGTH + position;
        unsigned symbol = 0;
        bool moves = false;
        if (position < LENGTH) {
            symbol = states[at];
            const Words words = philox(position, step, row_numbers[query], seed);
            moves = leaves(words, __ldcg(&agreement[at]), shared.total[query], rate);
            if (moves) {
                const unsigned other = choose(words, others);
                symbol = other + (other >= symbol);
                states[at] = (unsigned short)symbol;
            }
            agreement[at] = 0;
        }
        const unsigned jumps = __popc(__ballot_sync(ALL, moves));
        if (lane() == 0) atomicAdd(&shared.jumps[query], jumps);
        pack_state(shared, group, query, symbol);
    }
}

// ---- the kernels

// Walks QUERIES rows per block from the data at t = 1 to the source at t = 0. `states` (queries, N) is in and
// out, `row_numbers` (queries,), `agreement` (queries, N) is zero before and after. `rates` (T,), `tables`
// (T, N + 1) and `reaches` (T,), a level that no kept one lies beyond, are the rule's. `others` is K - 1.
extern "C" __global__ void __launch_bounds__(WARPS * LANES, RESIDENT)
walk(const unsigned* rows, const unsigned* columns, int keys_count, int stride, unsigned short* states,
     const uint64* row_numbers, SUM* agreement, int queries, const double* rates, const double* tables,
     const int* reaches, unsigned steps, uint64 seed, unsigned others) {
    extern __shared__ double dynamic_shared[];
    Shared& shared = *reinterpret_cast<Shared*>(dynamic_shared);
    const Keys keys = {rows, columns, keys_count, stride};
    const size_t start = (size_t)blockIdx.x * QUERIES;
    const int present = min(queries - (int)start, QUERIES);
    states += start * LENGTH;
    agreement += start * LENGTH;
    if (threadIdx.x < QUERIES) {
        const int query = threadIdx.x;
        shared.nearest[query] = query < present ? LENGTH : -FAR;  // not known yet: count everything
        shared.last[query] = query < present ? 0 : -1;
        shared.jumps[query] = 0;
    }
    for (int task = warp(); task < QUERIES * GROUPS; task += WARPS) {
        const int query = task / GROUPS, group = task % GROUPS, position = group * LANES + lane();
        const bool inside = query < present && position < LENGTH;
        pack_state(shared, group, query, inside ? states[(size_t)query * LENGTH + position] : 0u);
    }
    for (unsigned step = steps; step > 0; --step) {
        const double* table = tables + (size_t)(step - 1) * (LENGTH + 1);
        count_levels(keys, shared, reaches[step - 1]);
        if ((int)threadIdx.x < present) {
            weigh(shared, threadIdx.x, table, keys_count);
            shared.jumps[threadIdx.x] = 0;
        }
        __syncthreads();
        add_agreement(keys, shared, table, agreement);
        jump(shared, states, agreement, row_numbers + start, step, rates[step - 1], seed, others);
    }
}

// Packs `tokens` (keys_count, N) for `walk`; one warp per 32 keys and group of positions.
extern "C" __global__ void pack(const unsigned short* tokens, int keys_count, int stride, unsigned* rows,
                                unsigned* columns) {
    const int task = blockIdx.x * WARPS + warp();
    const int block = task / GROUPS, group = task % GROUPS;  // of keys, of positions
    if (block >= stride / LANES) return;
    for (int i = 0; i < LANES; ++i) {
        const int key = block * LANES + i, position = group * LANES + i;
        const int own_key = block * LANES + lane(), own_position = group * LANES + lane();
        const unsigned along_row =
            key < keys_count && own_position < LENGTH ? tokens[(size_t)key * LENGTH + own_position] : 0u;
        const unsigned along_column =
            own_key < keys_count && position < LENGTH ? tokens[(size_t)own_key * LENGTH + position] : 0u;
        for (int plane = 0; plane < PLANES; ++plane) {
            const unsigned row = __ballot_sync(ALL, along_row >> plane & 1u);
            const unsigned column = __ballot_sync(ALL, along_column >> plane & 1u);
            if (lane() == 0) rows[(size_t)(group * PLANES + plane) * stride + key] = row;
            if (lane() == 0) columns[((size_t)block * PLANES + plane) * WIDTH + position] = column;
        }
    }
}
