/* A kernel that uses all of the descriptor: choice, size and file parameters, a team with two
 * stages, churn memory beside an arena array. Stage one writes f(ticket) into a freshly mapped
 * chunk and notes its sum; stage two doubles the notes into another array. */
#include <sys/mman.h>

#include "internal.h"

enum { MODE, CHUNK, COUNT, INPUT };
enum { PLAIN, SALTED, WRONG };
enum { REGION, NOTES, DOUBLED };

static const char *const modes[] = {"plain", "salted", "wrong"};
static const ps_param params[] = {
    {.name = "mode", .kind = PS_CHOICE, .choices = modes, .n_choices = 3, .unit = "", .help = "f"},
    {.name = "chunk",
     .kind = PS_SIZE,
     .default_value = 65536,
     .min = 4096,
     .max = 1u << 30,
     .unit = "byte",
     .help = "size of one mapping"},
    {.name = "count",
     .kind = PS_U64,
     .default_value = 32,
     .min = 1,
     .max = 1u << 20,
     .unit = "chunk",
     .help = "chunks a pass"},
    {.name = "input", .kind = PS_FILE, .unit = "", .help = "salt"},
};
static const ps_array arrays[] = {
    {.name = "region", .element = "u1", .role = PS_SCRATCH, .extent = PS_PER_THREAD},
    {.name = "notes", .element = "u8", .role = PS_SCRATCH, .extent = PS_PER_ACTOR},
    {.name = "doubled", .element = "u8", .role = PS_OUT, .extent = PS_PER_ACTOR},
};
static const char *const phases[] = {"map", "touch"};

static uint64_t value_of(const ps_ctx *ctx, uint64_t ticket)
{
    uint64_t salt = 0;
    const unsigned char *data = ctx->values[INPUT].data;
    for (uint64_t i = 0; i < ctx->values[INPUT].data_bytes; i++)
        salt += data[i];
    return ps_hash(ctx->seed, ticket) + (ctx->values[MODE].number == SALTED ? salt : 0);
}

static uint64_t chunk_of(const ps_ctx *ctx)
{
    uint64_t page = ps_policy_page(ctx->policy), chunk = ctx->values[CHUNK].number;
    return (chunk + page - 1) / page * page;
}

static int layout(ps_ctx *ctx, uint64_t *bytes, char *why)
{
    bytes[REGION] = chunk_of(ctx);
    bytes[NOTES] = bytes[DOUBLED] = ctx->values[COUNT].number * sizeof(uint64_t);
    uint64_t needed = 2 * (bytes[NOTES] + 4096);
    if (needed > ctx->size_bytes)
        return ps_refuse(why, EINVAL, "toy needs at least %llu bytes", (unsigned long long)needed);
    ctx->words[0] = chunk_of(ctx);
    return 0;
}

static int fill(ps_ctx *ctx, uint32_t thread, char *why)
{
    uint64_t *notes = ctx->threads[thread].arrays[NOTES], first, last;
    uint64_t *doubled = ctx->threads[thread].arrays[DOUBLED];
    (void)why;
    ps_share(ctx, thread, ctx->values[COUNT].number, 1, &first, &last);
    for (uint64_t i = first; i < last; i++)
        notes[i] = doubled[i] = UINT64_MAX;
    return 0;
}

static void work(const ps_ctx *ctx, ps_work *out)
{
    uint64_t n = ctx->values[COUNT].number;
    *out = (ps_work){.read_bytes = n * 8,
                     .written_bytes = 2 * n * 8,
                     .bus_min_bytes = 0,
                     .bus_max_bytes = n * ctx->words[0],
                     .ops = n,
                     .n_steps = 2 * n,
                     .n_stages = 2,
                     .stage_steps = {n, n},
                     .chunk_bytes = ctx->words[0]};
}

static int step(ps_ctx *ctx, uint32_t thread, uint64_t ticket)
{
    ps_thread *self = &ctx->threads[thread];
    uint64_t *notes = self->arrays[NOTES], n = ctx->values[COUNT].number, bytes = ctx->words[0];
    if (ticket >= n) {
        ((uint64_t *)self->arrays[DOUBLED])[ticket - n] =
            2 * notes[ticket - n] + (ctx->values[MODE].number == WRONG && ticket == n + 3);
        return 0;
    }
    uint64_t start = ps_clock_ns();
    void *chunk;
    int code = ctx->policy->map(ctx->policy, self->arrays[REGION], bytes, &chunk);
    if (code)
        return code;
    uint64_t mapped = ps_clock_ns();
    for (uint64_t at = 0; at < bytes; at += 4096)
        *(uint64_t *)((char *)chunk + at) = value_of(ctx, ticket);
    self->touched_bytes += bytes;
    self->phase_ns[0] += mapped - start;
    self->phase_ns[1] += ps_clock_ns() - mapped;
    notes[ticket] = *(uint64_t *)((char *)chunk + bytes - 4096);
    return munmap(chunk, bytes) < 0 ? errno : 0;
}

static int check(ps_ctx *ctx, uint32_t thread, char *why)
{
    const uint64_t *doubled = ctx->threads[thread].arrays[DOUBLED];
    uint64_t first, last;
    ps_share(ctx, thread, ctx->values[COUNT].number, 1, &first, &last);
    for (uint64_t i = first; i < last; i++)
        if (doubled[i] != 2 * value_of(ctx, i))
            return ps_refuse(why, EBADMSG, "number %llu is wrong", (unsigned long long)i);
    return 0;
}

static const ps_variant variants[] = {{.name = "scalar", .step = step}};

const ps_kernel ps_kernel_toy = {
    .name = "toy",
    .summary = "notes[i] = 2 f(i), by way of a fresh mapping",
    .op = "chunk",
    .params = params,
    .n_params = PS_COUNT(params),
    .arrays = arrays,
    .n_arrays = PS_COUNT(arrays),
    .variants = variants,
    .n_variants = PS_COUNT(variants),
    .phases = phases,
    .n_phases = PS_COUNT(phases),
    .sharing = PS_TEAM,
    .memory = PS_CHURN,
    .layout = layout,
    .fill = fill,
    .work = work,
    .check = check,
};
