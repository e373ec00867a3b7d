// The random numbers of rng.py in CUDA: the same bits for the same seed, row, step and position.

typedef unsigned long long uint64;

// The first three of the four output words.
struct Words {
    unsigned w0, w1, w2;
};

__device__ inline Words philox(unsigned position, unsigned step, uint64 row, uint64 seed) {
    unsigned c0 = position, c1 = step, c2 = (unsigned)row, c3 = (unsigned)(row >> 32);
    unsigned k0 = (unsigned)seed, k1 = (unsigned)(seed >> 32);
    for (int round = 0; round < 10; ++round) {
        const uint64 product_0 = (uint64)0xD2511F53u * c0;
        const uint64 product_1 = (uint64)0xCD9E8D57u * c2;
        c0 = (unsigned)(product_1 >> 32) ^ c1 ^ k0;
        c2 = (unsigned)(product_0 >> 32) ^ c3 ^ k1;
        c1 = (unsigned)product_1;
        c3 = (unsigned)product_0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return {c0, c1, c2};
}

// In [0, 1).
__device__ inline double uniform(const Words& words) {
    const uint64 bits = words.w0 | (uint64)words.w1 << 32;
    return (double)(bits >> 11) * 0x1p-53;
}

// In [0, n).
__device__ inline unsigned choose(const Words& words, unsigned n) {
    return (unsigned)((uint64)words.w2 * n >> 32);
}
