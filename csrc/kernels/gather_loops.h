/*
 * gather_loops.h - random accesses with a set number of them in flight.
 *
 * Each LANE is a sequence of accesses of which the next one's address needs the last one's data, so
 * that a lane has one access in flight and k lanes have k. The addresses themselves come from the
 * lane's own generator (a linear congruence; its upper bits choose the element) and not from the
 * data: they cost two multiplications and no memory.
 */
#ifndef PS_GATHER_LOOPS_H
#define PS_GATHER_LOOPS_H

#include "internal.h"

enum op { OP_READ, OP_UPDATE, N_OPS };

#define MAX_LANES 32u
#define N_WIDTHS 4u /* elements of 1, 2, 4, 8 words */
#define N_LANES 6u /* 1, 2, 4, ... 32 lanes */

#define LANE_MULTIPLIER 0x5851f42d4c957f2du
#define LANE_ADDEND 0x14057b7ef767814fu

typedef struct {
    uint64_t *data;
    uint64_t n_elements;
    uint64_t state[MAX_LANES];
} gather_job;

/* Returns the sum of all words read (op=read). */
typedef uint64_t gather_body(gather_job *job, uint64_t rounds);

static inline uint64_t lane_next(uint64_t state)
{
    return state * LANE_MULTIPLIER + LANE_ADDEND;
}

static inline uint64_t lane_element(uint64_t state, uint64_t n_elements)
{
    return (uint64_t)((unsigned __int128)state * n_elements >> 64);
}

/* All constants of the caller, so that lanes live in registers as far as there are some. */
static inline __attribute__((always_inline)) uint64_t go_round(gather_job *job, uint64_t rounds,
                                                               const int op, const uint32_t words,
                                                               const uint32_t lanes)
{
    uint64_t *const data = job->data, n = job->n_elements;
    uint64_t state[MAX_LANES], sum = 0, zero = 0;
    /* From here on the compiler does not know that it is zero: what was read is needed. */
    __asm__ volatile("" : "+r"(zero));
#pragma GCC unroll 32
    for (uint32_t lane = 0; lane < lanes; lane++)
        state[lane] = job->state[lane];
    for (uint64_t round = 0; round < rounds; round++) {
#pragma GCC unroll 8
        for (uint32_t lane = 0; lane < lanes; lane++) {
            uint64_t *element = data + lane_element(state[lane], n) * words, all = 0;
#pragma GCC unroll 8
            for (uint32_t w = 0; w < words; w++) {
                uint64_t word = element[w];
                if (op == OP_UPDATE)
                    element[w] = word + 1;
                all += word;
            }
            sum += all;
            state[lane] = lane_next(state[lane]) + (all & zero);
        }
    }
#pragma GCC unroll 32
    for (uint32_t lane = 0; lane < lanes; lane++)
        job->state[lane] = state[lane];
    return sum;
}

#define GATHER_BODY(name, op, words, lanes)                                                        \
    static uint64_t gather_##name##_##words##_##lanes(gather_job *job, uint64_t rounds)            \
    {                                                                                              \
        return go_round(job, rounds, op, words, lanes);                                            \
    }
#define GATHER_WIDTH(name, op, words)                                                              \
    GATHER_BODY(name, op, words, 1)                                                                \
    GATHER_BODY(name, op, words, 2)                                                                \
    GATHER_BODY(name, op, words, 4)                                                                \
    GATHER_BODY(name, op, words, 8)                                                                \
    GATHER_BODY(name, op, words, 16)                                                               \
    GATHER_BODY(name, op, words, 32)
#define GATHER_OP(name, op)                                                                        \
    GATHER_WIDTH(name, op, 1)                                                                      \
    GATHER_WIDTH(name, op, 2)                                                                      \
    GATHER_WIDTH(name, op, 4)                                                                      \
    GATHER_WIDTH(name, op, 8)
GATHER_OP(read, OP_READ)
GATHER_OP(update, OP_UPDATE)

#define LANES_ROW(name, words)                                                                     \
    {gather_##name##_##words##_1, gather_##name##_##words##_2,  gather_##name##_##words##_4,       \
     gather_##name##_##words##_8, gather_##name##_##words##_16, gather_##name##_##words##_32}
#define WIDTH_ROWS(name)                                                                           \
    {LANES_ROW(name, 1), LANES_ROW(name, 2), LANES_ROW(name, 4), LANES_ROW(name, 8)}

/* By op, by log2 of the words, by log2 of the lanes. */
static gather_body *const gather_bodies[N_OPS][N_WIDTHS][N_LANES] = {
    [OP_READ] = WIDTH_ROWS(read),
    [OP_UPDATE] = WIDTH_ROWS(update),
};

#undef GATHER_BODY
#undef GATHER_WIDTH
#undef GATHER_OP
#undef LANES_ROW
#undef WIDTH_ROWS

#endif
