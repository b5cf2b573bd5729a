/*
 * prep_data.h - scalars, densities and points of prep as functions of the seed, and where in the
 * arrays they lie.
 *
 * A scalar is zero, one or FULL (any other). Each has a point in vector L; those with a bit in
 * density a also one in A, those in density b one in B (in G1 and in G2). Points of A and B are
 * numbered without gaps: the RANK of a scalar in A is the number of set bits of a before it.
 */
#ifndef PS_PREP_DATA_H
#define PS_PREP_DATA_H

#include "internal.h"
#include "limbs.h"

enum param { ONE, FULL, RUN, DENSITY_A, DENSITY_B, FULL_B, BRANCHES, CHUNK };
enum branches { BRANCHY, BRANCH_FREE };
enum vector { L, A, B, N_VECTORS };
enum array {
    AUX, /* scalars */
    DENSITY, /* words of a, then of b */
    RANK, /* of the first scalar of each chunk, in A and B; then of the end */
    POINT_L,
    POINT_A,
    POINT_B1,
    POINT_B2,
    BITS, /* full scalars, one bitmap a vector: classify */
    MASK, /* the same over all circuits, here one: merge */
    ONES, /* scalars that are one, one bitmap a vector: fill */
    COUNT, /* of mask bits of each chunk and vector: merge; before each: decide */
    TAIL_SCALAR, /* the full scalars of L, A and B and their points, without gaps: fill */
    TAIL_G1, /* L, A, B */
    TAIL_G2, /* B */
    N_ARRAYS
};
/* ps_ctx.words: scalars; points of each vector; full ones of each; chunks. */
enum ctx_word { POINTS, FULLS = POINTS + N_VECTORS, N_CHUNKS = FULLS + N_VECTORS };
/* ps_thread.words: steps made. */
enum thread_word { MADE };

#define PER 10000u /* what shares are given in */
#define SCALAR_WORDS 4u
#define G1_WORDS 12u
#define G2_WORDS 24u

/* One in Montgomery form, as scalars are kept: 2^256 modulo the group order. */
static const uint64_t montgomery_one[SCALAR_WORDS] = FR_ONE;

/* The n <= 64 bits of a bitmap from position `at` on. */
static inline uint64_t bits_at(const uint64_t *bitmap, uint64_t at, uint32_t n)
{
    uint32_t low = (uint32_t)(at % 64);
    if (n == 0) /* may be at the end */
        return 0;
    uint64_t bits = bitmap[at / 64] >> low;
    if (low + n > 64)
        bits |= bitmap[at / 64 + 1] << (64 - low);
    return n < 64 ? bits & ~(~0ull << n) : bits;
}

/* ---- places --------------------------------------------------------------------------------- */

static uint64_t n_scalars(const ps_ctx *ctx)
{
    return ctx->words[POINTS + L];
}

/* Words of a vector's bitmap, and where it begins in an array of three; each begins a line. */
static uint64_t bitmap_words(const ps_ctx *ctx, uint32_t vector)
{
    return (ctx->words[POINTS + vector] + 63) / 64;
}

static uint64_t bitmap_start(const ps_ctx *ctx, uint32_t vector)
{
    uint64_t start = 0;
    for (uint32_t v = 0; v < vector; v++)
        start += (bitmap_words(ctx, v) + 7) / 8 * 8;
    return start;
}

/* Elements before a vector's in an array of three tails. */
static uint64_t tail_start(const ps_ctx *ctx, uint32_t vector)
{
    uint64_t start = 0;
    for (uint32_t v = 0; v < vector; v++)
        start += ctx->words[FULLS + v];
    return start;
}

/* Scalars of a chunk, in words of 64. */
static void chunk_words(const ps_ctx *ctx, uint64_t chunk, uint64_t *first, uint64_t *last)
{
    uint64_t each = ctx->values[CHUNK].number / 64, all = n_scalars(ctx) / 64;
    *first = chunk * each;
    *last = *first + each < all ? *first + each : all;
}

/* ---- contents ------------------------------------------------------------------------------- */

/* One run of full scalars lies anywhere in each block of this many. */
static uint64_t block_scalars(const ps_ctx *ctx)
{
    return ctx->values[RUN].number * PER / ctx->values[FULL].number;
}

