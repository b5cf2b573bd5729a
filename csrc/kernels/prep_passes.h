/*
 * prep_passes.h - the two sweeps of prep over one chunk of scalars, and what lies between them.
 *
 * Chunks are done in any order by any thread, and a bitmap of A or B has words that two chunks
 * share. A chunk leaves the other's bits of such a word alone.
 */
#ifndef PS_PREP_PASSES_H
#define PS_PREP_PASSES_H

#include "prep_data.h"

typedef struct {
    uint64_t *word; /* the one being made */
    uint64_t bits;
    uint32_t low, high; /* bits [low, high) of it are this chunk's so far */
} bit_stream;

static inline bit_stream stream_at(uint64_t *words, uint64_t rank)
{
    uint32_t low = (uint32_t)(rank % 64);
    return (bit_stream){words + rank / 64, 0, low, low};
}

static inline void stream_store(const bit_stream *stream)
{
    if (stream->low == stream->high)
        return;
    uint64_t own = ~0ull >> (64 - (stream->high - stream->low)) << stream->low;
    if (own == ~0ull) {
        *stream->word = stream->bits;
        return;
    }
    __atomic_fetch_and(stream->word, ~own | stream->bits, __ATOMIC_RELAXED);
    __atomic_fetch_or(stream->word, stream->bits, __ATOMIC_RELAXED);
}

/* Appends the n <= 64 lowest bits, the others being zero. */
static inline void stream_put(bit_stream *stream, uint64_t bits, uint32_t n)
{
    stream->bits |= bits << stream->high;
    if (stream->high + n < 64) {
        stream->high += n;
        return;
    }
    uint32_t taken = 64 - stream->high;
    stream->high = 64;
    stream_store(stream);
    stream->word++;
    stream->low = 0;
    stream->high = n - taken;
    stream->bits = taken < 64 ? bits >> taken : 0;
}

typedef struct {
    const uint64_t *aux;
    const uint64_t *density[N_VECTORS]; /* of L: none, every scalar has a bit */
    bit_stream out[N_VECTORS];
    /* fill */
    const uint64_t *mask[N_VECTORS], *point[N_VECTORS], *point_g2;
    uint64_t rank[N_VECTORS];
    uint64_t *tail_scalar[N_VECTORS], *tail_g1[N_VECTORS], *tail_g2;
} prep_job;

static inline bool scalar_is_zero(const uint64_t *s)
{
    return (s[0] | s[1] | s[2] | s[3]) == 0;
}

static inline bool scalar_is_one(const uint64_t *s)
{
    return ((s[0] ^ montgomery_one[0]) | (s[1] ^ montgomery_one[1]) | (s[2] ^ montgomery_one[2]) |
            (s[3] ^ montgomery_one[3])) == 0;
}

/* Keeps the compiler from turning a branch into arithmetic. */
#define BRANCH_STAYS() __asm__ volatile("")

/* The bits of x at the set bits of `where`, moved together. */
static inline uint64_t move_together(uint64_t x, uint64_t where)
{
    uint64_t out = 0;
    for (uint32_t i = 0, at = 0; i < 64; i++) {
        uint64_t there = where >> i & 1;
        out |= (x >> i & there) << (at & 63);
        at += (uint32_t)there;
    }
    return out;
}

/* ---- classify ------------------------------------------------------------------------------- */

static void classify_branchy(prep_job *job, uint64_t first, uint64_t last)
{
    for (uint64_t word = first; word < last; word++) {
        const uint64_t *s = job->aux + 64 * SCALAR_WORDS * word;
        uint64_t a = job->density[A][word], b = job->density[B][word];
        uint64_t bits_l = 0, bits_a = 0, bits_b = 0;
        uint32_t n_a = 0, n_b = 0;
        for (uint32_t i = 0; i < 64; i++, s += SCALAR_WORDS) {
            uint64_t full = 0;
            if (!scalar_is_zero(s)) {
                BRANCH_STAYS();
                if (!scalar_is_one(s)) {
                    BRANCH_STAYS();
                    full = 1;
                }
            }
            bits_l |= full << i;
            if (a >> i & 1) {
                BRANCH_STAYS();
                bits_a |= full << n_a++;
            }
            if (b >> i & 1) {
                BRANCH_STAYS();
                bits_b |= full << n_b++;
            }
        }
        stream_put(&job->out[L], bits_l, 64);
        stream_put(&job->out[A], bits_a, n_a);
        stream_put(&job->out[B], bits_b, n_b);
    }
}

