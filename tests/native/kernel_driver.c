/*
 * Runs kernels without the engine: every variant and choice, one thread after the other, and prints
 * what their arrays hold. For architectures that only an emulator runs, and to break things on
 * purpose. Arguments: SIZE THREADS STEPS FAULT KERNEL...
 *
 * Faults, to see whether the kernel's own check notices:
 *   none
 *   uncounted   the last step is counted but not made
 *   lost        the last step's stores are undone
 *   stale       one element of an output is as it was before the last step
 *   wrong       one element of an output is changed
 *   input       one element of an input is changed before the first step
 */
#include <stdlib.h>

#include "internal.h"

static uint64_t digest(const void *start, uint64_t bytes)
{
    const unsigned char *byte = start;
    uint64_t hash = 0xcbf29ce484222325u;
    for (uint64_t i = 0; i < bytes; i++)
        hash = (hash ^ byte[i]) * 0x100000001b3u;
    return hash;
}

static void print_case(const ps_ctx *ctx, const char *suffix)
{
    const ps_kernel *kernel = ctx->kernel;
    printf("%s/%s", kernel->name, ctx->variant->name);
    for (uint32_t p = 0; p < kernel->n_params; p++)
        if (kernel->params[p].kind == PS_CHOICE)
            printf(" %s=%s", kernel->params[p].name,
                   kernel->params[p].choices[ctx->values[p].number]);
    printf("%s", suffix);
}

typedef struct {
    uint64_t *element, bit; /* no element: NULL */
} target;

/* An element of thread 0's first array of that role that is not empty, and a bit of it that matters
 * after rounding and keeps an offset near. A third of the way in: streams of a sweep may leave a
 * gap at halves, quarters and eighths. */
static target victim(const ps_ctx *ctx, int role)
{
    for (uint32_t i = 0; i < ctx->kernel->n_arrays; i++) {
        const ps_array *array = &ctx->kernel->arrays[i];
        if (array->role == role && ctx->bytes[i])
            return (target){(uint64_t *)ctx->threads[0].arrays[i] + ctx->bytes[i] / 8 / 3,
                            strcmp(array->element, "f8") == 0 ? 1ull << 50 : 64};
    }
    return (target){0};
}

/* Arrays of all threads; those of the actor are one block that all point to. */
static bool allocate(ps_ctx *ctx)
{
    ctx->threads = calloc(ctx->n_threads, sizeof(ps_thread));
    for (uint32_t t = 0; ctx->threads && t < ctx->n_threads; t++)
        for (uint32_t i = 0; i < ctx->kernel->n_arrays; i++) {
            void **own = &ctx->threads[t].arrays[i];
            if (t > 0 && ctx->kernel->arrays[i].extent == PS_PER_ACTOR)
                *own = ctx->threads[0].arrays[i];
            else if (posix_memalign(own, 4096, ctx->bytes[i] + 1))
                return false;
            else
                memset(*own, 0, ctx->bytes[i]);
        }
    return ctx->threads != NULL;
}

static void release(ps_ctx *ctx)
{
    for (uint32_t t = 0; t < ctx->n_threads; t++)
        for (uint32_t i = 0; i < ctx->kernel->n_arrays; i++)
            if (t == 0 || ctx->kernel->arrays[i].extent != PS_PER_ACTOR)
                free(ctx->threads[t].arrays[i]);
    free(ctx->threads);
}

/* One step more; `last` is where the faults strike. Only thread 0 is struck. */
static int make_step(ps_ctx *ctx, uint32_t thread, uint64_t ticket, const char *fault, bool last)
{
    ps_thread *own = &ctx->threads[thread];
    bool struck = last && thread == 0;
    target out = victim(ctx, PS_OUT);
    uint64_t before = out.element ? *out.element : 0;
    void *saved[PS_ARRAYS] = {0};
    bool lost = struck && strcmp(fault, "lost") == 0;
    for (uint32_t i = 0; lost && i < ctx->kernel->n_arrays; i++) {
        saved[i] = malloc(ctx->bytes[i] + 1);
        memcpy(saved[i], own->arrays[i], ctx->bytes[i]);
    }
    int code = 0;
    if (!(struck && strcmp(fault, "uncounted") == 0))
        code = ctx->variant->step(ctx, thread, ticket);
    own->steps++;
    for (uint32_t i = 0; lost && i < ctx->kernel->n_arrays; i++) {
        memcpy(own->arrays[i], saved[i], ctx->bytes[i]);
        free(saved[i]);
    }
    if (struck && out.element && strcmp(fault, "stale") == 0)
        *out.element = before;
    if (struck && out.element && strcmp(fault, "wrong") == 0)
        *out.element ^= out.bit;
    return code;
}

