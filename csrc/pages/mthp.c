/* Transparent pages between base and PMD size (Linux 6.8 and later). */
#include <sys/mman.h>

#include "internal.h"

static int available(const ps_policy *self, char *why)
{
    unsigned long long kib = self->page_bytes / 1024;
    int own = ps_thp_allowed(self->page_bytes, why);
    if (own == ENOTSUP)
        return own;
    /* A fault takes the largest size allowed: any above ours would be used instead. */
    char larger[96] = "", ignored[PS_WHY];
    size_t used = 0;
    for (uint64_t size = self->page_bytes * 2; size <= ps_pmd_bytes(); size *= 2)
        if (!ps_thp_allowed(size, ignored) && used < sizeof(larger))
            used += (size_t)snprintf(larger + used, sizeof(larger) - used, " %llu",
                                     (unsigned long long)size / 1024);
    if (!used)
        return own ? ENOTSUP : 0;
    char enable[64] = "";
    if (own)
        snprintf(enable, sizeof(enable), " && echo madvise > hugepages-%llukB/enabled", kib);
    return ps_refuse(why, ENOTSUP,
                     "needs %llu KiB pages on and larger ones off; as root: "
                     "cd /sys/kernel/mm/transparent_hugepage && for s in%s; "
                     "do echo never > hugepages-${s}kB/enabled; done%s",
                     kib, larger, enable);
}

static int map(const ps_policy *self, void *where, uint64_t bytes, void **out)
{
    return ps_map_advised(where, bytes, self->page_bytes, MADV_HUGEPAGE, out);
}

static int evidence(const ps_policy *self, const void *start, uint64_t bytes, ps_evidence *out)
{
    *out = (ps_evidence){.total_bytes = bytes};
    uint64_t known, matching;
    if (!ps_folio_bytes(start, bytes, self->page_bytes, &known, &matching)) {
        out->known_bytes = known;
        out->matching_bytes = matching;
        strcpy(out->source, "kpageflags");
        return 0;
    }
    /* Only root sees these sizes, but anyone sees that memory has a larger one. */
    ps_backing backing;
    ps_backing_of(start, bytes, &backing);
    if (backing.huge + backing.zero) {
        out->known_bytes = backing.huge + backing.zero;
        snprintf(out->source, sizeof(out->source), "%s", backing.source);
    }
    return 0;
}

#define ROW(kib)                                                                                   \
    {                                                                                              \
        .name = "mthp" #kib "k",                                                                   \
        .summary = "transparent pages of " #kib " KiB (MADV_HUGEPAGE)",                            \
        .page_bytes = kib * 1024u,                                                                 \
        .available = available,                                                                    \
        .map = map,                                                                                \
        .evidence = evidence,                                                                      \
    }

static const ps_policy rows[] = {
    ROW(16), ROW(32), ROW(64), ROW(128), ROW(256), ROW(512), ROW(1024),
};

const ps_policy_list ps_policies_mthp = {.rows = rows, .n_rows = PS_COUNT(rows)};
