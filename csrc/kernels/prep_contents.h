/* prep_contents.h - what the arrays of prep hold before and after a pass. */
#ifndef PS_PREP_CONTENTS_H
#define PS_PREP_CONTENTS_H

#include "prep_data.h"

/* Chunks that a thread fills and checks, and what comes before them. */
static prep_counts own_chunks(const ps_ctx *ctx, uint32_t thread, uint64_t *first, uint64_t *last)
{
    uint64_t word, end;
    prep_counts before = {{0}, {0}};
    ps_share(ctx, thread, ctx->words[N_CHUNKS], 1, first, last);
    chunk_words(ctx, *first, &word, &end);
    if (*first < *last)
        count_words(ctx, 0, word, &before);
    return before;
}

/* ---- before --------------------------------------------------------------------------------- */

static void make_scalars(const ps_ctx *ctx, uint64_t word, uint64_t full, uint64_t ones,
                         uint64_t *out)
{
    for (uint64_t i = 0; i < 64; i++, out += SCALAR_WORDS) {
        if (full >> i & 1)
            full_scalar(ctx, 64 * word + i, out);
        else if (ones >> i & 1)
            memcpy(out, montgomery_one, sizeof(montgomery_one));
        else
            memset(out, 0, sizeof(montgomery_one));
    }
}

/* All bits of a bitmap set, except behind its end: no result looks like that. */
static void spoil_bitmaps(const ps_ctx *ctx, uint32_t thread, uint64_t *words)
{
    for (uint32_t v = L; v <= B; v++) {
        uint64_t first, last, n = bitmap_words(ctx, v), bits = ctx->words[POINTS + v];
        uint64_t *bitmap = words + bitmap_start(ctx, v);
        ps_share(ctx, thread, n, 512, &first, &last);
        memset(bitmap + first, 0xff, (last - first) * 8);
        if (first < last && last == n && bits % 64)
            bitmap[n - 1] = ~(~0ull << bits % 64);
    }
}

static void make_points(const ps_ctx *ctx, uint32_t thread, uint32_t array, uint64_t n)
{
    uint64_t first, last, size = array == POINT_B2 ? G2_WORDS : G1_WORDS;
    ps_share(ctx, thread, n, 64, &first, &last);
    for (uint64_t i = first; i < last; i++)
        make_point(ctx, array, i, (uint64_t *)ctx->threads[thread].arrays[array] + size * i);
}

static int generate(ps_ctx *ctx, uint32_t thread, char *why)
{
    void *const *arrays = ctx->threads[thread].arrays;
    uint64_t first, last, *rank = arrays[RANK], *density = arrays[DENSITY];
    prep_counts before = own_chunks(ctx, thread, &first, &last);
    (void)why;
    for (uint64_t chunk = first; chunk < last; chunk++) {
        uint64_t word, end;
        rank[2 * chunk] = before.points[A];
        rank[2 * chunk + 1] = before.points[B];
        chunk_words(ctx, chunk, &word, &end);
        for (; word < end; word++) {
            uint64_t full = full_word(ctx, word), *a = &density[word];
            uint64_t *b = &density[bitmap_words(ctx, L) + word];
            make_scalars(ctx, word, full, ones_word(ctx, word, full),
                         (uint64_t *)arrays[AUX] + 64 * SCALAR_WORDS * word);
            density_words(ctx, word, full, a, b);
            before.points[A] += (uint64_t)__builtin_popcountll(*a);
            before.points[B] += (uint64_t)__builtin_popcountll(*b);
        }
    }
    if (first < last && last == ctx->words[N_CHUNKS]) {
        rank[2 * last] = before.points[A];
        rank[2 * last + 1] = before.points[B];
    }
    make_points(ctx, thread, POINT_L, ctx->words[POINTS + L]);
    make_points(ctx, thread, POINT_A, ctx->words[POINTS + A]);
    make_points(ctx, thread, POINT_B1, ctx->words[POINTS + B]);
    make_points(ctx, thread, POINT_B2, ctx->words[POINTS + B]);
    spoil_bitmaps(ctx, thread, arrays[BITS]);
    spoil_bitmaps(ctx, thread, arrays[MASK]);
    spoil_bitmaps(ctx, thread, arrays[ONES]);
    for (uint32_t array = TAIL_SCALAR; array <= TAIL_G2; array++) {
        ps_share(ctx, thread, ctx->bytes[array] / 8, 512, &first, &last);
        if (first < last)
            memset((uint64_t *)arrays[array] + first, 0xff, (last - first) * 8);
    }
    return 0;
}

