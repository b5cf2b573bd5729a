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
#include <unistd.h>

#include "pagestorm.h"

#define PS_COUNT(rows) ((uint32_t)(sizeof(rows) / sizeof((rows)[0])))
#define PS_LINE 64u

/* Bits of ps_variant.needs. */
#define PS_ISA_AVX2 (1ull << 0) /* with FMA */
#define PS_ISA_AVX512 (1ull << 1) /* F, DQ, BW, VL */
#define PS_ISA_BMI2_ADX (1ull << 2)
#define PS_ISA_NEON (1ull << 3)
#define PS_ISA_X86 (1ull << 4) /* SSE2 and the like: any x86-64 */
#define PS_ISA_VPOPCNT (1ull << 5) /* AVX512_VPOPCNTDQ: bits of each 64-bit lane counted */

static inline uint64_t ps_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t ps_round_up(uint64_t n, uint64_t to)
{
    return (n + to - 1) / to * to;
}

static inline uint64_t ps_base_page(void)
{
    return (uint64_t)sysconf(_SC_PAGESIZE);
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

/* ---- for page policies: obtaining memory (map.c, sysfs.c) ----------------------------------- */

/* Anonymous private mapping of `bytes` aligned to `align` (a power of two, at least the base page);
 * at `where` exactly unless NULL, and never over another mapping (EEXIST): who maps again inside a
 * region of his own unmaps first. pre: bytes is a multiple of the page that extra_flags ask for. */
int ps_map_aligned(void *where, uint64_t bytes, uint64_t align, int extra_flags, void **out);
/* The same for policies without a pool: aligned to page_bytes at least, with madvise(advice).
 * EINVAL where `bytes` is no multiple of page_bytes. */
int ps_map_advised(void *where, uint64_t bytes, uint64_t page_bytes, int advice, void **out);

/* First line of a small file without its newline; errno where it cannot be read. */
int ps_read_line(const char *path, char *line, size_t size);
/* What one PMD entry maps: the size of a transparent huge page. */
uint64_t ps_pmd_bytes(void);
/* Whether a mapping with MADV_HUGEPAGE may get transparent pages of this size: 0; EPERM where a
 * setting forbids them, with the command that would allow them; ENOTSUP with a reason. */
int ps_thp_allowed(uint64_t page_bytes, char *why);
/* Whether a mapping without any madvise may get transparent huge pages of whatever size: EPERM with
 * the setting that says so; else 0. */
int ps_thp_unasked(char *why);

/* ---- for page policies: looking at memory (evidence.c, smaps.c, folios.c) -------------------- */

/* Bytes of a range (any, not only whole pages) by how they are mapped. */
typedef struct {
    uint64_t small; /* by entries below the PMD */
    uint64_t huge; /* by PMD-or-larger entries: THP or hugetlb */
    uint64_t zero; /* to the shared zero page, of any size: not counted above */
    const char *source; /* "pagemap_scan", "smaps"; "" where neither can be read */
} ps_backing;
/* PAGEMAP_SCAN, or smaps where the kernel has none. Never fails: all zero with source "". */
void ps_backing_of(const void *start, uint64_t bytes, ps_backing *out);
/* Evidence of a policy that promises memory mapped by entries of PMD size, or by smaller ones. */
void ps_evidence_of(const void *start, uint64_t bytes, bool huge, ps_evidence *out);
/* Exact for any range. ENOTSUP before Linux 6.7; other errno where /proc hides the file. */
int ps_pagemap_scan(const void *start, uint64_t bytes, ps_backing *out);

/* The same from /proc/self/smaps, which has sums of whole mappings only (and the kernel merges
 * neighbours of equal kind): each field is what must lie in the range at the least. Exact where the
 * range covers its mappings, or where they are all of one kind and fully touched. */
typedef struct {
    uint64_t small; /* neither PMD-mapped nor hugetlb; the zero page is in no field */
    uint64_t huge; /* AnonHugePages */
    uint64_t hugetlb;
    uint64_t hugetlb_page; /* page size of the hugetlb mappings; 0: none, or they differ */
} ps_smaps;
int ps_smaps_range(const void *start, uint64_t bytes, ps_smaps *out);

/* Bytes present, and of those bytes in naturally aligned, wholly mapped folios of exactly
 * page_bytes, by pagemap and kpageflags, which see mTHP. EPERM without root. page_bytes: 2 to 512
 * base pages, else EINVAL. */
int ps_folio_bytes(const void *start, uint64_t bytes, uint64_t page_bytes, uint64_t *known,
                   uint64_t *matching);

/* Policies and kernels are found by symbol: one list a file, named after it. */
typedef struct {
    const ps_policy *rows;
    uint32_t n_rows;
} ps_policy_list;

#endif
