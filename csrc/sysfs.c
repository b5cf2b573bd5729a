/* What the kernel's settings allow. Reads only. */
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "internal.h"

#define THP "/sys/kernel/mm/transparent_hugepage"

/* Linux 6.18: PR_SET_THP_DISABLE may leave regions with MADV_HUGEPAGE alone. */
#define THP_DISABLED 1
#define THP_EXCEPT_ADVISED 2

int ps_read_line(const char *path, char *line, size_t size)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return errno;
    ssize_t got = read(file, line, size - 1);
    int code = got < 0 ? errno : 0;
    close(file);
    line[got < 0 ? 0 : got] = '\0';
    line[strcspn(line, "\n")] = '\0';
    return code;
}

uint64_t ps_pmd_bytes(void)
{
    static _Atomic uint64_t known; /* policies ask in every mapping */
    uint64_t bytes = atomic_load_explicit(&known, memory_order_relaxed);
    if (bytes)
        return bytes;
    char line[32];
    unsigned long long value = 0;
    if (ps_read_line(THP "/hpage_pmd_size", line, sizeof(line)) ||
        sscanf(line, "%llu", &value) != 1 || !value) {
        /* No THP in this kernel. A table of 8-byte entries fills a page: x86-64, arm64, riscv64. */
        uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
        value = page * (page / 8);
    }
    bytes = value;
    atomic_store_explicit(&known, bytes, memory_order_relaxed);
    return bytes;
}

/* "always [madvise] never" -> "madvise" */
static int read_choice(const char *path, char choice[16])
{
    char line[128];
    int code = ps_read_line(path, line, sizeof(line));
    if (code)
        return code;
    const char *open_bracket = strchr(line, '[');
    return open_bracket && sscanf(open_bracket, "[%15[^]]", choice) == 1 ? 0 : EBADMSG;
}

int ps_thp_allowed(uint64_t page_bytes, char *why)
{
    int disabled = prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0);
    if (disabled > 0 && !(disabled & THP_EXCEPT_ADVISED))
        return ps_refuse(why, ENOTSUP,
                         "transparent huge pages are switched off for this process "
                         "(PR_SET_THP_DISABLE, inherited): start from another shell or service");

    char whole[16], own[16], path[96];
    int code = read_choice(THP "/enabled", whole);
    if (code == ENOENT)
        return ps_refuse(why, ENOTSUP, "this kernel has no transparent huge pages (no " THP ")");
    if (code)
        return ps_refuse(why, ENOTSUP, "cannot read " THP "/enabled: %s", strerror(code));

    snprintf(path, sizeof(path), THP "/hugepages-%llukB/enabled",
             (unsigned long long)page_bytes / 1024);
    code = read_choice(path, own);
    if (code == ENOENT && page_bytes == ps_pmd_bytes())
        strcpy(own, "inherit"); /* before Linux 6.8 there is one size and one setting */
    else if (code == ENOENT)
        return ps_refuse(why, ENOTSUP, "this kernel has no %llu KiB transparent pages (no %s)",
                         (unsigned long long)page_bytes / 1024, path);
    else if (code)
        return ps_refuse(why, ENOTSUP, "cannot read %s: %s", path, strerror(code));

    /* A size's own always or madvise counts even where the general setting is never. */
    if (!strcmp(own, "never"))
        return ps_refuse(why, EPERM, "%s is never; as root: echo madvise > %s", path, path);
    if (!strcmp(own, "inherit") && !strcmp(whole, "never"))
        return ps_refuse(why, EPERM,
                         THP "/enabled is never; as root: echo madvise > " THP "/enabled");
    return 0;
}

int ps_thp_unasked(char *why)
{
    if (prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) > 0)
        return 0;
    uint64_t base = (uint64_t)sysconf(_SC_PAGESIZE);
    for (uint64_t size = 2 * base; size <= ps_pmd_bytes(); size *= 2) {
        char path[96], choice[16];
        snprintf(path, sizeof(path), THP "/hugepages-%llukB/enabled",
                 (unsigned long long)size / 1024);
        int code = read_choice(path, choice);
        /* Before Linux 6.8 there is one size and one setting. */
        bool inherits = code ? size == ps_pmd_bytes() : !strcmp(choice, "inherit");
        if (inherits) {
            snprintf(path, sizeof(path), THP "/enabled");
            code = read_choice(path, choice);
        }
        if (!code && !strcmp(choice, "always"))
            return ps_refuse(why, EPERM, "%s is always", path);
    }
    return 0;
}
