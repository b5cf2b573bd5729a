/*
 * storm_heap.h - which pages malloc can be made to use. Only glibc can, since 2.35, and only from
 * the start of the process on: by the variable GLIBC_TUNABLES.
 */
#ifndef PS_STORM_HEAP_H
#define PS_STORM_HEAP_H

#include "churn.h"

#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

/* glibc maps a block with a header in front and asks for no alignment: up to two huge pages' worth
 * of its ends lie on small pages. From this many pages on that is under an eighth. */
#define HEAP_HUGE_PAGES 16u

static inline bool heap_is_thp(const ps_policy *policy)
{
    return !policy->hugetlb && policy->page_bytes == ps_pmd_bytes();
}

#define HEAP_TUNABLES "GLIBC_TUNABLES"
#define HEAP_TUNABLE "glibc.malloc.hugetlb="
/* Of the user's own settings: with the name in front and ours behind they fit into a reason. */
#define HEAP_OTHERS (PS_WHY - sizeof HEAP_TUNABLES - sizeof ":" HEAP_TUNABLE "1099511627776")

/* What the user set but for malloc's pages, which are the policy's to choose; false: too long. */
static inline bool heap_others(char out[PS_WHY])
{
    const char *at = getenv(HEAP_TUNABLES);
    size_t used = 0;
    out[0] = '\0';
    while (at && *at) {
        size_t length = strcspn(at, ":");
        if (length && strncmp(at, HEAP_TUNABLE, strlen(HEAP_TUNABLE)) != 0) {
            if (used + length + 1 > HEAP_OTHERS)
                return false;
            if (used)
                out[used++] = ':';
            memcpy(out + used, at, length);
            used += length;
            out[used] = '\0';
        }
        at += length + (at[length] == ':');
    }
    return true;
}

/* 0, or ENOTSUP where malloc has no setting for the policy. */
static inline int heap_accepts(const ps_policy *policy, uint64_t smallest, char *why)
{
    uint64_t page = ps_policy_page(policy);
    char others[PS_WHY];
    if (!heap_others(others))
        return ps_refuse(why, ENOTSUP, HEAP_TUNABLES " is too long to add malloc's pages to");
#ifdef __GLIBC__
    int major = 0, minor = 0;
    bool old = sscanf(gnu_get_libc_version(), "%d.%d", &major, &minor) == 2 &&
               (major < 2 || (major == 2 && minor < 35));
    if (!policy->page_bytes) {
        char unasked[PS_WHY];
        if (ps_thp_unasked(unasked))
            return ps_refuse(why, ENOTSUP, "malloc cannot be kept to %s pages: %.180s",
                             policy->name, unasked);
        return 0;
    }
    if (old)
        return ps_refuse(why, ENOTSUP, "malloc can use %s pages since glibc 2.35; this is %s",
                         policy->name, gnu_get_libc_version());
#else
    return ps_refuse(why, ENOTSUP, "only glibc's malloc can be told which pages to use");
#endif
    if (!policy->hugetlb && !heap_is_thp(policy))
        return ps_refuse(why, ENOTSUP, "malloc has no setting for pages of %s", policy->name);
    uint64_t least = policy->hugetlb ? page : HEAP_HUGE_PAGES * page;
    if (smallest < least)
        return ps_refuse(why, ENOTSUP,
                         "malloc puts blocks on %s pages from %llu B on; the smallest is %llu B",
                         policy->name, (unsigned long long)least, (unsigned long long)smallest);
    return 0;
}

static inline void heap_environment(const ps_policy *policy, char *out)
{
    char others[PS_WHY], own[64] = "";
    heap_others(others);
    if (policy->hugetlb)
        snprintf(own, sizeof own, HEAP_TUNABLE "%llu", (unsigned long long)policy->page_bytes);
    else if (heap_is_thp(policy))
        snprintf(own, sizeof own, HEAP_TUNABLE "1");
    snprintf(out, PS_WHY, HEAP_TUNABLES "=%.*s%s%s", (int)HEAP_OTHERS, others,
             others[0] && own[0] ? ":" : "", own);
}

#endif
