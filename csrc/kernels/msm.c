/*
 * The bucket pass of a multi-scalar multiplication (Pippenger) over BLS12-381: the sum of scalar i
 * times point i, both groups, as a prover computes it on CPUs.
 *
 * Stage 1 brings the scalars out of Montgomery form. Stage 2 goes through the tiles, each a slice
 * of the points and a window of the scalars' bits: every point is added into the bucket that its
 * digit names, then the buckets are summed up, each as often as its digit says, and emptied. Stage
 * 3 folds the tiles' sums.
 *
 * A tile is one ticket although it takes milliseconds to seconds: its buckets belong to the thread
 * that took it, as they do in the real program, whose threads are idle when the tiles run out.
 */
#include "msm_arithmetic.h"
#include "msm_bytes.h"

enum param { GROUP, POINTS, DIGITS, ARITHMETIC, DELAY_NS, PREFETCH, ALIGN, WINDOW };
enum arithmetic { ARITHMETIC_REAL, ARITHMETIC_NONE, ARITHMETIC_DELAY };
enum array { BASES, SCALARS, PLAIN, BUCKETS, PARTIALS, RESULT, N_ARRAYS };
/* ps_ctx.words: points; the grid; tickets of the conversion. */
enum ctx_word { N, NX, NY, BITS, CONVERSIONS };
/* ps_thread.words: steps made; what stands for one addition. */
enum thread_word { MADE, SPINS };

#define DELAY_NS_DEFAULT 250u
/* Scalars of one conversion ticket. */
#define STRIDE 512u
/* The share of size that points and scalars get. It does not depend on the threads, so that the sum
 * does not either; the rest holds the buckets of any usual number of threads. */
#define DATA_SHARE 4u
/* Between two looks at the clock of a paced thread. */
#define PACED_BYTES 4096u

static const msm_arithmetic *arithmetic_of(const ps_ctx *ctx, int isa)
{
    uint64_t group = ctx->values[GROUP].number;
    return ctx->values[ARITHMETIC].number == ARITHMETIC_REAL ? &msm_real[isa][group]
                                                             : &msm_lanes[group];
}

static msm_grid grid_of(const ps_ctx *ctx)
{
    return (msm_grid){.nx = (uint32_t)ctx->words[NX],
                      .ny = (uint32_t)ctx->words[NY],
                      .window = (uint32_t)ctx->words[BITS]};
}

static uint64_t tiles_of(const ps_ctx *ctx)
{
    return ctx->words[NX] * ctx->words[NY];
}

/* Start of an array whose elements begin at a line, or 16 bytes into one: where glibc puts what it
 * maps, so that elements of whole lines span one more. */
static char *aligned_start(const ps_ctx *ctx, uint32_t thread, enum array array)
{
    char *start = ctx->threads[thread].arrays[array];
    return start + ctx->values[ALIGN].number % PS_LINE;
}

/* Without a number of points: what takes a thread about a second. Arithmetic that takes no time can
 * fill the size. */
static uint64_t most_points(const ps_ctx *ctx)
{
    if (ctx->values[ARITHMETIC].number != ARITHMETIC_REAL)
        return UINT64_MAX;
    return ctx->values[GROUP].number == GROUP_G1 ? 1u << 16 : 1u << 14;
}

/* Nearly all time goes into additions: of a point for each digit that is not zero, and two for each
 * bucket of each tile. */
static ps_effort effort_of(const ps_ctx *ctx, uint64_t n, const msm_grid *grid)
{
    bool fast = ctx->variant->needs != 0, g1 = ctx->values[GROUP].number == GROUP_G1;
    double access_ns = g1 ? 18 : 36, addition_ns = access_ns;
    if (ctx->values[ARITHMETIC].number == ARITHMETIC_REAL)
        addition_ns = (g1 ? 600 : 1500) * (fast ? 1 : 1.5);
    else if (ctx->values[ARITHMETIC].number == ARITHMETIC_DELAY)
        addition_ns += (double)ctx->values[DELAY_NS].number;
    double digits = grid->ny;
    if (ctx->values[DIGITS].number == DIGITS_SKEWED)
        digits = 0.02 * digits + 0.49;
    double buckets = (double)tiles_of(ctx) * (double)((1ull << grid->window) - 1);
    double additions = digits * (double)n + 2 * buckets;
    return (ps_effort){.ops = n, .op_ns = additions * addition_ns / (double)n};
}

/* ---- hooks --------------------------------------------------------------------------------- */