/* Sliced: `steps` of each thread; team: two passes, the threads taking turns. */
static int make_steps(ps_ctx *ctx, uint64_t steps, const char *fault)
{
    int code = 0;
    ps_work work;
    ctx->kernel->work(ctx, &work);
    bool team = ctx->kernel->sharing == PS_TEAM;
    uint64_t n = team ? 2 * work.n_steps : steps * ctx->n_threads;
    for (uint64_t i = 0; i < n && code == 0; i++) {
        uint64_t turn = team ? i : i / ctx->n_threads;
        bool last = turn + 1 == (team ? n : steps);
        code = make_step(ctx, (uint32_t)(i % ctx->n_threads), turn % work.n_steps, fault, last);
    }
    return code;
}

static int run_case(ps_ctx *ctx, uint64_t steps, const char *fault)
{
    char why[PS_WHY] = "";
    memset(ctx->words, 0, sizeof(ctx->words));
    memset(ctx->bytes, 0, sizeof(ctx->bytes));
    if (ctx->kernel->layout(ctx, ctx->bytes, why)) {
        print_case(ctx, " refused: ");
        printf("%s\n", why);
        return 0;
    }
    print_case(ctx, ":");
    if (!allocate(ctx))
        return ENOMEM;
    int code = 0;
    for (uint32_t t = 0; t < ctx->n_threads && code == 0 && ctx->kernel->fill; t++)
        code = ctx->kernel->fill(ctx, t, why);
    target in = victim(ctx, PS_IN);
    if (in.element && strcmp(fault, "input") == 0)
        *in.element ^= in.bit;
    code = code ? code : make_steps(ctx, steps, fault);
    for (uint32_t t = 0; t < ctx->n_threads && code == 0; t++)
        code = ctx->kernel->check(ctx, t, why);
    for (uint32_t t = 0; t < ctx->n_threads; t++)
        for (uint32_t i = 0; i < ctx->kernel->n_arrays; i++)
            if (ctx->kernel->arrays[i].role != PS_SCRATCH)
                printf(" %016llx",
                       (unsigned long long)digest(ctx->threads[t].arrays[i], ctx->bytes[i]));
    printf(code ? " FAILED %d %s\n" : " ok\n", code, why);
    release(ctx);
    return code;
}

/* Every combination of the choices from parameter `at` on. */
static int run_choices(ps_ctx *ctx, ps_value *values, uint32_t at, uint64_t steps,
                       const char *fault)
{
    if (at == ctx->kernel->n_params)
        return run_case(ctx, steps, fault);
    if (ctx->kernel->params[at].kind != PS_CHOICE)
        return run_choices(ctx, values, at + 1, steps, fault);
    int code = 0;
    for (uint32_t i = 0; i < ctx->kernel->params[at].n_choices; i++) {
        values[at].number = i;
        int failed = run_choices(ctx, values, at + 1, steps, fault);
        code = code ? code : failed;
    }
    return code;
}

int main(int argc, char **argv)
{
    if (argc < 6)
        return 2;
    int code = 0;
    for (uint32_t k = 0; k < ps_n_kernels(); k++) {
        const ps_kernel *kernel = ps_kernel_at(k);
        bool wanted = false;
        if (kernel->memory != PS_ARENA)
            continue; /* mapping is the engine's */
        for (int i = 5; i < argc; i++)
            wanted |= strcmp(argv[i], kernel->name) == 0;
        for (uint32_t v = 0; wanted && v < kernel->n_variants; v++) {
            ps_value values[16] = {0};
            for (uint32_t p = 0; p < kernel->n_params; p++)
                values[p].number = kernel->params[p].default_value;
            ps_ctx ctx = {.kernel = kernel,
                          .variant = &kernel->variants[v],
                          .values = values,
                          .size_bytes = strtoull(argv[1], NULL, 0),
                          .n_threads = (uint32_t)strtoul(argv[2], NULL, 0),
                          .seed = 7};
            if (!ps_isa_has(kernel->variants[v].needs))
                continue;
            int failed = run_choices(&ctx, values, 0, strtoull(argv[3], NULL, 0), argv[4]);
            code = code ? code : failed;
        }
    }
    return code ? 1 : 0;
}
