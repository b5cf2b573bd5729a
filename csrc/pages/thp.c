/* Transparent huge pages: what one PMD entry maps. */
#include <sys/mman.h>

#include "internal.h"

static int available(const ps_policy *self, char *why)
{
    return ps_thp_allowed(self->page_bytes, why) ? ENOTSUP : 0;
}

static int map(const ps_policy *self, void *where, uint64_t bytes, void **out)
{
    return ps_map_advised(where, bytes, self->page_bytes, MADV_HUGEPAGE, out);
}

static int evidence(const ps_policy *self, const void *start, uint64_t bytes, ps_evidence *out)
{
    (void)self;
    ps_evidence_of(start, bytes, true, out);
    return 0;
}

static ps_policy rows[] = {
    {
        .name = "thp",
        .summary = "transparent huge pages of PMD size (MADV_HUGEPAGE)",
        .available = available,
        .map = map,
        .evidence = evidence,
    },
};

/* 2 MiB on x86-64, but 32 or 512 MiB on arm64 with larger base pages: known only at run time. Set
 * while the library loads, so the row is constant to whoever reads it. */
__attribute__((constructor)) static void set_page(void)
{
    rows[0].page_bytes = ps_pmd_bytes();
}

const ps_policy_list ps_policies_thp = {.rows = rows, .n_rows = PS_COUNT(rows)};