static void classify_free(prep_job *job, uint64_t first, uint64_t last)
{
    for (uint64_t word = first; word < last; word++) {
        const uint64_t *s = job->aux + 64 * SCALAR_WORDS * word;
        uint64_t a = job->density[A][word], b = job->density[B][word], full = 0;
        for (uint32_t i = 0; i < 64; i++, s += SCALAR_WORDS)
            full |= (uint64_t)(!scalar_is_zero(s) & !scalar_is_one(s)) << i;
        stream_put(&job->out[L], full, 64);
        stream_put(&job->out[A], move_together(full, a), (uint32_t)__builtin_popcountll(a));
        stream_put(&job->out[B], move_together(full, b), (uint32_t)__builtin_popcountll(b));
    }
}

/* ---- fill ----------------------------------------------------------------------------------- */

static inline bool mask_bit(const prep_job *job, uint32_t vector)
{
    uint64_t rank = job->rank[vector];
    return job->mask[vector][rank / 64] >> rank % 64 & 1;
}

/* A full scalar and its points to the ends of a vector's tails. */
static inline void append(prep_job *job, uint32_t vector, const uint64_t *scalar, uint64_t rank)
{
    memcpy(job->tail_scalar[vector], scalar, SCALAR_WORDS * 8);
    job->tail_scalar[vector] += SCALAR_WORDS;
    memcpy(job->tail_g1[vector], job->point[vector] + G1_WORDS * rank, G1_WORDS * 8);
    job->tail_g1[vector] += G1_WORDS;
    if (vector == B) {
        memcpy(job->tail_g2, job->point_g2 + G2_WORDS * rank, G2_WORDS * 8);
        job->tail_g2 += G2_WORDS;
    }
}

static void fill_branchy(prep_job *job, uint64_t first, uint64_t last)
{
    for (uint64_t word = first; word < last; word++) {
        const uint64_t *s = job->aux + 64 * SCALAR_WORDS * word;
        uint64_t bits[N_VECTORS] = {0};
        uint32_t n[N_VECTORS] = {0};
        for (uint32_t i = 0; i < 64; i++, s += SCALAR_WORDS) {
            uint64_t one = 0;
            if (scalar_is_one(s)) {
                BRANCH_STAYS();
                one = 1;
            }
            for (uint32_t v = L; v <= B; v++) {
                if (v != L && !(job->density[v][word] >> i & 1)) {
                    BRANCH_STAYS();
                    continue;
                }
                bits[v] |= one << n[v]++;
                if (mask_bit(job, v)) {
                    BRANCH_STAYS();
                    append(job, v, s, job->rank[v]);
                }
                job->rank[v]++;
            }
        }
        for (uint32_t v = L; v <= B; v++)
            stream_put(&job->out[v], bits[v], n[v]);
    }
}

/* Branches on full scalars only, of which there are few. */
static void fill_free(prep_job *job, uint64_t first, uint64_t last)
{
    for (uint64_t word = first; word < last; word++) {
        const uint64_t *s = job->aux + 64 * SCALAR_WORDS * word;
        uint64_t ones = 0;
        for (uint32_t i = 0; i < 64; i++)
            ones |= (uint64_t)scalar_is_one(s + SCALAR_WORDS * i) << i;
        for (uint32_t v = L; v <= B; v++) {
            uint64_t there = v == L ? ~0ull : job->density[v][word], left = there;
            uint32_t n = (uint32_t)__builtin_popcountll(there), passed = 0;
            uint64_t window = bits_at(job->mask[v], job->rank[v], n);
            stream_put(&job->out[v], v == L ? ones : move_together(ones, there), n);
            for (; window; window &= window - 1) {
                /* The scalar of the mask bit: set bit number `rank` of the density word. */
                uint32_t rank = (uint32_t)__builtin_ctzll(window);
                for (; passed < rank; passed++)
                    left &= left - 1;
                append(job, v, s + SCALAR_WORDS * (uint32_t)__builtin_ctzll(left),
                       job->rank[v] + rank);
            }
            job->rank[v] += n;
        }
    }
}

/* ---- between -------------------------------------------------------------------------------- */

/* Bitmap words that begin between two ranks go to the mask; returns the set bits between them. */
static uint64_t merge_range(const uint64_t *bits, uint64_t *mask, uint64_t from, uint64_t to)
{
    uint64_t first = (from + 63) / 64, last = (to + 63) / 64, sum = 0;
    for (uint64_t word = first; word < last; word++) {
        mask[word] = bits[word];
        sum += (uint64_t)__builtin_popcountll(bits[word]);
    }
    if (from % 64)
        sum += (uint64_t)__builtin_popcountll(bits[from / 64] >> from % 64);
    if (to % 64)
        sum -= (uint64_t)__builtin_popcountll(bits[to / 64] >> to % 64);
    return sum;
}

#endif
