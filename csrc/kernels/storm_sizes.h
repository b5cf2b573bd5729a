/* storm_sizes.h - how large the chunks of storm are, and how many a pass has. */
#ifndef PS_STORM_SIZES_H
#define PS_STORM_SIZES_H

#include "storm_methods.h"

enum param { METHOD, CHUNK_SIZE, SIZES, FILL, TABLES, RELEASES };
enum sizes { SIZES_FIXED, SIZES_PROVER };

#define CHUNK_DEFAULT (2u << 20)
/* A pass is about this many bytes, at most so many releases, unless the user says how many. */
#define PASS_BYTES (8u << 20)
#define PASS_RELEASES 256u

/* What one partition of a Groth16 prover frees, MB, in the order it does: witness and a copy of it;
 * the three result vectors; assignment and two bitmaps; three bitmaps, three tails of scalars, four
 * of points; three masks and a copy of scalars. */
static const uint16_t prover_mb[] = {
    4295, 4170, 4170, 4170, 4170, 4170, 16,  16, 16, 16, 4,
    56,   56,   46,   167,  167,  139,  278, 12, 12, 12, 46,
};
#define PROVER_N PS_COUNT(prover_mb)
#define PROVER_LARGEST_MB 4295u
/* Chunks of the mix are multiples of this part of the largest, but of 2 MiB at most: the mix is the
 * same whatever its pages, and keeps its shape. */
#define GRAINS 32u
#define GRAIN_MAX (2u << 20)

static inline uint64_t chunk_bytes(const ps_ctx *ctx, uint64_t ticket)
{
    uint64_t largest = ctx->words[LARGEST];
    if (ctx->values[SIZES].number == SIZES_FIXED)
        return largest;
    return ps_round_up(largest * prover_mb[ticket % PROVER_N] / PROVER_LARGEST_MB,
                       ctx->words[GRAIN]);
}

/* How much of a chunk is used: its front, as of a vector with room to spare. */
static inline uint64_t filled_bytes(const ps_ctx *ctx, uint64_t bytes)
{
    return ps_round_up(bytes * ctx->values[FILL].number / 100, ctx->words[PAGE]);
}

static inline int size_prover(ps_ctx *ctx, char *why)
{
    uint64_t page = ctx->words[PAGE], budget = ctx->size_bytes / ctx->n_threads, grain = page;
    if (ctx->values[CHUNK_SIZE].number != CHUNK_DEFAULT)
        return ps_refuse(why, EINVAL, "chunk belongs to sizes=fixed; sizes=prover has its own");
    if (budget < GRAINS * page)
        return ps_refuse(why, EINVAL, "%u threads with the prover's chunks need at least %llu B",
                         ctx->n_threads, (unsigned long long)(GRAINS * page * ctx->n_threads));
    while (grain < GRAIN_MAX && grain * 2 <= budget / GRAINS)
        grain *= 2;
    ctx->words[GRAIN] = grain;
    ctx->words[LARGEST] = budget / grain * grain;
    ctx->words[SMALLEST] = grain;
    return 0;
}

static inline int size_fixed(ps_ctx *ctx, char *why)
{
    uint64_t page = ctx->words[PAGE], chunk = ctx->values[CHUNK_SIZE].number;
    if (chunk % page)
        return ps_refuse(why, EINVAL, "chunk is a multiple of %llu B, not %llu",
                         (unsigned long long)page, (unsigned long long)chunk);
    ctx->words[LARGEST] = ctx->words[SMALLEST] = chunk;
    return 0;
}

static inline uint64_t n_releases(const ps_ctx *ctx)
{
    if (ctx->values[RELEASES].number)
        return ctx->values[RELEASES].number;
    if (ctx->values[SIZES].number == SIZES_PROVER)
        return PROVER_N;
    uint64_t n = PASS_BYTES / ctx->words[LARGEST];
    return n > PASS_RELEASES ? PASS_RELEASES : n ? n : 1;
}

#endif