/* Which of the scalars 64 word to 64 word + 63 are full. */
static uint64_t full_word(const ps_ctx *ctx, uint64_t word)
{
    uint64_t bits = 0, run = ctx->values[RUN].number, from = 64 * word, to = from + 64;
    if (ctx->values[FULL].number == 0)
        return 0;
    uint64_t size = block_scalars(ctx), free = size - run + 1;
    for (uint64_t block = from / size; block * size < to; block++) {
        uint64_t start = block * size + ps_hash(ctx->seed + 1, block) % free, end = start + run;
        start = start > from ? start : from;
        end = end < to ? end : to;
        if (start < end)
            bits |= ~0ull >> (64 - (end - start)) << (start - from);
    }
    return bits;
}

/* A share of PER as a bound of 32 random bits. */
static uint64_t bound(uint64_t share, uint64_t per)
{
    return (share << 32) / per;
}

/* Which are one: of those that are not full, which get the rest of the share. */
static uint64_t ones_word(const ps_ctx *ctx, uint64_t word, uint64_t full)
{
    uint64_t bits = 0, share = ctx->values[ONE].number, rest = PER - ctx->values[FULL].number;
    uint64_t limit = rest ? bound(share, rest) : 0;
    for (uint64_t i = 0; i < 64; i++)
        bits |= (uint64_t)((ps_hash(ctx->seed + 2, 64 * word + i) >> 32) < limit) << i;
    return bits & ~full;
}

/* Density a, and density b with another share of full scalars than of all. */
static void density_words(const ps_ctx *ctx, uint64_t word, uint64_t full, uint64_t *a, uint64_t *b)
{
    const ps_value *values = ctx->values;
    uint64_t all = values[DENSITY_B].number, of_full = values[FULL_B].number;
    uint64_t share = values[FULL].number, others = all * PER - share * of_full;
    uint64_t limit_a = bound(values[DENSITY_A].number, PER), limit_full = bound(of_full, PER);
    uint64_t limit_b = share < PER ? bound(others, (PER - share) * PER) : 0;
    *a = *b = 0;
    for (uint64_t i = 0; i < 64; i++) {
        uint64_t random = ps_hash(ctx->seed + 3, 64 * word + i);
        *a |= (uint64_t)((random & UINT32_MAX) < limit_a) << i;
        *b |= (uint64_t)(random >> 32 < (full >> i & 1 ? limit_full : limit_b)) << i;
    }
}

/* A full scalar; below 2^254, and neither zero nor one. */
static void full_scalar(const ps_ctx *ctx, uint64_t i, uint64_t *out)
{
    for (uint64_t k = 0; k < SCALAR_WORDS; k++)
        out[k] = ps_hash(ctx->seed + 4, SCALAR_WORDS * i + k);
    out[0] |= 1ull << 63; /* montgomery_one has this bit clear */
    out[3] >>= 2;
}

/* Point i of an array: any bytes, as no arithmetic is done on them. */
static void make_point(const ps_ctx *ctx, uint32_t array, uint64_t i, uint64_t *out)
{
    uint64_t n = array == POINT_B2 ? G2_WORDS : G1_WORDS;
    for (uint64_t k = 0; k < n; k++)
        out[k] = ps_hash(ctx->seed + array + 16, n * i + k);
}

/* ---- how many there are ---------------------------------------------------------------------- */

typedef struct {
    uint64_t points[N_VECTORS], fulls[N_VECTORS];
} prep_counts;

/* Adds those of words [first, last). */
static void count_words(const ps_ctx *ctx, uint64_t first, uint64_t last, prep_counts *sum)
{
    for (uint64_t word = first; word < last; word++) {
        uint64_t full = full_word(ctx, word), a, b;
        density_words(ctx, word, full, &a, &b);
        sum->points[L] += 64;
        sum->points[A] += (uint64_t)__builtin_popcountll(a);
        sum->points[B] += (uint64_t)__builtin_popcountll(b);
        sum->fulls[L] += (uint64_t)__builtin_popcountll(full);
        sum->fulls[A] += (uint64_t)__builtin_popcountll(full & a);
        sum->fulls[B] += (uint64_t)__builtin_popcountll(full & b);
    }
}

#endif
