// Step 5 of Algorithm 1 on a GPU, the jumps, and the kernels: `pack` lays out the data, `walk` does the rest.

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