/* ---- after ---------------------------------------------------------------------------------- */

static int wrong(char *why, const char *what, uint32_t vector, uint64_t index)
{
    return ps_refuse(why, EBADMSG, "%s of %c are wrong at %llu", what, "lab"[vector],
                     (unsigned long long)index);
}

static bool points_equal(const ps_ctx *ctx, uint32_t array, uint64_t i, const uint64_t *found)
{
    uint64_t want[G2_WORDS];
    make_point(ctx, array, i, want);
    return memcmp(want, found, (array == POINT_B2 ? G2_WORDS : G1_WORDS) * 8) == 0;
}

/* Entry `at` of a vector's tails is scalar i, with point `rank`. */
static bool tails_are_right(const ps_ctx *ctx, uint32_t thread, uint32_t vector, uint64_t at,
                            uint64_t i, uint64_t rank)
{
    void *const *arrays = ctx->threads[thread].arrays;
    uint64_t scalar[SCALAR_WORDS], entry = tail_start(ctx, vector) + at;
    const uint64_t *scalars = arrays[TAIL_SCALAR], *g1 = arrays[TAIL_G1], *g2 = arrays[TAIL_G2];
    full_scalar(ctx, i, scalar);
    return memcmp(scalar, scalars + SCALAR_WORDS * entry, sizeof(scalar)) == 0 &&
           points_equal(ctx, POINT_L + vector, rank, g1 + G1_WORDS * entry) &&
           (vector != B || points_equal(ctx, POINT_B2, rank, g2 + G2_WORDS * at));
}

/* One word of scalars, bit by bit, against what the seed says of it. */
static int check_word(const ps_ctx *ctx, uint32_t thread, uint64_t word, prep_counts *before,
                      char *why)
{
    void *const *arrays = ctx->threads[thread].arrays;
    uint64_t full = full_word(ctx, word), ones = ones_word(ctx, word, full);
    uint64_t there[N_VECTORS] = {~0ull, 0, 0};
    density_words(ctx, word, full, &there[A], &there[B]);
    for (uint32_t v = L; v <= B; v++) {
        uint64_t want_full = 0, want_ones = 0, rank = before->points[v], start;
        uint32_t n = 0;
        for (uint64_t i = 0; i < 64; i++) {
            if (!(there[v] >> i & 1))
                continue;
            if (full >> i & 1) {
                if (!tails_are_right(ctx, thread, v, before->fulls[v], 64 * word + i, rank + n))
                    return wrong(why, "tails", v, before->fulls[v]);
                before->fulls[v]++;
            }
            want_full |= (full >> i & 1) << n;
            want_ones |= (ones >> i & 1) << n;
            n++;
        }
        start = bitmap_start(ctx, v);
        if (bits_at((uint64_t *)arrays[BITS] + start, rank, n) != want_full)
            return wrong(why, "bits", v, rank);
        if (bits_at((uint64_t *)arrays[MASK] + start, rank, n) != want_full)
            return wrong(why, "mask bits", v, rank);
        if (bits_at((uint64_t *)arrays[ONES] + start, rank, n) != want_ones)
            return wrong(why, "ones", v, rank);
        before->points[v] += n;
    }
    return 0;
}

static int check(ps_ctx *ctx, uint32_t thread, char *why)
{
    uint64_t first, last;
    const ps_thread *own = &ctx->threads[thread];
    if (own->words[MADE] != own->steps)
        return ps_refuse(why, EBADMSG, "thread %u made %llu steps of %llu", thread,
                         (unsigned long long)own->words[MADE], (unsigned long long)own->steps);
    prep_counts before = own_chunks(ctx, thread, &first, &last);
    int code = 0;
    for (uint64_t chunk = first; chunk < last && !code; chunk++) {
        uint64_t word, end;
        chunk_words(ctx, chunk, &word, &end);
        for (; word < end && !code; word++)
            code = check_word(ctx, thread, word, &before, why);
    }
    return code;
}

#endif
