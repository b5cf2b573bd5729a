/* Small measurements of the host itself: line transfer, a busy sibling, one shootdown. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"
#include "pin.h"

static int pin_self(int32_t cpu)
{
    return cpu < 0 ? EINVAL : ps_pin(cpu);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, uint32_t n)
{
    qsort(values, n, sizeof *values, compare_doubles);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* ---- two pinned threads ------------------------------------------------------------------- */

typedef struct {
    _Alignas(64) _Atomic uint32_t ball;
    _Alignas(64) _Atomic uint32_t stop;
    _Atomic uint32_t ready;
    int32_t cpu;
    int code;
    bool started;
    pthread_t thread;
} partner;

static int start_partner(partner *with, void *(*body)(void *))
{
    int code = pthread_create(&with->thread, NULL, body, with);
    with->started = !code;
    while (!code && !atomic_load(&with->ready))
        sched_yield();
    return code ? code : with->code;
}

static void stop_partner(partner *with)
{
    atomic_store(&with->stop, 1);
    if (with->started)
        pthread_join(with->thread, NULL);
}

/* A caller's thread must not stay pinned where a probe put it. */
static int save_affinity(cpu_set_t *saved)
{
    return pthread_getaffinity_np(pthread_self(), sizeof *saved, saved);
}

static void *answer(void *argument)
{
    partner *with = argument;
    with->code = pin_self(with->cpu);
    atomic_store(&with->ready, 1);
    while (!with->code && !atomic_load_explicit(&with->stop, memory_order_relaxed))
        if (atomic_load_explicit(&with->ball, memory_order_acquire) & 1)
            atomic_fetch_add_explicit(&with->ball, 1, memory_order_release);
    return NULL;
}

/* Give up on a partner that is not scheduled: the figure would be the scheduler's. */
#define PINGPONG_LIMIT_NS 200000000u

int ps_pingpong(int32_t cpu_a, int32_t cpu_b, uint32_t rounds, double *ns)
{
    enum { BATCHES = 16 };
    partner with = {.cpu = cpu_b};
    double times[BATCHES];
    cpu_set_t saved;
    uint32_t n = 0;
    *ns = 0;
    int kept = save_affinity(&saved), code = pin_self(cpu_a);
    if (!code) {
        code = start_partner(&with, answer);
        uint64_t begin = ps_clock_ns(), now = begin;
        uint32_t each = rounds / BATCHES ? rounds / BATCHES : 1;
        for (; !code && n < BATCHES && now - begin < PINGPONG_LIMIT_NS; n++) {
            uint64_t start = ps_clock_ns();
            for (uint32_t i = 0; i < each && now - begin < PINGPONG_LIMIT_NS; i++) {
                uint32_t thrown = atomic_fetch_add_explicit(&with.ball, 1, memory_order_release);
                for (uint32_t spins = 0;
                     atomic_load_explicit(&with.ball, memory_order_acquire) == thrown + 1;)
                    if (++spins == 1u << 16) {
                        spins = 0;
                        now = ps_clock_ns();
                        if (now - begin >= PINGPONG_LIMIT_NS)
                            break;
                    }
            }
            now = ps_clock_ns();
            times[n] = (double)(now - start) / each;
        }
        stop_partner(&with);
        if (!code && now - begin >= PINGPONG_LIMIT_NS)
            code = ETIMEDOUT;
        if (!code)
            *ns = median(times, n);
    }
    if (!kept)
        pthread_setaffinity_np(pthread_self(), sizeof saved, &saved);
    return code;
}

int ps_add_rate(int32_t cpu, uint64_t ns, double *adds_per_ns)
{
    cpu_set_t saved;
    uint64_t a = 1, b = 2, c = 3, d = 4, n = 0;
    int kept = save_affinity(&saved), code = cpu < 0 ? 0 : pin_self(cpu);
    uint64_t start = ps_clock_ns(), now = start;
    while (!code && now - start < ns) {
        for (int i = 0; i < 1000; i++) {
            /* Four chains: one alone is as fast beside a busy sibling as without. */
            a += n, b += n, c += n, d += n;
            __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
        }
        n += 4000;
        now = ps_clock_ns();
    }
    *adds_per_ns = code || now == start ? 0 : (double)n / (double)(now - start);
    if (!kept && cpu >= 0)
        pthread_setaffinity_np(pthread_self(), sizeof saved, &saved);
    return code;
}

static void *occupy(void *argument)
{
    partner *with = argument;
    with->code = pin_self(with->cpu);
    atomic_store(&with->ready, 1);
    while (!with->code && !atomic_load_explicit(&with->stop, memory_order_relaxed))
        ;
    return NULL;
}

static double unmap_ns(uint32_t rounds, double *times, int *code)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (uint32_t i = 0; i < rounds; i++) {
        char *at = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) {
            *code = errno;
            return 0;
        }
        *(volatile char *)at = 1;
        uint64_t start = ps_clock_ns();
        munmap(at, page);
        times[i] = (double)(ps_clock_ns() - start);
    }
    return median(times, rounds);
}

int ps_shootdown_cost(int32_t cpu_a, int32_t cpu_b, uint32_t rounds, double *alone_ns,
                      double *beside_ns)
{
    partner with = {.cpu = cpu_b};
    cpu_set_t saved;
    *alone_ns = *beside_ns = 0;
    double *times = calloc(rounds, sizeof *times);
    if (!times || !rounds) {
        free(times);
        return times ? EINVAL : ENOMEM;
    }
    int kept = save_affinity(&saved), code = pin_self(cpu_a);
    if (!code) {
        *alone_ns = unmap_ns(rounds, times, &code);
        int started = start_partner(&with, occupy);
        if (!started && !code)
            *beside_ns = unmap_ns(rounds, times, &code);
        code = code ? code : started;
        stop_partner(&with);
    }
    if (!kept)
        pthread_setaffinity_np(pthread_self(), sizeof saved, &saved);
    free(times);
    return code;
}
