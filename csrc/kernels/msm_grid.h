/*
 * msm_grid.h - how a bucket pass over n points is cut into tiles: nx slices of the points times ny
 * windows of the scalars, by the rule that a published prover library uses.
 */
#ifndef PS_MSM_GRID_H
#define PS_MSM_GRID_H

#include "internal.h"

#define MSM_SCALAR_BITS 255u
#define MSM_WINDOW_MAX 24u

typedef struct {
    uint32_t nx, ny;
    uint32_t window; /* bits of every row but the top one, which has what is left: 0 may be left */
} msm_grid;

static uint32_t msm_bit_length(uint64_t x)
{
    return x ? 64u - (uint32_t)__builtin_clzll(x) : 0;
}

static uint32_t msm_base_window(uint64_t n)
{
    uint32_t log = msm_bit_length(n) - 1;
    return log > 12 ? log - 3 : log > 4 ? log - 2 : log ? 2 : 1;
}

/* Narrower where slices share a row: each slice walks all of its buckets. */
static uint32_t msm_sliced_window(uint32_t base, uint32_t nx)
{
    uint32_t less = msm_bit_length(3u * nx / 2u);
    return base > less ? base - less : 1;
}

static uint32_t msm_rounds(uint32_t window, uint32_t threads)
{
    return (MSM_SCALAR_BITS / window + threads - 1) / threads;
}

/* For `window` of 0 the rule, which one thread and very few points bypass; else that window, and
 * slices where there are more threads than rows. */
static msm_grid msm_grid_of(uint64_t n, uint32_t threads, uint32_t window)
{
    const uint32_t bits = MSM_SCALAR_BITS;
    uint32_t base = msm_base_window(n), nx = 1, w = base;
    if (window || threads < 2 || n < 32) {
        w = window ? window : base;
        uint32_t ny = (bits + w - 1) / w;
        return (msm_grid){.nx = window && threads > ny ? threads / ny : 1, .ny = ny, .window = w};
    }
    if (bits > base * threads) {
        uint32_t less = msm_bit_length(threads / 4);
        if (base + less > 18)
            w = base - less;
        else if (msm_rounds(base + 1, threads) < msm_rounds(base, threads))
            w = base + 1;
    } else {
        nx = 2;
        w = base > 3 ? base - 2 : 1;
        while ((bits / w + 1) * nx < threads) {
            nx++;
            w = msm_sliced_window(base, nx);
        }
        nx--;
        w = msm_sliced_window(base, nx);
    }
    uint32_t ny = bits / w + 1;
    return (msm_grid){.nx = nx, .ny = ny, .window = bits / ny + 1};
}

/* Tiles in the order in which they are taken: the top window first, its slices in order. */
typedef struct {
    uint64_t first, last; /* points */
    uint32_t bit, bits; /* of the scalar: the lowest, and how many */
} msm_tile;

static msm_tile msm_tile_of(const msm_grid *grid, uint64_t n, uint64_t ticket)
{
    uint32_t row = grid->ny - 1 - (uint32_t)(ticket / grid->nx);
    uint64_t slice = ticket % grid->nx;
    uint32_t bit = row * grid->window, left = MSM_SCALAR_BITS - bit;
    return (msm_tile){.first = n / grid->nx * slice,
                      .last = slice + 1 == grid->nx ? n : n / grid->nx * (slice + 1),
                      .bit = bit,
                      .bits = left < grid->window ? left : grid->window};
}

#endif
