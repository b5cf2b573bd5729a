/* Pacing and the arithmetic of shares. */
#include "internal.h"

/* A thread that fell further behind than this (descheduled, or a rate it cannot reach) starts a new
 * schedule; else it would send the whole arrears as one burst. */
#define PS_PACE_SLACK_NS 1000000u

void ps_pace_wait(const ps_ctx *ctx, ps_thread *thread, uint64_t bytes)
{
    uint64_t now = ps_clock_ns();
    uint64_t step = (uint64_t)((double)bytes * 1e9 / ctx->pace_bytes_per_s);
    if (thread->pace_next_ns + PS_PACE_SLACK_NS < now)
        thread->pace_next_ns = now;
    while (now < thread->pace_next_ns) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("yield");
#endif
        now = ps_clock_ns();
    }
    thread->pace_next_ns += step;
}

uint64_t ps_slice_bytes(const ps_ctx *ctx, uint32_t n_arrays, uint64_t granule)
{
    uint64_t each = ctx->size_bytes / ctx->n_threads;
    uint64_t padding = (uint64_t)n_arrays * 4096u; /* staggered starts, see arena.c */
    if (each <= padding)
        return 0;
    return (each - padding) / n_arrays / granule * granule;
}

void ps_share(const ps_ctx *ctx, uint32_t thread, uint64_t n, uint64_t granule, uint64_t *first,
              uint64_t *last)
{
    uint64_t granules = (n + granule - 1) / granule;
    uint64_t each = granules / ctx->n_threads, rest = granules % ctx->n_threads;
    uint64_t start = each * thread + (thread < rest ? thread : rest);
    uint64_t end = start + each + (thread < rest ? 1 : 0);
    *first = start * granule < n ? start * granule : n;
    *last = end * granule < n ? end * granule : n;
}
