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
 *   wrong       one bit of one element of an output is flipped
 *   input       one bit of one element of an input is flipped before the first step
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

/* The middle element of the first array of that role that is not empty, or NULL. */
static uint64_t *victim(const ps_ctx *ctx, int role)
{
    for (uint32_t i = 0; i < ctx->kernel->n_arrays; i++)
        if (ctx->kernel->arrays[i].role == role && ctx->bytes[i])
            return (uint64_t *)ctx->threads[0].arrays[i] + ctx->bytes[i] / 16;
    return NULL;
}

static int run_thread(ps_ctx *ctx, uint32_t thread, uint64_t steps, const char *fault)
{
    ps_thread *own = &ctx->threads[thread];
    void *saved[PS_ARRAYS] = {0};
    uint64_t stale = 0, *out = victim(ctx, PS_OUT), *in = victim(ctx, PS_IN);
    ps_work work;
    char why[PS_WHY] = "";
    int code = ctx->kernel->fill ? ctx->kernel->fill(ctx, thread, why) : 0;
    ctx->kernel->work(ctx, &work);
    if (strcmp(fault, "input") == 0 && thread == 0 && in)
        *in ^= 1u << 20;
    for (uint64_t i = 0; i < steps && code == 0; i++) {
        bool last = i + 1 == steps;
        for (uint32_t a = 0; last && a < ctx->kernel->n_arrays; a++) {
            saved[a] = malloc(ctx->bytes[a] + 1);
            memcpy(saved[a], own->arrays[a], ctx->bytes[a]);
        }
        stale = out ? *out : 0;
        if (!(last && strcmp(fault, "uncounted") == 0))
            code = ctx->variant->step(ctx, thread, i % work.n_steps);
        own->steps++;
    }
    for (uint32_t a = 0; a < ctx->kernel->n_arrays; a++) {
        if (strcmp(fault, "lost") == 0 && saved[a])
            memcpy(own->arrays[a], saved[a], ctx->bytes[a]);
        free(saved[a]);
    }
    if (strcmp(fault, "stale") == 0 && thread == 0 && out)
        *out = stale;
    if (strcmp(fault, "wrong") == 0 && thread == 0 && out)
        *out ^= 1u << 20;
    if (code == 0)
        code = ctx->kernel->check(ctx, thread, why);
    if (code)
        printf(" thread %u: %d %s", thread, code, why);
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
    int code = 0;
    ctx->threads = calloc(ctx->n_threads, sizeof(ps_thread));
    for (uint32_t t = 0; t < ctx->n_threads; t++) {
        for (uint32_t i = 0; i < ctx->kernel->n_arrays; i++)
            if (posix_memalign(&ctx->threads[t].arrays[i], 4096, ctx->bytes[i] + 1))
                return ENOMEM;
            else
                memset(ctx->threads[t].arrays[i], 0, ctx->bytes[i]);
        int failed = run_thread(ctx, t, steps, fault);
        code = code ? code : failed;
        for (uint32_t i = 0; i < ctx->kernel->n_arrays; i++)
            printf(" %016llx",
                   (unsigned long long)digest(ctx->threads[t].arrays[i], ctx->bytes[i]));
    }
    printf("%s\n", code ? " FAILED" : " ok");
    for (uint32_t t = 0; t < ctx->n_threads; t++)
        for (uint32_t i = 0; i < ctx->kernel->n_arrays; i++)
            free(ctx->threads[t].arrays[i]);
    free(ctx->threads);
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
