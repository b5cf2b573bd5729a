/* msm_bytes.h - the bytes of a pass, counted from the digits that it really meets. */
#ifndef PS_MSM_BYTES_H
#define PS_MSM_BYTES_H

#include "msm_job.h"

typedef struct {
    uint64_t digit_bytes; /* bytes that hold the digits of all points, zero digits too */
    uint64_t accesses; /* digits that are not zero */
    uint64_t first_uses; /* that find their bucket empty */
    uint64_t walked; /* buckets walked */
    uint64_t streamed; /* points in tiles that have bits */
} msm_counts;

/* seen: a bit for each bucket of each row, zero before and after. */
static void msm_count_slice(const msm_grid *grid, uint64_t n, uint64_t slice,
                            const uint64_t *montgomery, uint64_t *seen, msm_counts *counts)
{
    const uint64_t row_buckets = 1ull << grid->window;
    msm_tile tile = msm_tile_of(grid, n, slice);
    for (uint64_t i = tile.first; i < tile.last; i++) {
        uint64_t scalar[FR_LIMBS];
        msm_plain(scalar, montgomery + FR_LIMBS * i);
        for (uint32_t row = 0; row < grid->ny; row++) {
            tile = msm_tile_of(grid, n, (uint64_t)row * grid->nx + slice);
            uint64_t digit = msm_digit(scalar, 0, tile.bit, tile.bits);
            if (!digit)
                continue;
            uint64_t place = row * row_buckets + digit, bit = 1ull << place % 64;
            counts->accesses++;
            counts->first_uses += !(seen[place / 64] & bit);
            seen[place / 64] |= bit;
        }
    }
    memset(seen, 0, (grid->ny * row_buckets + 63) / 64 * 8);
    for (uint32_t row = 0; row < grid->ny; row++) {
        tile = msm_tile_of(grid, n, (uint64_t)row * grid->nx + slice);
        uint64_t points = tile.last - tile.first;
        if (!tile.bits)
            continue;
        counts->digit_bytes += points * ((tile.bit % 8 + tile.bits + 7) / 8);
        counts->streamed += points;
        counts->walked += (1ull << tile.bits) - 1;
    }
}

/* What each part reads, writes and updates:
 *   conversion  a scalar in, a scalar out
 *   gather      the digit; of points with a digit that is not zero the point, and the bucket: all
 *               of it updated, but on first use only zz, which says that it is empty; the rest
 *               is just written
 *   walk        of a bucket in use x and y read, zzz and zz read and cleared; of an empty one zz
 *               read and cleared, zzz cleared
 *   fold        a sum for each tile in, one out
 * A zero digit costs neither point nor bucket. */
static void msm_bytes(ps_work *work, const msm_counts *counts, uint64_t n, uint64_t tiles,
                      uint64_t point, uint64_t bucket)
{
    const uint64_t scalar = 8 * FR_LIMBS, quarter = bucket / 4;
    uint64_t again = counts->accesses - counts->first_uses;
    uint64_t empty = counts->walked - counts->first_uses;
    work->read_bytes = n * scalar + counts->digit_bytes + counts->accesses * point +
                       counts->first_uses * 2 * quarter + tiles * bucket;
    work->written_bytes =
        n * scalar + counts->first_uses * 3 * quarter + empty * quarter + (tiles + 1) * bucket;
    work->updated_bytes = again * bucket + counts->first_uses * 3 * quarter + empty * quarter;
}

#endif
