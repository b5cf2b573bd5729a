/* Random reads or updates of elements of 8 to 64 B, some number in flight, each thread in its own
 * table. What larger pages gain shows most here: every access needs a translation of its own. */
#include "gather_loops.h"

enum param { OP, ELEMENT, INFLIGHT, ACCESSES };
enum array { TABLE, COUNTERS, N_ARRAYS };
/* ps_ctx.words: elements of a table; rounds of a step; steps of a pass. */
enum ctx_word { ELEMENTS, ROUNDS, N_STEPS };
/* ps_thread.words: steps really made; sum of what they read (op=read). */
enum thread_word { MADE, SUM };

static const char *const op_names[N_OPS] = {[OP_READ] = "read", [OP_UPDATE] = "update"};

/* About 100 us where every access misses the caches and a few are in flight. */
#define STEP_ACCESSES 4096u

static bool is_power_of_two(uint64_t n)
{
    return n && (n & (n - 1)) == 0;
}

static uint64_t element_words(const ps_ctx *ctx)
{
    return ctx->values[ELEMENT].number / 8;
}

static uint32_t array_of(const ps_ctx *ctx)
{
    return ctx->values[OP].number == OP_READ ? TABLE : COUNTERS;
}

static int layout(ps_ctx *ctx, uint64_t *bytes, char *why)
{
    uint64_t element = ctx->values[ELEMENT].number, lanes = ctx->values[INFLIGHT].number;
    if (!is_power_of_two(element))
        return ps_refuse(why, EINVAL, "element is 8, 16, 32 or 64 B, not %llu",
                         (unsigned long long)element);
    if (!is_power_of_two(lanes))
        return ps_refuse(why, EINVAL, "inflight is a power of two up to %u, not %llu", MAX_LANES,
                         (unsigned long long)lanes);
    uint64_t room = ps_slice_bytes(ctx, 1, PS_LINE);
    if (room == 0)
        return ps_refuse(why, EINVAL, "%u threads need at least %llu B", ctx->n_threads,
                         (unsigned long long)ctx->n_threads * (4096u + PS_LINE));
    uint64_t n_steps = (ctx->values[ACCESSES].number + STEP_ACCESSES / 2) / STEP_ACCESSES;
    ctx->words[N_STEPS] = n_steps ? n_steps : 1;
    uint64_t rounds = ctx->values[ACCESSES].number / lanes / ctx->words[N_STEPS];
    ctx->words[ROUNDS] = rounds ? rounds : 1;
    ctx->words[ELEMENTS] = room / element;
    ctx->effort = (ps_effort){.ops = ctx->words[N_STEPS] * ctx->words[ROUNDS] * lanes,
                              .op_ns = 1,
                              .op_waits = 1 / (double)lanes};
    bytes[array_of(ctx)] = room;
    return 0;
}

/* ---- contents ------------------------------------------------------------------------------- */

/* An arithmetic series over all words of all threads: the sum of an element needs no loop. */
static uint64_t word_step(const ps_ctx *ctx)
{
    return ps_hash(ctx->seed, 0) | 1;
}

static uint64_t first_word(const ps_ctx *ctx, uint32_t thread)
{
    uint64_t words = ctx->words[ELEMENTS] * element_words(ctx);
    return ps_hash(ctx->seed, 1) + thread * words * word_step(ctx);
}

static int fill(ps_ctx *ctx, uint32_t thread, char *why)
{
    uint64_t *data = ctx->threads[thread].arrays[array_of(ctx)];
    uint64_t n = ctx->words[ELEMENTS] * element_words(ctx), step = word_step(ctx);
    uint64_t word = first_word(ctx, thread);
    (void)why;
    for (uint64_t i = 0; i < n; i++, word += step)
        data[i] = word;
    return 0;
}

static void work(const ps_ctx *ctx, ps_work *work)
{
    uint64_t n = ctx->words[N_STEPS];
    *work = (ps_work){.n_steps = n, .n_stages = 1, .stage_steps = {n}};
    work->ops = n * ctx->words[ROUNDS] * ctx->values[INFLIGHT].number;
    uint64_t bytes = work->ops * ctx->values[ELEMENT].number;
    /* Elements do not straddle lines. How many accesses find theirs in a cache is the host's to
     * say; an update also writes the line back. */
    work->bus_max_bytes = PS_LINE * work->ops;
    if (ctx->values[OP].number == OP_READ) {
        work->read_bytes = bytes;
    } else {
        work->updated_bytes = bytes;
        work->bus_max_bytes *= 2;
    }
}

/* ---- steps ---------------------------------------------------------------------------------- */

static uint32_t log2_of(uint64_t n)
{
    return (uint32_t)__builtin_ctzll(n);
}

/* Where the lanes start in a step, counted over all passes: no two steps visit the same places. */
static void start_lanes(const ps_ctx *ctx, uint32_t thread, uint64_t made, uint64_t *state)
{
    uint64_t seed = ps_hash(ctx->seed + 2, thread);
    for (uint64_t lane = 0; lane < ctx->values[INFLIGHT].number; lane++)
        state[lane] = ps_hash(seed, MAX_LANES * made + lane);
}

