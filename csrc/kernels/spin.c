/* Work in registers only, of a length fixed at the start: what a neighbour without memory costs. */
#include "calibrate.h"

enum param { STEPS, STEP_US, ITERATIONS };
/* ps_thread.words: the chain's state; steps made. */
enum thread_word { STATE, MADE };

#define STEP_US_DEFAULT 50u

/* State after `iterations` more, in as many squarings as the number has bits. */
static uint64_t jump(uint64_t state, uint64_t iterations)
{
    uint64_t multiplier = CHAIN_MULTIPLIER, addend = CHAIN_ADDEND;
    for (; iterations; iterations >>= 1) {
        if (iterations & 1)
            state = state * multiplier + addend;
        addend += multiplier * addend;
        multiplier *= multiplier;
    }
    return state;
}

/* Of one step. Calibrated, all steps of a process are the same work; those of another process are
 * not, unless it is told the number. */
static uint64_t iterations_of(const ps_ctx *ctx)
{
    uint64_t given = ctx->values[ITERATIONS].number;
    return given ? given : chain_links(1000 * ctx->values[STEP_US].number) + 1;
}

static int layout(ps_ctx *ctx, uint64_t *bytes, char *why)
{
    (void)bytes; /* no arrays: any size will do */
    uint64_t steps = ctx->values[STEPS].number, given = ctx->values[ITERATIONS].number;
    ctx->effort =
        given ? (ps_effort){.ops = steps * given, .op_ns = 1}
              : (ps_effort){.ops = steps, .op_ns = 1e3 * (double)ctx->values[STEP_US].number};
    if (ctx->values[ITERATIONS].number && ctx->values[STEP_US].number != STEP_US_DEFAULT)
        return ps_refuse(why, EINVAL, "step_us belongs to iterations=0");
    return 0;
}

static int fill(ps_ctx *ctx, uint32_t thread, char *why)
{
    (void)why;
    (void)iterations_of(ctx); /* calibrates: not in a step */
    ctx->threads[thread].words[STATE] = ps_hash(ctx->seed, thread);
    return 0;
}

static void work(const ps_ctx *ctx, ps_work *work)
{
    uint64_t n = ctx->values[STEPS].number;
    *work =
        (ps_work){.ops = n * iterations_of(ctx), .n_steps = n, .n_stages = 1, .stage_steps = {n}};
}

static int step_scalar(ps_ctx *ctx, uint32_t thread, uint64_t ticket)
{
    ps_thread *own = &ctx->threads[thread];
    (void)ticket;
    own->words[STATE] = chain(own->words[STATE], iterations_of(ctx));
    own->words[MADE]++;
    own->sink = own->words[STATE];
    return 0;
}

static int check(ps_ctx *ctx, uint32_t thread, char *why)
{
    const ps_thread *own = &ctx->threads[thread];
    uint64_t want = jump(ps_hash(ctx->seed, thread), own->steps * iterations_of(ctx));
    if (own->words[MADE] != own->steps || own->words[STATE] != want)
        return ps_refuse(why, EBADMSG, "thread %u made %llu steps of %llu or lost iterations",
                         thread, (unsigned long long)own->words[MADE],
                         (unsigned long long)own->steps);
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
     .default_value = STEP_US_DEFAULT,
     .min = 1,
     .max = 1000000,
     .unit = "us",
     .help =
         "how long a step is to take; measured once a process, a fixed number of iterations from "
         "then on"},
    {.name = "iterations",
     .kind = PS_U64,
     .default_value = 0,
     .min = 0,
     .max = 1ull << 40,
     .unit = "iterations",
     .help = "multiply-adds of a step, in place of step_us: the same work in every process; 0: as "
             "many as step_us takes. A pass reports steps times as many"},
};
static const ps_variant variants[] = {{.name = "scalar", .step = step_scalar}};

const ps_kernel ps_kernel_spin = {
    .name = "spin",
    .summary = "a dependent chain of multiplies and adds in registers: no memory at all",
    .op = "multiply-add",
    .params = params,
    .n_params = PS_COUNT(params),
    .variants = variants,
    .n_variants = PS_COUNT(variants),
    .sharing = PS_SLICED,
    .memory = PS_ARENA,
    .layout = layout,
    .fill = fill,
    .work = work,
    .check = check,
};
