/* Work in registers only, of a length fixed at the start: what a neighbour without memory costs. */
#include <pthread.h>

#include "internal.h"

enum param { STEPS, STEP_US };
/* ps_thread.words: iterations of a step; the chain's state; steps made. */
enum thread_word { ITERATIONS, STATE, MADE };

/* A linear congruential chain: each multiply and add waits for the last, no load, no store. */
#define MULTIPLIER 6364136223846793005u
#define ADDEND 1442695040888963407u

static uint64_t spin(uint64_t state, uint64_t iterations)
{
    for (uint64_t i = 0; i < iterations; i++) {
        state = state * MULTIPLIER + ADDEND;
        __asm__ volatile("" : "+r"(state)); /* the compiler must not know the sequence */
    }
    return state;
}

/* State after `iterations` more, in as many squarings as the number has bits. */
static uint64_t jump(uint64_t state, uint64_t iterations)
{
    uint64_t multiplier = MULTIPLIER, addend = ADDEND;
    for (; iterations; iterations >>= 1) {
        if (iterations & 1)
            state = state * multiplier + addend;
        addend += multiplier * addend;
        multiplier *= multiplier;
    }
    return state;
}

static double iterations_per_us;

/* Once a process, so that every step of every actor in it is the same work. The median of short
 * trials: an interrupt lengthens one, a slow clock at the start the first few. */
static void calibrate(void)
{
    enum { TRIALS = 21, ITERATIONS_EACH = 100000 };
    double rates[TRIALS];
    uint64_t state = 1;
    for (int i = 0; i < TRIALS; i++) {
        uint64_t start = ps_clock_ns();
        state = spin(state, ITERATIONS_EACH);
        double rate = ITERATIONS_EACH * 1e3 / (double)(ps_clock_ns() - start + 1);
        int place = i;
        for (; place > 0 && rates[place - 1] > rate; place--)
            rates[place] = rates[place - 1];
        rates[place] = rate;
    }
    iterations_per_us = rates[TRIALS / 2];
}

static int layout(ps_ctx *ctx, uint64_t *bytes, char *why)
{
    (void)ctx, (void)bytes, (void)why; /* no arrays: any size will do */
    return 0;
}

static int fill(ps_ctx *ctx, uint32_t thread, char *why)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)why;
    pthread_once(&once, calibrate);
    uint64_t *words = ctx->threads[thread].words;
    words[ITERATIONS] = (uint64_t)(iterations_per_us * (double)ctx->values[STEP_US].number) + 1;
    words[STATE] = ps_hash(ctx->seed, thread);
    return 0;
}

static void work(const ps_ctx *ctx, ps_work *work)
{
    uint64_t n = ctx->values[STEPS].number;
    *work = (ps_work){.n_steps = n, .n_stages = 1, .stage_steps = {n}};
}

static int step_scalar(ps_ctx *ctx, uint32_t thread, uint64_t ticket)
{
    ps_thread *own = &ctx->threads[thread];
    (void)ticket;
    own->words[STATE] = spin(own->words[STATE], own->words[ITERATIONS]);
    own->words[MADE]++;
    own->sink = own->words[STATE];
    return 0;
}

static int check(ps_ctx *ctx, uint32_t thread, char *why)
{
    const ps_thread *own = &ctx->threads[thread];
    uint64_t want = jump(ps_hash(ctx->seed, thread), own->steps * own->words[ITERATIONS]);
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
     .default_value = 50,
     .min = 1,
     .max = 1000000,
     .unit = "us",
     .help =
         "how long a step is to take; measured once a process, a fixed number of iterations from "
         "then on"},
};
static const ps_variant variants[] = {{.name = "scalar", .step = step_scalar}};

const ps_kernel ps_kernel_spin = {
    .name = "spin",
    .summary = "a dependent chain of multiplies and adds in registers: no memory at all",
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
