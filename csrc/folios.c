/* Folio sizes by page frame number: the one source that sees mTHP. Needs root. */
#include <fcntl.h>
#include <unistd.h>

#include "internal.h"

/* Documentation/admin-guide/mm/pagemap.rst of the kernel. */
#define PM_PRESENT (1ull << 63)
#define PM_PFN ((1ull << 55) - 1)
#define KPF_HEAD (1ull << 15)
#define KPF_TAIL (1ull << 16)
#define KPF_THP (1ull << 22) /* never with hugetlb */

#define BATCH 512u /* pages read at once; a multiple of every folio's */

/* Whether the frames [first, first + n) are one whole THP folio, no part of a larger one. */
static int is_folio(int kpageflags, uint64_t first, uint64_t n, bool *yes)
{
    uint64_t flags[BATCH + 1] = {0}; /* the frame behind: memory may end there */
    *yes = false;
    ssize_t got = pread(kpageflags, flags, (n + 1) * 8, (off_t)(first * 8));
    if (got < (ssize_t)(n * 8))
        return got < 0 ? errno : EIO;
    if (!(flags[0] & KPF_HEAD) || !(flags[0] & KPF_THP))
        return 0;
    for (uint64_t i = 1; i < n; i++)
        if (!(flags[i] & KPF_TAIL))
            return 0;
    *yes = !(flags[n] & KPF_TAIL);
    return 0;
}

static bool contiguous(const uint64_t *entries, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (!(entries[i] & PM_PRESENT) || (entries[i] & PM_PFN) != (entries[0] & PM_PFN) + i)
            return false;
    return true;
}

typedef struct {
    int pagemap, kpageflags;
    uint64_t page; /* base page, bytes */
    uint64_t n; /* base pages of a folio */
    uint64_t first, last; /* the range, bytes */
    uint64_t known, matching;
} counter;

/* Bytes of one page that lie in the range. */
static uint64_t inside(const counter *self, uint64_t address)
{
    uint64_t from = address > self->first ? address : self->first;
    uint64_t to = address + self->page < self->last ? address + self->page : self->last;
    return from < to ? to - from : 0;
}

/* One naturally aligned block of n pages. At the edges of the range all its pages are looked at and
 * those in the range counted. */
static int count_block(counter *self, uint64_t address, const uint64_t *entries)
{
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < self->n; i++) {
        if (!(entries[i] & PM_PRESENT))
            continue;
        if (!(entries[i] & PM_PFN)) /* hidden: the file opens for anyone */
            return EPERM;
        bytes += inside(self, address + i * self->page);
    }
    self->known += bytes;
    if (!bytes || !contiguous(entries, self->n))
        return 0;
    bool yes;
    int code = is_folio(self->kpageflags, entries[0] & PM_PFN, self->n, &yes);
    if (yes)
        self->matching += bytes;
    return code;
}

static int count_all(counter *self)
{
    uint64_t entries[BATCH];
    uint64_t folio = self->n * self->page;
    uint64_t end = (self->last + folio - 1) / folio * self->n; /* page number */
    for (uint64_t number = self->first / folio * self->n; number < end;) {
        uint64_t batch = end - number < BATCH ? end - number : BATCH;
        ssize_t got = pread(self->pagemap, entries, batch * 8, (off_t)(number * 8));
        if (got != (ssize_t)(batch * 8))
            return got < 0 ? errno : EIO;
        for (uint64_t i = 0; i < batch; i += self->n) {
            int code = count_block(self, (number + i) * self->page, entries + i);
            if (code)
                return code;
        }
        number += batch;
    }
    return 0;
}

int ps_folio_bytes(const void *start, uint64_t bytes, uint64_t page_bytes, uint64_t *known,
                   uint64_t *matching)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t n = page_bytes / page;
    *known = *matching = 0;
    if (n < 2 || n > BATCH || BATCH % n)
        return EINVAL;
    counter self = {
        .pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC),
        .kpageflags = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC),
        .page = page,
        .n = n,
        .first = (uintptr_t)start,
        .last = (uintptr_t)start + bytes,
    };
    int code = self.pagemap < 0 || self.kpageflags < 0 ? EPERM : count_all(&self);
    if (self.pagemap >= 0)
        close(self.pagemap);
    if (self.kpageflags >= 0)
        close(self.kpageflags);
    if (code)
        return code;
    *known = self.known;
    *matching = self.matching;
    return 0;
}
