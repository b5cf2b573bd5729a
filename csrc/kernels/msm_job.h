/* msm_job.h - what msm asks of an arithmetic, and one tile's work as it is handed over. */
#ifndef PS_MSM_JOB_H
#define PS_MSM_JOB_H

#include "msm_data.h"
#include "msm_grid.h"

enum { MSM_BUCKET_MAX = 384 };

typedef struct {
    const void *points;
    const uint64_t *scalars; /* plain */
    void *buckets;
    msm_tile tile;
    uint64_t ahead; /* prefetch this many points ahead; 0: not */
    uint64_t spins; /* that stand for one addition */
} msm_job;

typedef struct {
    uint32_t point_bytes, bucket_bytes;
    /* Points [first, last) of the whole array at `points`. */
    void (*make)(const msm_data *data, void *points, uint64_t first, uint64_t last);
    /* Add points [first, last) of the tile into the buckets. */
    void (*gather)(const msm_job *job, uint64_t first, uint64_t last);
    /* Buckets [first, last) from high to low into sums[0], every state of that into sums[1]; leaves
     * the buckets empty. sums: two of them, zero at the start. */
    void (*walk)(const msm_job *job, uint64_t first, uint64_t last, void *sums);
    /* The tiles' sums, in the order of the tickets, into one. */
    void (*fold)(const msm_grid *grid, const void *partials, void *result);
    /* Whether the result is that of n points; pre: data is what `make` and the scalars are of. */
    bool (*holds)(const msm_data *data, const msm_grid *grid, uint64_t n, const void *result);
} msm_arithmetic;

/* Bits [bit, bit + bits) of scalar i; bits is at most 24. Reads eight bytes, as few as do for any
 * window. */
static inline uint64_t msm_digit(const uint64_t *scalars, uint64_t i, uint32_t bit, uint32_t bits)
{
    uint32_t byte = bit / 8 < 24 ? bit / 8 : 24;
    uint64_t word;
    memcpy(&word, (const char *)(scalars + FR_LIMBS * i) + byte, sizeof(word));
    return word >> ((bit - 8 * byte) % 64) & ((1ull << bits) - 1);
}

/* Every line of a bucket that is about to be written. */
static inline void msm_prefetch(const char *bucket, uint64_t bytes)
{
    for (const char *line = bucket - (uintptr_t)bucket % PS_LINE; line < bucket + bytes;
         line += PS_LINE)
        __builtin_prefetch(line, 1);
}

#endif
