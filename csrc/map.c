/* Mappings at an alignment that mmap() does not promise. */
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

static void *anonymous(void *where, uint64_t bytes, int protection, int flags)
{
    return mmap(where, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

static int map_at(void *where, uint64_t bytes, int extra_flags, void **out)
{
    void *got = anonymous(where, bytes, PROT_READ | PROT_WRITE, MAP_FIXED_NOREPLACE | extra_flags);
    if (got == MAP_FAILED)
        return errno;
    if (got != where) { /* something between us and the kernel took the address as a hint */
        munmap(got, bytes);
        return EEXIST;
    }
    *out = got;
    return 0;
}

/* Reserve more, keep the aligned part. It becomes writable by mprotect() and not by a second mmap()
 * over it: were that to fail, it would leave a hole that another thread may have filled since. */
static int map_trimmed(uint64_t bytes, uint64_t align, int extra_flags, void **out)
{
    if (bytes > UINT64_MAX - align)
        return ENOMEM;
    char *reserved = anonymous(NULL, bytes + align, PROT_NONE, extra_flags);
    if (reserved == MAP_FAILED)
        return errno;
    uint64_t head = (align - (uintptr_t)reserved % align) % align;
    char *start = reserved + head;
    if (head)
        munmap(reserved, head);
    munmap(start + bytes, align - head); /* head < align */
    if (mprotect(start, bytes, PROT_READ | PROT_WRITE)) {
        int code = errno;
        munmap(start, bytes);
        return code;
    }
    *out = start;
    return 0;
}

int ps_map_aligned(void *where, uint64_t bytes, uint64_t align, int extra_flags, void **out)
{
    if (!bytes || (uintptr_t)where % align)
        return EINVAL;
    if (where)
        return map_at(where, bytes, extra_flags, out);
    /* The kernel aligns hugetlb mappings always, large anonymous ones since Linux 6.7. */
    void *got = anonymous(NULL, bytes, PROT_READ | PROT_WRITE, extra_flags);
    if (got == MAP_FAILED)
        return errno;
    if ((uintptr_t)got % align) {
        munmap(got, bytes);
        return map_trimmed(bytes, align, extra_flags, out);
    }
    *out = got;
    return 0;
}

int ps_map_advised(void *where, uint64_t bytes, uint64_t page_bytes, int advice, void **out)
{
    if (bytes % page_bytes)
        return EINVAL;
    /* Arenas of all policies start where a page table does: they differ in page size alone. */
    uint64_t pmd = ps_pmd_bytes();
    uint64_t align = !where && bytes >= pmd && pmd > page_bytes ? pmd : page_bytes;
    void *start = NULL;
    int code = ps_map_aligned(where, bytes, align, 0, &start);
    if (code)
        return code;
    /* A kernel without THP knows no MADV_NOHUGEPAGE, and maps base pages. */
    if (madvise(start, bytes, advice) && !(errno == EINVAL && advice == MADV_NOHUGEPAGE)) {
        code = errno;
        munmap(start, bytes);
        return code;
    }
    *out = start;
    return 0;
}
