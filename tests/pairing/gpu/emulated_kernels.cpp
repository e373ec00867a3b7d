// The GPU's kernels on a CPU: what Python calls instead of launching a kernel. See cuda_on_cpu.h.
#include "cuda_on_cpu.h"
#include KERNELS

extern "C" void set_reversed(bool reversed) { emulation::reversed = reversed; }

extern "C" bool launch_pack(unsigned blocks, unsigned threads, const unsigned short* tokens, int count,
                            int stride, unsigned* rows, unsigned* columns) {
    return emulation::launch(blocks, threads, [=] { pack(tokens, count, stride, rows, columns); });
}

extern "C" bool launch_walk(unsigned blocks, unsigned threads, const unsigned* rows, const unsigned* columns,
                            int count, int stride, unsigned short* states, const uint64* row_numbers,
                            SUM* agreement, int queries, const double* rates, const double* tables,
                            const int* reaches, unsigned steps, uint64 seed, unsigned others) {
    return emulation::launch(blocks, threads, [=] {
        walk(rows, columns, count, stride, states, row_numbers, agreement, queries, rates, tables, reaches,
             steps, seed, others);
    });
}

// Points 3 and 4 of the rule: fills `weights` (N + 1,) by distance from `count` (N + 1,); returns their sum.
extern "C" long long weigh_levels(const unsigned* count, const double* table, int keys, long long* weights) {
    static Shared shared;
    std::copy(count, count + LENGTH + 1, shared.count[0]);
    weigh(shared, 0, table, keys);
    for (int distance = shared.nearest[0]; distance <= shared.last[0]; ++distance)
        weights[distance] = (long long)weight_of(table[distance - shared.nearest[0]], shared.scale[0]);
    return shared.total[0];
}
