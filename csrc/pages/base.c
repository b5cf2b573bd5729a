/* The system's base page, huge pages forbidden. */
#include <sys/mman.h>

#include "internal.h"

static int available(const ps_policy *self, char *why)
{
    (void)self;
    (void)why;
    return 0;
}

static int map(const ps_policy *self, void *where, uint64_t bytes, void **out)
{
    return ps_map_advised(where, bytes, ps_policy_page(self), MADV_NOHUGEPAGE, out);
}

/* Sizes between base and PMD need no look: MADV_NOHUGEPAGE forbids them all. */
static int evidence(const ps_policy *self, const void *start, uint64_t bytes, ps_evidence *out)
{
    (void)self;
    ps_evidence_of(start, bytes, false, out);
    return 0;
}

static const ps_policy rows[] = {
    {
        .name = "base",
        .summary = "the system's smallest page (MADV_NOHUGEPAGE)",
        .available = available,
        .map = map,
        .evidence = evidence,
    },
};

const ps_policy_list ps_policies_base = {.rows = rows, .n_rows = PS_COUNT(rows)};
