// Steps 3 and 4 of Algorithm 1 on a GPU: the integer weights of the rule, and their sums over agreeing keys.

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
