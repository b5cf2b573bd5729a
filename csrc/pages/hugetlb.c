/* Pages from the hugetlb pools, one row a size. */
#include <sys/mman.h>

#include "internal.h"

static int available(const ps_policy *self, char *why)
{
    unsigned long long kib = self->page_bytes / 1024;
    char path[96], line[32];
    unsigned long long reserved;
    snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/hugepages-%llukB/nr_hugepages", kib);
    int code = ps_read_line(path, line, sizeof(line));
    if (code == ENOENT)
        return ps_refuse(why, ENOTSUP, "this CPU or kernel has no hugetlb pages of %s (no %s)",
                         self->name, path);
    if (code)
        return ps_refuse(why, ENOTSUP, "cannot read %s: %s", path, strerror(code));
    if (sscanf(line, "%llu", &reserved) != 1)
        return ps_refuse(why, ENOTSUP, "no number in %s: %s", path, line);
    if (!reserved)
        return ps_refuse(why, ENOMEM,
                         "the %s hugetlb pool is empty: run with --reserve-hugepages, or as root: "
                         "echo N > %s (N pages)",
                         self->name, path);
    return 0;
}

/* Never MAP_NORESERVE: it maps more than the pool has, and a touch then kills. */
static int map(const ps_policy *self, void *where, uint64_t bytes, void **out)
{
    if (bytes % self->page_bytes)
        return EINVAL;
    int size_bits = __builtin_ctzll(self->page_bytes) << MAP_HUGE_SHIFT;
    return ps_map_aligned(where, bytes, self->page_bytes, MAP_HUGETLB | size_bits, out);
}

/* From smaps: PAGEMAP_SCAN sees that a page is huge, not how large. */
static int evidence(const ps_policy *self, const void *start, uint64_t bytes, ps_evidence *out)
{
    *out = (ps_evidence){.total_bytes = bytes};
    ps_smaps sums;
    if (ps_smaps_range(start, bytes, &sums))
        return 0; /* unknown */
    bool one_size = sums.hugetlb_page || !sums.hugetlb;
    out->known_bytes = sums.small + sums.huge + (one_size ? sums.hugetlb : 0);
    out->matching_bytes = sums.hugetlb_page == self->page_bytes ? sums.hugetlb : 0;
    strcpy(out->source, "smaps");
    return 0;
}

#define ROW(size, bytes)                                                                           \
    {                                                                                              \
        .name = size,                                                                              \
        .summary = size " pages from the hugetlb pool (MAP_HUGETLB)",                              \
        .page_bytes = bytes,                                                                       \
        .hugetlb = true,                                                                           \
        .available = available,                                                                    \
        .map = map,                                                                                \
        .evidence = evidence,                                                                      \
    }

static const ps_policy rows[] = {
    ROW("2m", 1ull << 21),
    ROW("1g", 1ull << 30),
};

const ps_policy_list ps_policies_hugetlb = {.rows = rows, .n_rows = PS_COUNT(rows)};
