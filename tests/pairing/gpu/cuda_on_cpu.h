// Runs CUDA kernels on a CPU, slowly, to test their logic where no GPU is: an emulation, for tests only.
//
// The threads of a block are coroutines of one thread. A lane runs until it meets the others of its warp (a
// barrier, a vote or a sum), and a warp until it meets the other warps. A barrier that some never reach stops
// the block, which `launch` reports. Blocks run one after another, from the first thread on or, if
// `reversed`, from the last. Nothing here says anything about speed, and of all the orders that a GPU may take, two are
// tried.
//
// Compiled with -fsanitize=thread, an access need not come out wrong to be noticed: each coroutine is a fiber
// of ThreadSanitizer, and only barriers put the accesses of two threads in order. A vote does not, nor does
// the end of a block: two blocks know nothing of each other, and each has shared memory of its own.
// Compiled with -fsanitize=address, a block may touch the shared memory that its launch asks for, and not a
// byte more. A test may leave out the barrier in line `without_line` of `without_file`, to see that this is
// noticed.
#pragma once
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#define UNSEEN __attribute__((no_sanitize("thread")))  // what the emulation does is not what the kernels do
#else
#define UNSEEN
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

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
alignas(4096) double dynamic_shared[1 << 15];  // 256 KB

namespace emulation {

constexpr unsigned LANES = 32, MOST_WARPS = 32;
constexpr size_t STACK = 1 << 16;
inline bool reversed = false;
inline std::string without_file;
inline int without_line = 0;

enum class Kind { vote, sum, warp, block };
constexpr bool is_barrier(Kind kind) { return kind == Kind::warp || kind == Kind::block; }

// Where threads meet.
struct Place {
    int number;
    const char* file;
    int line;
};

struct Thread {
    ucontext_t context;
    void* fiber = nullptr;
    bool finished = false;
    int waits_at = 0;  // the number of the place
    Kind waits_for = Kind::vote;
    unsigned turns[4] = {};  // of each kind
    unsigned value = 0;  // a vote, or a term of a sum
    unsigned result = 0;
};

inline ucontext_t scheduler;
inline Thread* threads;
inline void** fibers;
inline std::function<void()> kernel;

// ---- what ThreadSanitizer is told: who runs, and what comes before what

inline void* scheduler_fiber = nullptr;
inline char of_start, of_end;

// Barriers in turn. Each block has its own, or it would learn of the blocks before it.
struct Barriers {
    char of_block[2], of_warp[MOST_WARPS][2];
};
inline Barriers* barriers = nullptr;

#ifdef __SANITIZE_THREAD__
UNSEEN inline void* this_fiber() { return __tsan_get_current_fiber(); }
UNSEEN inline void* new_fiber() { return __tsan_create_fiber(0); }
UNSEEN inline void end_fiber(void* fiber) { __tsan_destroy_fiber(fiber); }
UNSEEN inline void switch_to(void* fiber) { __tsan_switch_to_fiber(fiber, __tsan_switch_to_fiber_no_sync); }
UNSEEN inline void leave(char& object) { __tsan_release(&object); }
UNSEEN inline void enter(char& object) { __tsan_acquire(&object); }
// Memory that is mapped again has no history.
UNSEEN inline void forget(void* place, size_t bytes) {
    mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
#else
inline void* this_fiber() { return nullptr; }
inline void* new_fiber() { return nullptr; }
inline void end_fiber(void*) {}
inline void switch_to(void*) {}
inline void leave(char&) {}
inline void enter(char&) {}
inline void forget(void*, size_t) {}
#endif

// ---- threads, warps, blocks

// All lanes meet here, whatever the mask is, so it has to name all.
template <unsigned mask>
constexpr void whole_warp() {
    static_assert(mask == 0xffffffff, "the mask of a vote or a sum names all lanes of the warp");
}

UNSEEN inline void run() {
    enter(of_start);
    kernel();
    threads[threadIdx.x].finished = true;
    leave(of_end);
    switch_to(scheduler_fiber);
}

// Waits until everyone who takes part has called; returns the votes of the warp, a bit for each, or the sum.
UNSEEN inline unsigned meet(Kind kind, const Place& place, unsigned value) {
    Thread& self = threads[threadIdx.x];
    if (is_barrier(kind) && place.line == without_line && place.file == without_file) return 0;
    self.waits_at = place.number;
    self.waits_for = kind;
    self.value = value;
    const unsigned turn = self.turns[static_cast<int>(kind)]++ % 2;
    char* const of_warp = barriers->of_warp[threadIdx.x / LANES];
    char& object = kind == Kind::block ? barriers->of_block[turn] : of_warp[turn];
    if (is_barrier(kind)) leave(object);
    switch_to(scheduler_fiber);
    swapcontext(&self.context, &scheduler);
    if (is_barrier(kind)) enter(object);
    return self.result;
}

// Lets the threads [first, last) continue if all of them wait at the same place.
UNSEEN inline bool release(unsigned first, unsigned last, bool of_block) {
    const Thread& one = threads[first];
    const int place = one.waits_at;
    unsigned votes = 0, sum = 0;
    if (place == 0 || (one.waits_for == Kind::block) != of_block) return false;
    for (unsigned i = first; i < last; ++i) {
        if (threads[i].waits_at != place) return false;
        votes |= (threads[i].value != 0 ? 1u : 0u) << i % LANES;
        sum += threads[i].value;
    }
    for (unsigned i = first; i < last; ++i) {
        threads[i].waits_at = 0;
        threads[i].result = one.waits_for == Kind::sum ? sum : votes;
    }
    return true;
}

UNSEEN inline void resume(unsigned i) {
    if (threads[i].finished || threads[i].waits_at) return;
    threadIdx.x = i;
    switch_to(threads[i].fiber);
    swapcontext(&scheduler, &threads[i].context);
}

// Runs 32 threads until all of them are finished or wait for other warps.
UNSEEN inline void run_warp(unsigned first) {
    do {
        for (unsigned i = 0; i < LANES; ++i) resume(first + (reversed ? LANES - 1 - i : i));
    } while (release(first, first + LANES, false));
}

UNSEEN inline void begin(Thread& thread, char* stack, void* fiber) {
    thread = Thread();
    thread.fiber = fiber;
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = stack;
    thread.context.uc_stack.ss_size = STACK;
    thread.context.uc_link = &scheduler;
    makecontext(&thread.context, run, 0);
}

// One block; false if its threads wait for one another for ever.
UNSEEN inline bool run_block(unsigned count, char* stacks, size_t shared_bytes) {
    forget(stacks, count * STACK);
    forget(dynamic_shared, sizeof dynamic_shared);
    delete barriers;
    barriers = new Barriers();
    // Thread i is another fiber in the next block: what thread i did there came before nothing here.
    for (unsigned i = 0; i < count; ++i)
        begin(threads[i], stacks + i * STACK, fibers[(i + blockIdx.x) % count]);
    std::memset(dynamic_shared, 0xA5, shared_bytes);  // whoever reads before writing shall be seen
    leave(of_start);
    do {
        for (unsigned i = 0; i < count; i += LANES) run_warp(reversed ? count - LANES - i : i);
    } while (release(0, count, true));
    bool finished = true;
    for (unsigned i = 0; i < count; ++i) finished &= threads[i].finished;
    return finished;
}

// Runs `body` on `blocks` blocks of `size` threads (a multiple of 32) that share `shared_bytes`; false: a
// barrier that not all reached.
UNSEEN inline bool launch(unsigned blocks, unsigned size, size_t shared_bytes, std::function<void()> body) {
    threads = new Thread[size];
    fibers = new void*[size];
    for (unsigned i = 0; i < size; ++i) fibers[i] = new_fiber();
    char* const stacks = static_cast<char*>(std::aligned_alloc(4096, size * STACK));
    kernel = std::move(body);
    blockDim.x = size;
    gridDim.x = blocks;
    scheduler_fiber = this_fiber();
#ifdef __SANITIZE_ADDRESS__
    char* const end = reinterpret_cast<char*>(dynamic_shared) + shared_bytes;
    __asan_poison_memory_region(end, sizeof dynamic_shared - shared_bytes);
#endif
    bool finished = true;
    for (unsigned i = 0; i < blocks && finished; ++i) {
        blockIdx.x = reversed ? blocks - 1 - i : i;
        finished = run_block(size, stacks, shared_bytes);
    }
    enter(of_end);
    std::free(stacks);
    for (unsigned i = 0; i < size; ++i) end_fiber(fibers[i]);
    delete[] fibers;
    delete[] threads;
    return finished;
}

}  // namespace emulation

// Macros, for the place: lanes that vote at different places do not meet.
#define MEET(kind, value) \
    emulation::meet(emulation::Kind::kind, emulation::Place{__COUNTER__ + 1, __FILE__, __LINE__}, value)
#define __syncthreads() MEET(block, 0)
#define __syncwarp() MEET(warp, 0)
#define __ballot_sync(mask, vote_of_lane) (emulation::whole_warp<(mask)>(), MEET(vote, (vote_of_lane) != 0))
#define __any_sync(mask, vote_of_lane) (__ballot_sync(mask, vote_of_lane) != 0)
#define __reduce_add_sync(mask, term) (emulation::whole_warp<(mask)>(), MEET(sum, term))

// Atomic, as ThreadSanitizer has to see it, but without an order for anything else.
template <typename T, typename Change>
T atomically(T* address, Change change) {
    T before, after;
    __atomic_load(address, &before, __ATOMIC_RELAXED);
    do after = change(before);
    while (!__atomic_compare_exchange(address, &before, &after, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return before;
}
template <typename T, typename U>
T atomicAdd(T* address, U term) {
    return atomically(address, [=](T value) { return (T)(value + (T)term); });
}
inline int atomicMin(int* address, int other) {
    return atomically(address, [=](int value) { return min(value, other); });
}
inline unsigned atomicOr(unsigned* address, unsigned bits) {
    return atomically(address, [=](unsigned value) { return value | bits; });
}
inline int __popc(unsigned word) { return __builtin_popcount(word); }

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