static int layout(ps_ctx *ctx, uint64_t *bytes, char *why)
{
    const msm_arithmetic *arithmetic = arithmetic_of(ctx, ISA_SCALAR);
    const uint64_t scalar = 8 * FR_LIMBS, bucket = arithmetic->bucket_bytes;
    uint64_t n = ctx->values[POINTS].number, each = arithmetic->point_bytes + 2 * scalar;
    if (ctx->values[DELAY_NS].number != DELAY_NS_DEFAULT &&
        ctx->values[ARITHMETIC].number != ARITHMETIC_DELAY)
        return ps_refuse(why, EINVAL, "delay_ns belongs to arithmetic=delay");
    if (ctx->values[ALIGN].number != 16 && ctx->values[ALIGN].number != PS_LINE)
        return ps_refuse(why, EINVAL, "align is 16 or 64, not %llu",
                         (unsigned long long)ctx->values[ALIGN].number);
    if (!n) {
        uint64_t room = ctx->size_bytes / DATA_SHARE, padding = 3 * 4096u;
        n = room > padding ? (room - padding) / each : 0;
        uint64_t most = most_points(ctx);
        n = n < most ? n : most;
    }
    if (!n)
        return ps_refuse(why, EINVAL, "msm needs at least %llu B",
                         (unsigned long long)(DATA_SHARE * (3 * 4096u + each)));

    msm_grid grid = msm_grid_of(n, ctx->n_threads, (uint32_t)ctx->values[WINDOW].number);
    ctx->words[N] = n;
    ctx->words[NX] = grid.nx;
    ctx->words[NY] = grid.ny;
    ctx->words[BITS] = grid.window;
    ctx->words[CONVERSIONS] = (n + STRIDE - 1) / STRIDE;
    ctx->effort = effort_of(ctx, n, &grid);
    bytes[BASES] = n * arithmetic->point_bytes + 16;
    bytes[SCALARS] = bytes[PLAIN] = n * scalar;
    bytes[BUCKETS] = (bucket << grid.window) + 16;
    bytes[PARTIALS] = tiles_of(ctx) * bucket;
    bytes[RESULT] = bucket;
    uint64_t needed = ctx->n_threads * (bytes[BUCKETS] + 4096u);
    for (uint32_t i = 0; i < N_ARRAYS; i++)
        needed += i == BUCKETS ? 0 : bytes[i] + 4096u;
    if (needed > ctx->size_bytes)
        return ps_refuse(why, EINVAL,
                         "%llu points with a window of %u bits on %u threads need a size of %llu B;"
                         " fewer points or a smaller window need less",
                         (unsigned long long)n, grid.window, ctx->n_threads,
                         (unsigned long long)needed);
    return 0;
}

static int fill(ps_ctx *ctx, uint32_t thread, char *why)
{
    ps_thread *own = &ctx->threads[thread];
    msm_data data = msm_data_of(ctx->seed, (int)ctx->values[DIGITS].number);
    /* The same points, sooner. */
    int isa = msm_real[ISA_ADX][0].make && ps_isa_has(PS_ISA_BMI2_ADX) ? ISA_ADX : ISA_SCALAR;
    uint64_t first, last, *scalars = own->arrays[SCALARS];
    (void)why;
    ps_share(ctx, thread, ctx->words[N], STRIDE, &first, &last);
    arithmetic_of(ctx, isa)->make(&data, aligned_start(ctx, thread, BASES), first, last);
    for (uint64_t i = first; i < last; i++)
        msm_scalar(&data, i, scalars + FR_LIMBS * i);
    memset((uint64_t *)own->arrays[PLAIN] + FR_LIMBS * first, 0, (last - first) * 8 * FR_LIMBS);
    memset(own->arrays[BUCKETS], 0, ctx->bytes[BUCKETS]);
    if (thread == 0) {
        memset(own->arrays[PARTIALS], 0, ctx->bytes[PARTIALS]);
        memset(own->arrays[RESULT], 0, ctx->bytes[RESULT]);
    }
    if (ctx->values[ARITHMETIC].number == ARITHMETIC_DELAY)
        own->words[SPINS] = chain_links(ctx->values[DELAY_NS].number);
    return 0;
}

