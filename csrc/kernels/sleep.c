/* Threads that do nothing: there, but off the CPU. */
#include "internal.h"

enum param { STEPS, STEP_US };
enum thread_word { MADE };

/* Timer slack and wake-up. */
#define WAKE_NS 60e3

static int layout(ps_ctx *ctx, uint64_t *bytes, char *why)
{
    (void)bytes, (void)why; /* no arrays: any size will do */
    ctx->effort = (ps_effort){.ops = ctx->values[STEPS].number,
                              .op_ns = 1e3 * (double)ctx->values[STEP_US].number + WAKE_NS};
    return 0;
}

static void work(const ps_ctx *ctx, ps_work *work)
{
    uint64_t n = ctx->values[STEPS].number;
    *work = (ps_work){.n_steps = n, .n_stages = 1, .stage_steps = {n}};
}

static int step_scalar(ps_ctx *ctx, uint32_t thread, uint64_t ticket)
{
    uint64_t us = ctx->values[STEP_US].number;
    struct timespec left = {.tv_sec = (time_t)(us / 1000000),
                            .tv_nsec = (long)(us % 1000000) * 1000};
    int code = EINTR;
    (void)ticket;
    while (code == EINTR)
        code = clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left);
    ctx->threads[thread].words[MADE]++;
    return code;
}

static int check(ps_ctx *ctx, uint32_t thread, char *why)
{
    const ps_thread *own = &ctx->threads[thread];
    if (own->words[MADE] != own->steps)
        return ps_refuse(why, EBADMSG, "thread %u slept %llu times, not %llu", thread,
                         (unsigned long long)own->words[MADE], (unsigned long long)own->steps);
    return 0;
}

static const ps_param params[] = {
    {.name = "steps",
     .kind = PS_U64,
     .default_value = 20,
     .min = 1,
     .max = 1000000,
     .unit = "steps",
     .help = "in a pass"},
    {.name = "step_us",
     .kind = PS_U64,
     .default_value = 50,
     .min = 1,
     .max = 1000000,
     .unit = "us",
     .help = "asked of the system, which adds its timer slack and wake-up"},
};
static const ps_variant variants[] = {{.name = "scalar", .step = step_scalar}};

const ps_kernel ps_kernel_sleep = {
    .name = "sleep",
    .summary = "clock_nanosleep: a neighbour that leaves its CPU",
    .params = params,
    .n_params = PS_COUNT(params),
    .variants = variants,
    .n_variants = PS_COUNT(variants),
    .sharing = PS_SLICED,
    .memory = PS_ARENA,
    .layout = layout,
    .work = work,
    .check = check,
};
