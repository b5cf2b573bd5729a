/* A reader of /proc/self/smaps without the heap: evidence must not change what it looks at. */
#include <fcntl.h>
#include <unistd.h>

#include "internal.h"

typedef struct {
    uint64_t start, end;
    uint64_t rss, anon_huge, hugetlb, kernel_page;
} mapping;

/* The parser's place: lines may straddle reads. Only the head of a line matters, the rest (a path)
 * is dropped. */
typedef struct {
    char line[128];
    size_t used;
    uint64_t first, last; /* the range */
    mapping current; /* end 0: none yet */
    ps_smaps *out;
} reader;

static uint64_t beyond(uint64_t x, uint64_t y)
{
    return x > y ? x - y : 0;
}

static void add_mapping(reader *self)
{
    const mapping *m = &self->current;
    uint64_t from = m->start > self->first ? m->start : self->first;
    uint64_t to = m->end < self->last ? m->end : self->last;
    if (from >= to)
        return;
    /* Only what does not fit outside the range is surely inside. */
    uint64_t outside = m->end - m->start - (to - from);
    uint64_t hugetlb = beyond(m->hugetlb, outside);
    ps_smaps *out = self->out;
    if (hugetlb) {
        bool same = !out->hugetlb || out->hugetlb_page == m->kernel_page;
        out->hugetlb_page = same ? m->kernel_page : 0;
        out->hugetlb += hugetlb;
        return;
    }
    out->small += beyond(beyond(m->rss, m->anon_huge), outside);
    out->huge += beyond(m->anon_huge, outside);
}

static void read_field(const char *line, const char *key, uint64_t *bytes)
{
    size_t length = strlen(key);
    unsigned long long kib;
    if (!strncmp(line, key, length) && sscanf(line + length, ": %llu kB", &kib) == 1)
        *bytes += kib * 1024;
}

static void end_line(reader *self)
{
    unsigned long long start, end;
    self->line[self->used] = '\0';
    self->used = 0;
    mapping *m = &self->current;
    if (sscanf(self->line, "%llx-%llx ", &start, &end) == 2) {
        add_mapping(self);
        *m = (mapping){.start = start, .end = end};
        return;
    }
    read_field(self->line, "Rss", &m->rss); /* without hugetlb */
    read_field(self->line, "AnonHugePages", &m->anon_huge);
    read_field(self->line, "Private_Hugetlb", &m->hugetlb);
    read_field(self->line, "Shared_Hugetlb", &m->hugetlb); /* with a forked child */
    read_field(self->line, "KernelPageSize", &m->kernel_page); /* tells hugetlb sizes, never THP */
}

int ps_smaps_range(const void *start, uint64_t bytes, ps_smaps *out)
{
    reader self = {
        .first = (uintptr_t)start,
        .last = (uintptr_t)start + bytes,
        .out = out,
    };
    *out = (ps_smaps){0};
    int file = open("/proc/self/smaps", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return errno;
    char chunk[4096];
    ssize_t got = 0;
    while (self.current.start < self.last && (got = read(file, chunk, sizeof(chunk))) > 0)
        for (ssize_t i = 0; i < got; i++) {
            if (chunk[i] == '\n')
                end_line(&self);
            else if (self.used < sizeof(self.line) - 1)
                self.line[self.used++] = chunk[i];
        }
    int code = got < 0 ? errno : 0;
    add_mapping(&self);
    close(file);
    return code;
}