static void work(const ps_ctx *ctx, ps_work *work)
{
    const msm_arithmetic *arithmetic = arithmetic_of(ctx, ISA_SCALAR);
    const uint64_t n = ctx->words[N], tiles = tiles_of(ctx), conversions = ctx->words[CONVERSIONS];
    const uint64_t point = arithmetic->point_bytes, bucket = arithmetic->bucket_bytes;
    msm_grid grid = grid_of(ctx);
    msm_counts counts = {0};
    /* Empty before a pass and after it, and larger than a bit for each bucket of every row. */
    uint64_t *seen = ctx->threads[0].arrays[BUCKETS];
    for (uint64_t slice = 0; slice < grid.nx; slice++)
        msm_count_slice(&grid, n, slice, ctx->threads[0].arrays[SCALARS], seen, &counts);
    *work = (ps_work){.ops = n, .n_steps = conversions + tiles + 1, .n_stages = 3};
    work->stage_steps[0] = conversions;
    work->stage_steps[1] = tiles;
    work->stage_steps[2] = 1;
    msm_bytes(work, &counts, n, tiles, point, bucket);

    /* Of one thread, a line moved at its first use and back once: what is read, twice what is
     * written. */
    const uint64_t scalar = 8 * FR_LIMBS, sums = 2 * (tiles + 1) * bucket;
    uint64_t buckets = ((1ull << grid.window) - 1) * bucket;
    work->bus_min_bytes = n * (point + 3 * scalar) + 2 * buckets + sums;
    /* Nothing stays cached but the line in use: of the scalars every line for each window, of the
     * points all that are passed, of the buckets all their lines for each access, both ways. */
    uint64_t lines = (bucket + (ctx->values[ALIGN].number < PS_LINE ? PS_LINE : 0)) / PS_LINE;
    work->bus_max_bytes = n * 3 * scalar + counts.streamed * (point + scalar) +
                          2 * counts.accesses * lines * PS_LINE + 2 * counts.walked * bucket +
                          sums + tiles * bucket;
}

static void convert(ps_ctx *ctx, ps_thread *own, uint64_t ticket)
{
    const uint64_t *from = own->arrays[SCALARS];
    uint64_t *to = own->arrays[PLAIN], first = ticket * STRIDE;
    uint64_t last = first + STRIDE < ctx->words[N] ? first + STRIDE : ctx->words[N];
    for (uint64_t i = first; i < last; i++) {
        if ((i - first) % (PACED_BYTES / (16 * FR_LIMBS)) == 0)
            ps_pace(ctx, own, PACED_BYTES);
        msm_plain(to + FR_LIMBS * i, from + FR_LIMBS * i);
    }
}

static void do_tile(ps_ctx *ctx, uint32_t thread, const msm_arithmetic *arithmetic, uint64_t ticket)
{
    ps_thread *own = &ctx->threads[thread];
    msm_grid grid = grid_of(ctx);
    const msm_job job = {
        .points = aligned_start(ctx, thread, BASES),
        .scalars = own->arrays[PLAIN],
        .buckets = aligned_start(ctx, thread, BUCKETS),
        .tile = msm_tile_of(&grid, ctx->words[N], ticket),
        .ahead = ctx->values[PREFETCH].number,
        .spins = own->words[SPINS],
    };
    _Alignas(16) char sums[2 * MSM_BUCKET_MAX] = {0};
    uint64_t bucket = arithmetic->bucket_bytes, access = arithmetic->point_bytes + bucket;
    bool paced = ctx->pace_bytes_per_s > 0;
    uint64_t points = paced ? PACED_BYTES / access : ctx->words[N];
    for (uint64_t at = job.tile.first; job.tile.bits && at < job.tile.last; at += points) {
        ps_pace(ctx, own, points * access);
        arithmetic->gather(&job, at, at + points < job.tile.last ? at + points : job.tile.last);
    }
    uint64_t left = (1ull << job.tile.bits) - 1, buckets = paced ? PACED_BYTES / bucket : left;
    while (left) {
        uint64_t start = left > buckets ? left - buckets : 0;
        ps_pace(ctx, own, buckets * bucket);
        arithmetic->walk(&job, start, left, sums);
        left = start;
    }
    char *partial = (char *)own->arrays[PARTIALS] + ticket * bucket;
    memcpy(partial, sums + bucket, bucket);
    memcpy(&own->sink, partial, sizeof(own->sink));
}

static int step(ps_ctx *ctx, uint32_t thread, uint64_t ticket, int isa)
{
    ps_thread *own = &ctx->threads[thread];
    const msm_arithmetic *arithmetic = arithmetic_of(ctx, isa);
    uint64_t conversions = ctx->words[CONVERSIONS];
    msm_grid grid = grid_of(ctx);
    if (ticket < conversions)
        convert(ctx, own, ticket);
    else if (ticket < conversions + tiles_of(ctx))
        do_tile(ctx, thread, arithmetic, ticket - conversions);
    else
        arithmetic->fold(&grid, own->arrays[PARTIALS], own->arrays[RESULT]);
    own->words[MADE]++;
    return 0;
}

static int step_scalar(ps_ctx *ctx, uint32_t thread, uint64_t ticket)
{
    return step(ctx, thread, ticket, ISA_SCALAR);
}

#if defined(__x86_64__)
static int step_adx(ps_ctx *ctx, uint32_t thread, uint64_t ticket)
{
    return step(ctx, thread, ticket, ISA_ADX);
}
#endif