static int gather_step(ps_ctx *ctx, uint32_t thread, uint64_t ticket)
{
    ps_thread *own = &ctx->threads[thread];
    uint64_t element = ctx->values[ELEMENT].number, lanes = ctx->values[INFLIGHT].number;
    uint64_t left = ctx->words[ROUNDS];
    gather_body *body = gather_bodies[ctx->values[OP].number][log2_of(element / 8)][log2_of(lanes)];
    gather_job job = {.data = own->arrays[array_of(ctx)], .n_elements = ctx->words[ELEMENTS]};
    (void)ticket;
    start_lanes(ctx, thread, own->words[MADE], job.state);
    if (ctx->pace_bytes_per_s > 0) {
        uint64_t block = 4096 / (element * lanes);
        for (block += block == 0; left > block; left -= block) {
            ps_pace(ctx, own, block * lanes * element);
            own->words[SUM] += body(&job, block);
        }
        ps_pace(ctx, own, left * lanes * element);
    }
    own->words[SUM] += body(&job, left);
    own->words[MADE]++;
    own->sink = own->words[SUM];
    return 0;
}

/* ---- check ---------------------------------------------------------------------------------- */

/* Sum over all accesses that a thread has made of f(element): no memory is read, so this takes less
 * time than they did. Where `weighs`, f is a random weight of the element, else its words' sum. */
static uint64_t replay(const ps_ctx *ctx, uint32_t thread, bool weighs)
{
    uint64_t words = element_words(ctx), step = word_step(ctx), first = first_word(ctx, thread);
    uint64_t pairs = words * (words - 1) / 2, sum = 0, state[MAX_LANES];
    for (uint64_t made = 0; made < ctx->threads[thread].steps; made++) {
        start_lanes(ctx, thread, made, state);
        for (uint64_t lane = 0; lane < ctx->values[INFLIGHT].number; lane++)
            for (uint64_t round = 0; round < ctx->words[ROUNDS]; round++) {
                uint64_t at = lane_element(state[lane], ctx->words[ELEMENTS]);
                sum += weighs ? ps_hash(ctx->seed + 3, at)
                              : words * (first + at * words * step) + pairs * step;
                state[lane] = lane_next(state[lane]);
            }
    }
    return sum;
}

/* Every word of an element was counted up as often as the others, and all elements together, each
 * with its weight, as often as the accesses say. */
static int check_counters(const ps_ctx *ctx, uint32_t thread, char *why)
{
    const uint64_t *data = ctx->threads[thread].arrays[COUNTERS];
    uint64_t words = element_words(ctx), step = word_step(ctx), word = first_word(ctx, thread);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < ctx->words[ELEMENTS]; i++) {
        uint64_t count = *data - word;
        for (uint64_t w = 0; w < words; w++, data++, word += step)
            if (*data - word != count)
                return ps_refuse(why, EBADMSG, "words of element %llu of thread %u differ",
                                 (unsigned long long)i, thread);
        sum += count * ps_hash(ctx->seed + 3, i);
    }
    if (sum != replay(ctx, thread, true))
        return ps_refuse(why, EBADMSG, "thread %u updated other elements than it should", thread);
    return 0;
}

static int check(ps_ctx *ctx, uint32_t thread, char *why)
{
    const ps_thread *own = &ctx->threads[thread];
    if (own->words[MADE] != own->steps)
        return ps_refuse(why, EBADMSG, "thread %u made %llu steps of %llu", thread,
                         (unsigned long long)own->words[MADE], (unsigned long long)own->steps);
    if (ctx->values[OP].number == OP_UPDATE)
        return check_counters(ctx, thread, why);
    uint64_t want = replay(ctx, thread, false);
    if (own->words[SUM] != want)
        return ps_refuse(why, EBADMSG, "thread %u read a sum of %#llx, not %#llx", thread,
                         (unsigned long long)own->words[SUM], (unsigned long long)want);
    return 0;
}

/* ---- descriptor ----------------------------------------------------------------------------- */

static const ps_param params[] = {
    [OP] = {.name = "op",
            .kind = PS_CHOICE,
            .choices = op_names,
            .n_choices = N_OPS,
            .unit = "",
            .help = "read: sum of all words of the element; update: one is added to each"},
    [ELEMENT] = {.name = "element",
                 .kind = PS_SIZE,
                 .default_value = 32,
                 .min = 8,
                 .max = PS_LINE,
                 .unit = "B",
                 .help = "8, 16, 32 or 64: what one access touches, all of it in one line"},
    [INFLIGHT] = {.name = "inflight",
                  .kind = PS_U64,
                  .default_value = 8,
                  .min = 1,
                  .max = MAX_LANES,
                  .unit = "",
                  .help = "how many do not wait for each other, a power of two; 1: latency, with "
                          "two multiplications for the address"},
    [ACCESSES] = {.name = "accesses",
                  .kind = PS_U64,
                  .default_value = 262144,
                  .min = 1,
                  .max = 1ull << 40,
                  .unit = "accesses",
                  .help = "of a thread in a pass; rounded to whole steps"},
};

static const ps_array array_rows[N_ARRAYS] = {
    [TABLE] = {"table", "u8", PS_IN, PS_PER_THREAD},
    [COUNTERS] = {"counters", "u8", PS_OUT, PS_PER_THREAD},
};

static const ps_variant variants[] = {{.name = "scalar", .step = gather_step}};

const ps_kernel ps_kernel_gather = {
    .name = "gather",
    .summary = "random reads or updates, a set number in flight, each thread in its own table",
    .op = "access",
    .params = params,
    .n_params = PS_COUNT(params),
    .arrays = array_rows,
    .n_arrays = N_ARRAYS,
    .variants = variants,
    .n_variants = PS_COUNT(variants),
    .sharing = PS_SLICED,
    .memory = PS_ARENA,
    .paces_inside = true,
    .layout = layout,
    .fill = fill,
    .work = work,
    .check = check,
};
