// The decisions of Algorithm 1 on a GPU: which candidates leave, found with as few counts as possible.
//
// A *candidate* is a position whose draw is below the rate. Other positions stay, as w_i <= 1 in point 6 of
// the rule, and nothing is counted for them. Each thread has one. Levels are counted from the nearest on.
// With A_i and S the sums of table[g] over the keys so far that agree at i, and over all keys so far, and R =
// (keys not yet seen) * table[next level],
//
//     A_i / (S + R) <= w_i <= (A_i + R) / (S + R),
//
// because no farther key weighs more than table[next level]. The rule's w_i lies within `margin` of the exact
// quotient. So a draw outside of these bounds, widened by it, is decided. What is still open where the rule
// stops is decided by the rule's integers. The compiler's --fmad=false makes every operation round by itself.

// ---- the numbers of keys in a band, and of keys that agree at the place of an open candidate

// The keys of a warp's tile at each distance of a band. `empty`: no lane has a key at that distance.
struct Members {
    unsigned keys[LEVELS];
    bool empty[LEVELS];
};

// Adds the numbers of the members that are `chosen` to `tally`.
__device__ inline void add_members(const Members& members, unsigned chosen, unsigned* tally) {
    unsigned own = 0;
    EACH(k, LEVELS) {
        if (members.empty[k]) continue;
        const unsigned keys = __reduce_add_sync(ALL, (unsigned)__popc(members.keys[k] & chosen));
        if (lane() == k) own = keys;
    }
    if (own > 0) atomicAdd(&tally[lane()], own);
}

// Counts the keys at the distances LEVELS * band, ..., LEVELS * band + LEVELS - 1.
__device__ void count_band(const Block& block, int band) {
    const Keys& keys = block.keys;
    Shared& shared = block.shared;
    const int open_count = shared.open_count;
    for (int word = threadIdx.x; word < keys.words; word += THREADS) {
        unsigned inside = valid(keys, word), low[LEVEL_BITS] = {};
        EACH(bit, BITS) {
            const unsigned plane = block.distances[at(bit, keys.words, word)];
            if (bit < LEVEL_BITS) low[bit] = plane;
            else inside &= ~(plane ^ spread(band, bit - LEVEL_BITS));
        }
        if (!__any_sync(ALL, inside != 0)) continue;
        Members members;
        EACH(k, LEVELS) {
            members.keys[k] = inside;
            EACH(bit, LEVEL_BITS) members.keys[k] &= ~(low[bit] ^ spread(k, bit));
            members.empty[k] = !__any_sync(ALL, members.keys[k] != 0);
        }
        add_members(members, ALL, shared.members);
        for (int slot = 0; slot < open_count; ++slot) {
            const Place place = shared.open[slot];
            add_members(members, ~differing_at(keys, place.position, word, place.symbol), shared.tally[slot]);
        }
    }
    __syncthreads();
}

// Lists the places of open candidates, with empty tallies; returns the index of this thread's place.
__device__ int list_open(Shared& shared, bool open, Place place) {
    __syncthreads();  // other threads may still read the previous band
    if (threadIdx.x == 0) shared.open_count = 0;
    if (threadIdx.x < LEVELS) shared.members[threadIdx.x] = 0;
    __syncthreads();
    int slot = 0;
    if (open) {
        slot = atomicAdd(&shared.open_count, 1u);
        shared.open[slot] = place;
        EACH(k, LEVELS) shared.tally[slot][k] = 0;
    }
    __syncthreads();
    return slot;
}

// ---- the decision

// The levels so far, as points 2 and 3 of the rule count them.
struct Levels {
    int count = 0;
    long long keys_left;
    double total = 0;
    double rest;  // R above

    __device__ void add(unsigned members, const double* table) {
        total += (double)members * table[count];
        keys_left -= members;
        ++count;
        rest = keys_left > 0 ? (double)keys_left * table[count] : 0;
    }
    __device__ bool complete() const { return rest <= TOLERANCE * total; }
};

// Point 4: 2^(52-e), where total = m * 2^e with 1/2 <= m < 1; total >= 1.
__device__ inline double weight_scale(double total) {
    const int exponent = (int)(__double_as_longlong(total) >> 52) - 1022;
    return __longlong_as_double((long long)(1023 + WEIGHT_BITS - exponent) << 52);
}

__device__ inline long long weight_of(double entry, double scale) {
    return (long long)floor(entry * scale);  // the product is exact: scale is a power of two
}

// Points 4 to 6, for candidates that are still open where the rule stops: whether this thread's leaves.
__device__ bool leaves_exactly(const Block& block, bool open, Place place, double draw, double rate,
                               const double* table, const Levels& levels) {
    const double scale = weight_scale(levels.total);
    const int nearest = block.shared.nearest, end = nearest + levels.count;
    long long agreement = 0, sum = 0;
    for (int band = nearest / LEVELS; band * LEVELS < end; ++band) {
        const int slot = list_open(block.shared, open, place);
        count_band(block, band);
        EACH(k, LEVELS) {
            const int distance = band * LEVELS + k;
            if (distance < nearest || distance >= end) continue;
            const long long weight = weight_of(table[distance - nearest], scale);
            sum += weight * block.shared.members[k];
            if (open) agreement += weight * block.shared.tally[slot][k];
        }
    }
    return open && draw < rate * ((double)agreement / (double)sum);
}

// Whether this thread's candidate leaves, if it has one. All threads of the block call it.
__device__ bool leaves(const Block& block, bool open, Place place, double draw, double rate, double margin,
                       const double* table) {
    Shared& shared = block.shared;
    const int nearest = shared.nearest;
    Levels levels;
    levels.keys_left = block.keys.count;
    double agreement = 0;  // A_i
    bool result = false, complete = false;
    for (int band = nearest / LEVELS; true; ++band) {
        const int slot = list_open(shared, open, place);
        if (shared.open_count == 0) return result;
        if (complete) break;
        count_band(block, band);
        for (int k = max(nearest - band * LEVELS, 0); k < LEVELS && !complete; ++k) {
            if (open) agreement += shared.tally[slot][k] * table[levels.count];
            levels.add(shared.members[k], table);
            complete = levels.complete();
            if (!open) continue;
            const double sum = levels.total + levels.rest;
            result = draw < rate * (agreement / sum - margin);
            open = !result && draw < rate * ((agreement + levels.rest) / sum + margin);
        }
    }
    return leaves_exactly(block, open, place, draw, rate, table, levels) || result;
}