static int check(ps_ctx *ctx, uint32_t thread, char *why)
{
    const ps_thread *own = &ctx->threads[thread];
    msm_data data = msm_data_of(ctx->seed, (int)ctx->values[DIGITS].number);
    msm_grid grid = grid_of(ctx);
    if (own->words[MADE] != own->steps)
        return ps_refuse(why, EBADMSG, "thread %u made %llu steps of %llu", thread,
                         (unsigned long long)own->words[MADE], (unsigned long long)own->steps);
    if (thread == 0 &&
        !arithmetic_of(ctx, ISA_SCALAR)->holds(&data, &grid, ctx->words[N], own->arrays[RESULT]))
        return ps_refuse(why, EBADMSG, "the sum of %llu multiples is wrong",
                         (unsigned long long)ctx->words[N]);
    return 0;
}

/* ---- descriptor ---------------------------------------------------------------------------- */

static const char *const group_names[] = {[GROUP_G1] = "g1", [GROUP_G2] = "g2"};
static const char *const digit_names[] = {
    [DIGITS_UNIFORM] = "uniform",
    [DIGITS_SKEWED] = "skewed",
};
static const char *const arithmetic_names[] = {
    [ARITHMETIC_REAL] = "real",
    [ARITHMETIC_NONE] = "none",
    [ARITHMETIC_DELAY] = "delay",
};

static const ps_param params[] = {
    {.name = "group",
     .kind = PS_CHOICE,
     .choices = group_names,
     .n_choices = PS_COUNT(group_names),
     .unit = "",
     .help = "g1: points of 96 B, buckets of 192 B; g2: 192 B and 384 B"},
    {.name = "points",
     .kind = PS_U64,
     .default_value = 0,
     .min = 0,
     .max = 1ull << 36,
     .unit = "points",
     .help =
         "0: what a quarter of the size holds with their scalars, the rest is for buckets; with "
         "arithmetic=real at most 65536 (g1) or 16384 (g2), which take about a second"},
    {.name = "digits",
     .kind = PS_CHOICE,
     .choices = digit_names,
     .n_choices = PS_COUNT(digit_names),
     .unit = "",
     .help = "skewed: 49 % of the scalars are zero, 49 % one"},
    {.name = "arithmetic",
     .kind = PS_CHOICE,
     .choices = arithmetic_names,
     .n_choices = PS_COUNT(arithmetic_names),
     .unit = "",
     .help =
         "real: additions on the curve; none: the same accesses with 64-bit adds; delay: those, "
         "and a wait in registers for each addition"},
    {.name = "delay_ns",
     .kind = PS_U64,
     .default_value = DELAY_NS_DEFAULT,
     .min = 0,
     .max = 1000000,
     .unit = "ns",
     .help = "of arithmetic=delay; measured once a process, a fixed number of multiplies from then "
             "on"},
    {.name = "prefetch",
     .kind = PS_U64,
     .default_value = 0,
     .min = 0,
     .max = 2,
     .unit = "points",
     .help = "how far ahead all lines of a bucket are asked for"},
    {.name = "align",
     .kind = PS_U64,
     .default_value = 16,
     .min = 16,
     .max = PS_LINE,
     .unit = "B",
     .help = "16 or 64; 16: points and buckets begin 16 B into a line, as in memory from malloc"},
    {.name = "window",
     .kind = PS_U64,
     .default_value = 0,
     .min = 0,
     .max = MSM_WINDOW_MAX,
     .unit = "bits",
     .help = "of a digit; 0: by the number of points and threads, as a published library chooses"},
};

static const ps_array arrays[N_ARRAYS] = {
    [BASES] = {"points", "u8", PS_IN, PS_PER_ACTOR},
    [SCALARS] = {"scalars", "u8", PS_IN, PS_PER_ACTOR},
    [PLAIN] = {"plain", "u8", PS_SCRATCH, PS_PER_ACTOR},
    [BUCKETS] = {"buckets", "u8", PS_SCRATCH, PS_PER_THREAD},
    [PARTIALS] = {"partials", "u8", PS_SCRATCH, PS_PER_ACTOR},
    [RESULT] = {"result", "u8", PS_OUT, PS_PER_ACTOR},
};

static const ps_variant variants[] = {
    {.name = "scalar", .step = step_scalar},
#if defined(__x86_64__)
    {.name = "adx", .needs = PS_ISA_BMI2_ADX, .step = step_adx},
#endif
};

const ps_kernel ps_kernel_msm = {
    .name = "msm",
    .summary = "sum of scalar times point over BLS12-381 by buckets (Pippenger), tile by tile",
    .op = "point",
    .params = params,
    .n_params = PS_COUNT(params),
    .arrays = arrays,
    .n_arrays = N_ARRAYS,
    .variants = variants,
    .n_variants = PS_COUNT(variants),
    .sharing = PS_TEAM,
    .memory = PS_ARENA,
    .paces_inside = true,
    .layout = layout,
    .fill = fill,
    .work = work,
    .check = check,
};
