/* Programs with one planted behaviour each, to be looked at from outside: plant NAME [BYTES]. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, HUGE_PAGE = 2 << 20 };

static volatile uint64_t sink;

static void ready(void)
{
    puts("ready");
    fflush(stdout);
}

static char *map(size_t bytes, int advice, int flags)
{
    char *raw = mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    if (raw == MAP_FAILED)
        exit(3);
    char *p = (char *)(((uintptr_t)raw + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1));
    if (advice >= 0 && madvise(p, bytes, advice))
        exit(3);
    return p;
}

static void touch(char *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += PAGE)
        p[i] = 1;
}

static void *spin(void *unused)
{
    (void)unused;
    for (;;)
        sink++;
    return NULL;
}

static void start(void *(*work)(void *))
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, NULL))
        exit(3);
}

static void read_at_random(const char *p, size_t bytes)
{
    for (uint64_t x = 88172645463325252u;;) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        sink += (uint64_t)p[x % bytes];
    }
}

static void release_and_touch(size_t bytes)
{
    char *p = map(bytes, MADV_NOHUGEPAGE, 0);
    for (;;) {
        touch(p, bytes);
        madvise(p, bytes, MADV_DONTNEED);
    }
}

static void unmap_storm(size_t bytes)
{
    start(spin);
    for (;;) {
        char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
            exit(3);
        touch(p, bytes);
        munmap(p, bytes);
    }
}

static void crowd(size_t threads)
{
    cpu_set_t one, all;
    sched_getaffinity(0, sizeof all, &all);
    CPU_ZERO(&one);
    for (size_t cpu = 0; cpu < CPU_SETSIZE && !CPU_COUNT(&one); cpu++)
        if (CPU_ISSET(cpu, &all))
            CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    ready();
    for (size_t i = 1; i < threads; i++)
        start(spin);
    spin(NULL);
}

int main(int argc, char **argv)
{
    const char *plant = argc > 1 ? argv[1] : "";
    size_t bytes = argc > 2 ? strtoull(argv[2], NULL, 0) : 0;
    alarm(120); /* whoever started it may be gone */
    if (!strcmp(plant, "faults")) {
        ready();
        release_and_touch(bytes);
    } else if (!strcmp(plant, "unmap")) {
        ready();
        unmap_storm(bytes);
    } else if (!strcmp(plant, "crowd")) {
        crowd(bytes);
    } else if (!strcmp(plant, "spin")) {
        ready();
        spin(NULL);
    }
    int advice = !strcmp(plant, "huge")      ? MADV_HUGEPAGE
                 : !strcmp(plant, "hugetlb") ? -1
                                             : MADV_NOHUGEPAGE;
    char *p = map(bytes, advice, advice < 0 ? MAP_HUGETLB : 0);
    touch(p, bytes);
    ready();
    if (!strcmp(plant, "idle"))
        for (;;)
            pause();
    read_at_random(p, bytes);
}
