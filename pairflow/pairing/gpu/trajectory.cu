// A step of Algorithm 1 on a GPU, and the kernels: `pack` lays out the data, `walk` does the rest.

// ---- a step of one query

// What the random numbers of a step depend on besides the position, and what `pairing.rule` says of the step.
struct Step {
    uint64 row, seed;
    unsigned number, others;
    double rate, margin;
    const double* table;

    __device__ Words words(int position) const { return philox(position, number, row, seed); }
    __device__ unsigned another(const Words& words, unsigned symbol) const {
        const unsigned other = choose(words, others);
        return other + (other >= symbol);
    }
};

// Lists the candidates. If no key agrees at a position, w_i is 0; if all do (a constant column), it is 1, and
// the symbol changes at once.
__device__ void find_candidates(const Block& block, const Step& step, unsigned short* state) {
    Shared& shared = block.shared;
    __syncthreads();  // from here on, the last step is over and the nearest key known
    if (threadIdx.x == 0) shared.candidates = shared.jumps = 0;
    __syncthreads();
    for (int position = threadIdx.x; position < block.keys.length; position += THREADS) {
        const Words words = step.words(position);
        if (uniform(words) >= step.rate) continue;
        const unsigned symbol = state[position];
        if (!(block.keys.held[held_word(position, symbol)] & held_bit(symbol))) continue;
        if (block.keys.constants[position] >= 0)
            state[position] = (unsigned short)step.another(words, symbol);
        else
            block.candidates[atomicAdd(&shared.candidates, 1u)] = (unsigned short)position;
    }
    __syncthreads();
}

// Decides the next candidates, one per thread; a candidate that leaves becomes a jump.
__device__ void decide(const Block& block, const Step& step, int first, unsigned short* state) {
    const int own = first + threadIdx.x;
    const bool present = own < (int)block.shared.candidates;
    Place place = {};
    Words words = {};
    if (present) {
        place.position = block.candidates[own];
        place.symbol = state[place.position];
        words = step.words(place.position);
    }
    if (leaves(block, present, place, uniform(words), step.rate, step.margin, step.table)) {
        const unsigned short symbol = (unsigned short)step.another(words, place.symbol);
        block.jumps[atomicAdd(&block.shared.jumps, 1u)] = {place.position, place.symbol, symbol};
        state[place.position] = symbol;
    }
}

__device__ void take_step(const Block& block, const Step& step, unsigned short* state) {
    find_candidates(block, step, state);
    const int candidates = block.shared.candidates;
    for (int first = 0; first < candidates; first += THREADS) decide(block, step, first, state);
    __syncthreads();
    if (block.shared.jumps > 0 && step.number > 1) move(block, block.shared.jumps);
}

// ---- the kernels

// Walks rows from the data at t = 1 to the source at t = 0, a block one row after another. `states` (queries,
// N) is in and out, `row_numbers` (queries,). `rates` (T,), `tables` (T, N + 1) and `margin` are the rule's,
// `others` is K - 1. `distances`, `candidates` and `jumps` are scratch, a share for each block.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
walk(const unsigned* columns, const unsigned* held, const int* constants, int keys_count, int words,
     int length, unsigned short* states, const uint64* row_numbers, int queries, unsigned* distances,
     unsigned short* candidates, Jump* jumps, const double* rates, const double* tables, const double* margin,
     unsigned steps, uint64 seed, unsigned others) {
    extern __shared__ double dynamic_shared[];
    const Keys keys = {columns, held, constants, keys_count, words, length};
    const size_t share = at(blockIdx.x, length);
    const Block block = {*reinterpret_cast<Shared*>(dynamic_shared), keys,
                         distances + at(at(blockIdx.x, BITS), words), candidates + share, jumps + share};
    for (int query = blockIdx.x; query < queries; query += gridDim.x) {
        unsigned short* state = states + at(query, length);
        measure(block, state);
        for (unsigned number = steps; number > 0; --number) {
            const double* table = tables + at(number - 1, length + 1);
            const Step step = {row_numbers[query], seed, number, others, rates[number - 1], *margin, table};
            take_step(block, step, state);
        }
    }
}

// Packs `tokens` (keys_count, N) into `columns` and `held`, which are 0: a block takes 32 keys, its warps share
// the positions.
extern "C" __global__ void pack(const Token* tokens, int keys_count, int words, int length,
                                unsigned* columns, unsigned* held) {
    const int word = blockIdx.x, key = word * LANES + lane();
    for (int position = warp(); position < length; position += WARPS) {
        const bool present = key < keys_count;
        const unsigned symbol = present ? tokens[at(key, length, position)] : 0u;
        if (present) atomicOr(&held[held_word(position, symbol)], held_bit(symbol));
        EACH(plane, PLANES) {
            const unsigned bits = __ballot_sync(ALL, symbol >> plane & 1u);
            if (lane() == 0) columns[at(at(position, PLANES, plane), words, word)] = bits;
        }
    }
}
