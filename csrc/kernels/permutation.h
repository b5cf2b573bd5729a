/*
 * permutation.h - a random-looking bijection of [0, n) that is computed both ways, not stored.
 *
 * Rounds of an invertible multiply and an invertible shift on the next power of two; a result
 * outside [0, n) goes through again until it falls inside, which keeps the map one-to-one. So a
 * table that is permuted by it can be written in address order by any thread, without a shuffle.
 */
#ifndef PS_PERMUTATION_H
#define PS_PERMUTATION_H

#include "internal.h"

/* Low bits reach high ones by the multiply, high bits low ones by the shift: two rounds mix all
 * into all, the other two hide the lattice of the first. */
#define PERMUTATION_ROUNDS 4

typedef struct {
    uint64_t n, mask;
    uint32_t shift; /* at least half the bits, so that the shift is its own inverse */
    uint64_t multiplier[PERMUTATION_ROUNDS], inverse[PERMUTATION_ROUNDS],
        addend[PERMUTATION_ROUNDS];
} permutation;

static inline permutation make_permutation(uint64_t seed, uint64_t n)
{
    permutation p = {.n = n};
    uint32_t bits = n > 1 ? 64u - (uint32_t)__builtin_clzll(n - 1) : 1;
    p.mask = ~0ull >> (64 - bits);
    p.shift = (bits + 1) / 2;
    for (uint32_t r = 0; r < PERMUTATION_ROUNDS; r++) {
        uint64_t m = ps_hash(seed, 2 * r) | 1, inverse = m;
        for (int doubling = 0; doubling < 5;
             doubling++) /* Newton: 3, 6, 12, 24, 48, 96 bits right */
            inverse *= 2 - m * inverse;
        p.multiplier[r] = m;
        p.inverse[r] = inverse;
        p.addend[r] = ps_hash(seed, 2 * r + 1);
    }
    return p;
}

static inline uint64_t permute(const permutation *p, uint64_t x)
{
    do {
        for (uint32_t r = 0; r < PERMUTATION_ROUNDS; r++) {
            x = (x * p->multiplier[r] + p->addend[r]) & p->mask;
            x ^= x >> p->shift;
        }
    } while (x >= p->n);
    return x;
}

static inline uint64_t unpermute(const permutation *p, uint64_t x)
{
    do {
        for (uint32_t r = PERMUTATION_ROUNDS; r-- > 0;) {
            x ^= x >> p->shift;
            x = (x - p->addend[r]) * p->inverse[r] & p->mask;
        }
    } while (x >= p->n);
    return x;
}

#endif
