/* How memory is mapped, by the source that knows most: PAGEMAP_SCAN, else smaps. */
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "internal.h"

/* Linux 6.7's interface under names of our own: the installed headers may be older or newer. */
struct scan_region {
    uint64_t start, end, categories;
};
struct scan_arg {
    uint64_t size, flags;
    uint64_t start, end, walk_end;
    uint64_t regions, n_regions, max_pages;
    uint64_t inverted, all_of, any_of, report;
};
#define SCAN _IOWR('f', 16, struct scan_arg)
#define SCAN_PRESENT (1u << 3)
#define SCAN_ZERO (1u << 5)
#define SCAN_HUGE (1u << 6)

#define REGIONS 64

/* Bytes of [a, b) that lie in [c, d). */
static uint64_t overlap(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    uint64_t from = a > c ? a : c, to = b < d ? b : d;
    return from < to ? to - from : 0;
}

static void add_region(const struct scan_region *region, uint64_t first, uint64_t last,
                       ps_backing *out)
{
    uint64_t bytes = overlap(region->start, region->end, first, last);
    if (region->categories & SCAN_ZERO)
        out->zero += bytes;
    else if (region->categories & SCAN_HUGE)
        out->huge += bytes;
    else
        out->small += bytes;
}

int ps_pagemap_scan(const void *start, uint64_t bytes, ps_backing *out)
{
    *out = (ps_backing){.source = "pagemap_scan"};
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t first = (uintptr_t)start, last = first + bytes;
    struct scan_region regions[REGIONS];
    struct scan_arg arg = {
        .size = sizeof(arg),
        .start = first / page * page,
        .end = (last + page - 1) / page * page,
        .regions = (uintptr_t)regions,
        .n_regions = REGIONS,
        .all_of = SCAN_PRESENT,
        .report = SCAN_PRESENT | SCAN_ZERO | SCAN_HUGE,
    };
    int file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return errno;
    int code = 0;
    while (!code && arg.start < arg.end) {
        int n = ioctl(file, SCAN, &arg);
        if (n < 0)
            code = errno == ENOTTY || errno == EINVAL ? ENOTSUP : errno;
        else if (arg.walk_end <= arg.start) /* would never end */
            code = EIO;
        for (int i = 0; i < n; i++)
            add_region(&regions[i], first, last, out);
        arg.start = arg.walk_end;
    }
    close(file);
    return code;
}

void ps_backing_of(const void *start, uint64_t bytes, ps_backing *out)
{
    if (!ps_pagemap_scan(start, bytes, out))
        return;
    *out = (ps_backing){.source = ""};
    ps_smaps sums;
    if (ps_smaps_range(start, bytes, &sums))
        return;
    *out = (ps_backing){.small = sums.small, .huge = sums.huge + sums.hugetlb, .source = "smaps"};
}

void ps_evidence_of(const void *start, uint64_t bytes, bool huge, ps_evidence *out)
{
    ps_backing backing;
    ps_backing_of(start, bytes, &backing);
    *out = (ps_evidence){
        .matching_bytes = huge ? backing.huge : backing.small,
        .known_bytes = backing.small + backing.huge + backing.zero,
        .total_bytes = bytes,
    };
    snprintf(out->source, sizeof(out->source), "%s", backing.source);
}
