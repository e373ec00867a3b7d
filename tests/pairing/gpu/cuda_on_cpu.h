// Runs CUDA kernels on a CPU, slowly, to test their logic where no GPU is: an emulation, for tests only.
//
// The threads of a block are coroutines of one thread. A lane runs until it meets the others of its warp (a
// barrier or a vote), and a warp until it meets the other warps: so a missing barrier lets one warp run far
// ahead (the first one, or the last one if `reversed`), and a barrier that some never reach stops the block,
// which `launch` reports. Blocks run one after another. Nothing here says anything about speed or
// memory spaces, and of all the orders that a GPU may take, two are tried.
#pragma once
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#define __device__
#define __global__
#define __shared__
#define __launch_bounds__(...)

using std::max;
using std::min;

struct Index {
    unsigned x;
};
inline Index threadIdx, blockIdx, blockDim, gridDim;
alignas(16) double dynamic_shared[1 << 15];  // 256 KB

namespace emulation {

constexpr int LANES = 32;
inline bool reversed = false;

struct Thread {
    ucontext_t context;
    std::vector<char> stack = std::vector<char>(1 << 16);
    bool finished = false;
    int waits_at = 0;  // the line of the barrier or vote; negative for a barrier of the whole block
    unsigned vote = 0;
    unsigned result = 0;
};

inline ucontext_t scheduler;
inline std::vector<Thread> threads;
inline std::function<void()> kernel;

inline void run() {
    kernel();
    threads[threadIdx.x].finished = true;
}

// Waits until everyone who takes part has called, and returns their votes, one bit per lane of the own warp.
inline unsigned meet(int line, bool vote) {
    Thread& self = threads[threadIdx.x];
    self.waits_at = line;
    self.vote = vote;
    swapcontext(&self.context, &scheduler);
    return self.result;
}

// Lets the threads [first, last) go on if all of them wait at the same line.
inline bool release(unsigned first, unsigned last, bool of_block) {
    const int line = threads[first].waits_at;
    unsigned votes = 0;
    if (of_block ? line >= 0 : line <= 0) return false;
    for (unsigned i = first; i < last; ++i) {
        if (threads[i].waits_at != line) return false;
        votes |= threads[i].vote << i % LANES;
    }
    for (unsigned i = first; i < last; ++i) {
        threads[i].waits_at = 0;
        threads[i].result = votes;
    }
    return true;
}

inline void resume(unsigned i) {
    if (threads[i].finished || threads[i].waits_at) return;
    threadIdx.x = i;
    swapcontext(&scheduler, &threads[i].context);
}

// Runs 32 threads until all of them are finished or wait for other warps.
inline void run_warp(unsigned first) {
    do {
        for (unsigned i = 0; i < LANES; ++i) resume(first + (reversed ? LANES - 1 - i : i));
    } while (release(first, first + LANES, false));
}

// One block; false if its threads wait for one another for ever.
inline bool run_block() {
    const unsigned count = blockDim.x;
    for (Thread& thread : threads) {
        getcontext(&thread.context);
        thread.context.uc_stack.ss_sp = thread.stack.data();
        thread.context.uc_stack.ss_size = thread.stack.size();
        thread.context.uc_link = &scheduler;
        thread.finished = false;
        thread.waits_at = 0;
        makecontext(&thread.context, run, 0);
    }
    std::memset(dynamic_shared, 0xA5, sizeof dynamic_shared);  // whoever reads before writing shall be seen
    do {
        for (unsigned i = 0; i < count; i += LANES) run_warp(reversed ? count - LANES - i : i);
    } while (release(0, count, true));
    return std::all_of(threads.begin(), threads.end(), [](const Thread& thread) { return thread.finished; });
}

// Runs `body` on `blocks` blocks of `size` threads (a multiple of 32); false: a barrier that not all reached.
inline bool launch(unsigned blocks, unsigned size, std::function<void()> body) {
    threads = std::vector<Thread>(size);
    kernel = std::move(body);
    blockDim.x = size;
    gridDim.x = blocks;
    for (unsigned i = 0; i < blocks; ++i) {
        blockIdx.x = reversed ? blocks - 1 - i : i;
        if (!run_block()) return false;
    }
    return true;
}

}  // namespace emulation

// Macros, for the line: lanes that vote at different places do not meet.
#define __syncthreads() emulation::meet(-__LINE__, false)
#define __syncwarp() emulation::meet(__LINE__, false)
#define __ballot_sync(mask, vote) (static_cast<void>(mask), emulation::meet(__LINE__, (vote) != 0))
#define __any_sync(mask, vote) (__ballot_sync(mask, vote) != 0)

template <typename T, typename U>
T atomicAdd(T* address, U term) {
    const T before = *address;
    *address += (T)term;
    return before;
}
inline unsigned atomicOr(unsigned* address, unsigned bits) {
    const unsigned before = *address;
    *address |= bits;
    return before;
}
inline int atomicMin(int* address, int value) {
    const int before = *address;
    *address = min(before, value);
    return before;
}
inline int __popc(unsigned word) { return __builtin_popcount(word); }

// The sum over the lanes: all have written before one reads, and all have read before one writes again.
inline unsigned lane_values[1024];
inline unsigned __reduce_add_sync(unsigned mask, unsigned value) {
    const unsigned first = threadIdx.x / emulation::LANES * emulation::LANES;
    unsigned sum = 0;
    __atomic_store_n(&lane_values[threadIdx.x], value, __ATOMIC_RELAXED);
    __ballot_sync(mask, false);
    for (unsigned i = first; i < first + emulation::LANES; ++i)
        sum += __atomic_load_n(&lane_values[i], __ATOMIC_RELAXED);
    __ballot_sync(mask, false);
    return sum;
}

// The host rounds to nearest and the test compiles with -ffp-contract=off: one rounding each, as on a GPU.
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline long long __double_as_longlong(double value) {
    long long bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}
inline double __longlong_as_double(long long bits) {
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}
