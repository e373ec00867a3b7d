// The GPU's kernels on a CPU: what Python calls instead of launching a kernel. See cuda_on_cpu.h.
#include "cuda_on_cpu.h"
#include KERNELS

extern "C" void set_reversed(bool reversed) { emulation::reversed = reversed; }

extern "C" bool launch_pack(unsigned blocks, unsigned threads, const unsigned short* tokens, int count, int words,
                            int length, unsigned* columns, unsigned* held) {
    return emulation::launch(blocks, threads, [=] { pack(tokens, count, words, length, columns, held); });
}

extern "C" bool launch_walk(unsigned blocks, unsigned threads, const unsigned* columns, const unsigned* held,
                            const int* constants, int count, int words, int length, unsigned short* states,
                            const uint64* row_numbers, int queries, unsigned* distances,
                            unsigned short* candidates, Jump* jumps, const double* rates,
                            const double* tables, const double* margin, unsigned steps, uint64 seed,
                            unsigned others) {
    return emulation::launch(blocks, threads, [=] {
        walk(columns, held, constants, count, words, length, states, row_numbers, queries, distances,
             candidates, jumps, rates, tables, margin, steps, seed, others);
    });
}
