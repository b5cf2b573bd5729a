/*
 * churn.h - what kernels need that map and release memory in their steps.
 *
 * A thread maps inside its own region (arrays[0]) only, so that no two threads share a page table:
 * what one of them pays for the others is then locks and TLB shootdowns alone.
 */
#ifndef PS_CHURN_H
#define PS_CHURN_H

#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

/* 0, or ENOTSUP where `bytes` cannot be made of the policy's pages alone. */
static inline int churn_accepts_size(const ps_policy *policy, const char *what, uint64_t bytes,
                                     char *why)
{
    uint64_t page = ps_policy_page(policy);
    if (bytes % page == 0)
        return 0;
    return ps_refuse(why, ENOTSUP, "%s of %llu B is no multiple of the %llu B pages of %s", what,
                     (unsigned long long)bytes, (unsigned long long)page, policy->name);
}

/* 0, or ENOTSUP where the kernel refuses this advice for the policy's memory. Asks it about one
 * page, untouched. A pool too empty for that page is refused later, with its own reason. */
static inline int churn_accepts_advice(const ps_policy *policy, int advice, const char *name,
                                       const char *since, char *why)
{
    uint64_t page = ps_policy_page(policy);
    void *start;
    if (policy->map(policy, NULL, page, &start))
        return 0;
    int code = madvise(start, page, advice) ? errno : 0;
    munmap(start, page);
    if (code != EINVAL)
        return 0;
    return ps_refuse(why, ENOTSUP, "this kernel has no %s for page policy %s (since Linux %s)",
                     name, policy->name, since);
}

/* EBADMSG where anything is mapped in the thread's region: only an empty one can be reserved. */
static inline int churn_check_empty(const ps_ctx *ctx, uint32_t thread, char *why)
{
    void *region = ctx->threads[thread].arrays[0];
    uint64_t bytes = ps_round_up(ctx->bytes[0], ps_base_page());
    if (!bytes)
        return 0;
    void *got = mmap(region, bytes, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    int code = got == MAP_FAILED ? errno : 0;
    if (!code)
        munmap(got, bytes);
    if (!code && got == region)
        return 0;
    return ps_refuse(why, EBADMSG, "the region of thread %u is not empty at the end: %s", thread,
                     strerror(code ? code : EEXIST));
}

/* First byte of [start, start + bytes) that is not `value`, or `bytes`. */
static inline uint64_t churn_first_other(const unsigned char *start, uint64_t bytes,
                                         unsigned char value)
{
    if (!bytes || (start[0] == value && !memcmp(start, start + 1, bytes - 1)))
        return bytes;
    uint64_t i = 0;
    while (start[i] == value)
        i++;
    return i;
}

/* The last pages that a thread still holds, for evidence and for tests. */
static inline void churn_hold(ps_thread *own, void *start, uint64_t bytes)
{
    own->live = bytes ? start : NULL;
    own->live_bytes = bytes;
}

#endif
