/*
 * internal.h - what kernels and policies may call besides libc. Names no kernel and no policy.
 */
#ifndef PS_INTERNAL_H
#define PS_INTERNAL_H

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "pagestorm.h"

#define PS_COUNT(rows) ((uint32_t)(sizeof(rows) / sizeof((rows)[0])))
#define PS_LINE 64u

/* Bits of ps_variant.needs. */
#define PS_ISA_AVX2 (1ull << 0) /* with FMA */
#define PS_ISA_AVX512 (1ull << 1) /* F, DQ, BW, VL */
#define PS_ISA_BMI2_ADX (1ull << 2)
#define PS_ISA_NEON (1ull << 3)
#define PS_ISA_X86 (1ull << 4) /* SSE2 and the like: any x86-64 */

static inline uint64_t ps_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Bytes each of n_arrays equal per-thread arrays may have so that all fit size_bytes with padding,
 * rounded down to a multiple of granule; 0 where not even one granule fits. */
uint64_t ps_slice_bytes(const ps_ctx *ctx, uint32_t n_arrays, uint64_t granule);

/* [first, last) of n items that belong to `thread` when items are dealt out in contiguous shares of
 * whole granules. */
void ps_share(const ps_ctx *ctx, uint32_t thread, uint64_t n, uint64_t granule, uint64_t *first,
              uint64_t *last);

/* Wait until the schedule allows `bytes` more; returns at once where the actor is not paced. */
void ps_pace_wait(const ps_ctx *ctx, ps_thread *thread, uint64_t bytes);
static inline void ps_pace(const ps_ctx *ctx, ps_thread *thread, uint64_t bytes)
{
    if (ctx->pace_bytes_per_s > 0)
        ps_pace_wait(ctx, thread, bytes);
}

/* Counter-based random bits: a function of seed and counter alone (splitmix64's finaliser). */
static inline uint64_t ps_hash(uint64_t seed, uint64_t counter)
{
    uint64_t x = seed + 0x9e3779b97f4a7c15u * (counter + 1);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* printf into a reason; returns code, so that `return ps_refuse(why, EINVAL, "...")` reads well. */
int ps_refuse(char *why, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* ---- for page policies (evidence.c) -------------------------------------------------------- */

/* Anonymous private mapping of `bytes` aligned to `align`; at `where` exactly unless NULL. */
int ps_map_aligned(void *where, uint64_t bytes, uint64_t align, int extra_flags, void **out);
/* Present bytes of the range and, of those, bytes mapped by PMD-or-larger entries. ENOTSUP before
 * Linux 6.7. */
int ps_pagemap_scan(const void *start, uint64_t bytes, uint64_t *present, uint64_t *huge);
/* Sums over the mappings that lie in the range, from /proc/self/smaps. kernel_page: of the first. */
typedef struct {
    uint64_t rss, anon_huge, private_hugetlb, kernel_page;
} ps_smaps;
int ps_smaps_range(const void *start, uint64_t bytes, ps_smaps *out);
/* Bytes of the range in naturally aligned compound pages of at least page_bytes, by pagemap and
 * kpageflags; EPERM without root. */
int ps_folio_bytes(const void *start, uint64_t bytes, uint64_t page_bytes, uint64_t *known,
                   uint64_t *matching);

/* Policies and kernels are found by symbol: one list a file, named after it. */
typedef struct {
    const ps_policy *rows;
    uint32_t n_rows;
} ps_policy_list;

#endif
