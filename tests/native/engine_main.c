/* Runs one mix of two actors (a process each when asked) through the whole engine; prints what came
 * of it. Built for other architectures too. */
#include <stdlib.h>

#include "internal.h"

static const ps_kernel *kernel_named(const char *name)
{
    for (uint32_t i = 0; i < ps_n_kernels(); i++)
        if (!strcmp(ps_kernel_at(i)->name, name))
            return ps_kernel_at(i);
    return NULL;
}

static ps_value *defaults(const ps_kernel *kernel)
{
    ps_value *values = calloc(kernel->n_params + 1u, sizeof *values);
    for (uint32_t i = 0; values && i < kernel->n_params; i++)
        values[i].number = kernel->params[i].kind == PS_FILE ? 0 : kernel->params[i].default_value;
    return values;
}

static uint32_t best_variant(const ps_kernel *kernel)
{
    uint32_t best = 0;
    for (uint32_t i = 0; i < kernel->n_variants; i++)
        if (ps_isa_has(kernel->variants[i].needs))
            best = i;
    return best;
}

int main(int argc, char **argv)
{
    const char *names[2] = {"scan", "chase"};
    const int32_t cpus[2] = {-1, -1};
    ps_actor actors[2];
    const ps_policy *base = NULL;
    (void)argv;
    for (uint32_t i = 0; i < ps_n_policies(); i++)
        if (!strcmp(ps_policy_at(i)->name, "base"))
            base = ps_policy_at(i);
    for (uint32_t i = 0; i < 2; i++) {
        const ps_kernel *kernel = kernel_named(names[i]);
        if (!kernel || !base)
            return 2;
        actors[i] = (ps_actor){.kernel = kernel,
                               .variant = best_variant(kernel),
                               .policy = base,
                               .values = defaults(kernel),
                               .size_bytes = 1u << 20,
                               .seed = 1,
                               .n_threads = 2 - i,
                               .cpus = cpus,
                               .process = argc > 1 ? i : 0,
                               .measured = true};
        if (!actors[i].values)
            return 2;
    }
    ps_mix mix = {.actors = actors,
                  .n_actors = 2,
                  .window_ns = 50000000,
                  .min_passes = 3,
                  .deadline_ns = 60000000000u,
                  .check = true};
    ps_actor_result rows[2];
    ps_thread_result threads[3];
    ps_result result = {.actors = rows, .threads = threads};
    int code = ps_run(&mix, &result);
    if (code) {
        printf("failed at %s: %s\n", result.stage, result.why);
        return 1;
    }
    for (uint32_t i = 0; i < 2; i++)
        printf("%s %s passes>=3 %d matching %d\n", names[i],
               actors[i].kernel->variants[actors[i].variant].name, rows[i].passes >= 3,
               rows[i].before.known_bytes == rows[i].before.matching_bytes);
    return 0;
}
