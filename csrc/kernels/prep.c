/*
 * What a prover does to its scalars before it multiplies them with points: one sweep finds those
 * that are neither zero nor one, a second copies them and their points into dense tails.
 *
 * The real thing runs on one thread with running counters. Here a pass is cut into chunks that any
 * thread takes, so that it also runs as a team: the places that the counters would give are known
 * from the input (ranks) or from the stage before (counts).
 */
#include "prep_contents.h"
#include "prep_passes.h"

#define PADDING 4096u /* what every array may lose at its start, which the engine staggers */

static const char *const branches_names[] = {[BRANCHY] = "branchy", [BRANCH_FREE] = "free"};

enum stage { CLASSIFY, MERGE, DECIDE, FILL, N_STAGES };
static const char *const phase_names[N_STAGES] = {"classify", "merge", "decide", "fill"};

/* ---- sizes ---------------------------------------------------------------------------------- */

static int refuse_params(const ps_ctx *ctx, char *why)
{
    const ps_value *values = ctx->values;
    uint64_t one = values[ONE].number, full = values[FULL].number, b = values[DENSITY_B].number;
    uint64_t of_full = values[FULL_B].number;
    if (values[CHUNK].number % 64)
        return ps_refuse(why, EINVAL, "chunk is a multiple of 64, not %llu",
                         (unsigned long long)values[CHUNK].number);
    if (one + full > PER)
        return ps_refuse(why, EINVAL, "one and full together are more than all of %u", PER);
    if (full && full * of_full > b * PER)
        return ps_refuse(why, EINVAL, "full_b alone makes b denser than density_b");
    if (full && (PER - full) * PER < b * PER - full * of_full)
        return ps_refuse(why, EINVAL, "density_b cannot be reached with so small a full_b");
    return 0;
}

static void set_bytes(const ps_ctx *ctx, uint64_t *bytes)
{
    const uint64_t *points = &ctx->words[POINTS], *fulls = &ctx->words[FULLS];
    uint64_t chunks = ctx->words[N_CHUNKS], bitmaps = 8 * bitmap_start(ctx, N_VECTORS);
    uint64_t all_fulls = tail_start(ctx, N_VECTORS);
    bytes[AUX] = 8 * SCALAR_WORDS * points[L];
    bytes[DENSITY] = 2 * points[L] / 8;
    bytes[RANK] = 16 * (chunks + 1);
    bytes[POINT_L] = 8 * G1_WORDS * points[L];
    bytes[POINT_A] = 8 * G1_WORDS * points[A];
    bytes[POINT_B1] = 8 * G1_WORDS * points[B];
    bytes[POINT_B2] = 8 * G2_WORDS * points[B];
    bytes[BITS] = bytes[MASK] = bytes[ONES] = bitmaps;
    bytes[COUNT] = 2 * 8 * N_VECTORS * chunks;
    bytes[TAIL_SCALAR] = 8 * SCALAR_WORDS * all_fulls;
    bytes[TAIL_G1] = 8 * G1_WORDS * all_fulls;
    bytes[TAIL_G2] = 8 * G2_WORDS * fulls[B];
}

static void set_words(ps_ctx *ctx, const prep_counts *counts)
{
    uint64_t chunk = ctx->values[CHUNK].number;
    for (uint32_t v = L; v <= B; v++) {
        ctx->words[POINTS + v] = counts->points[v];
        ctx->words[FULLS + v] = counts->fulls[v];
    }
    ctx->words[N_CHUNKS] = (counts->points[L] + chunk - 1) / chunk;
}

static uint64_t needed_bytes(const ps_ctx *ctx)
{
    uint64_t bytes[N_ARRAYS] = {0}, sum = 0;
    set_bytes(ctx, bytes);
    for (uint32_t i = 0; i < N_ARRAYS; i++)
        sum += bytes[i] + (bytes[i] ? PADDING : 0);
    return sum;
}

/* The most scalars that fit, by adding some until they do not. */
static int layout(ps_ctx *ctx, uint64_t *bytes, char *why)
{
    int code = refuse_params(ctx, why);
    if (code)
        return code;
    prep_counts counts = {{0}, {0}}, more;
    for (uint64_t words = 1024; words; words /= 1024)
        for (;;) {
            uint64_t done = counts.points[L] / 64;
            more = counts;
            count_words(ctx, done, done + words, &more);
            set_words(ctx, &more);
            if (needed_bytes(ctx) > ctx->size_bytes)
                break;
            counts = more;
        }
    if (counts.points[L] == 0)
        return ps_refuse(why, EINVAL, "64 scalars need at least %llu B",
                         (unsigned long long)needed_bytes(ctx));
    set_words(ctx, &counts);
    set_bytes(ctx, bytes);
    ctx->effort = (ps_effort){.ops = n_scalars(ctx),
                              .op_ns = ctx->values[BRANCHES].number == BRANCHY ? 40 : 15};
    return 0;
}

/* ---- work ----------------------------------------------------------------------------------- */

typedef struct {
    uint64_t next; /* first line that no point before has touched */
    uint64_t distinct, each; /* lines: of all points together, and summed over points */
} line_count;

static void count_lines(line_count *lines, uint64_t point, uint64_t point_bytes)
{
    uint64_t first = point * point_bytes / PS_LINE;
    uint64_t end = (point * point_bytes + point_bytes - 1) / PS_LINE + 1;
    lines->each += end - first;
    first = first > lines->next ? first : lines->next;
    lines->distinct += end - first;
    lines->next = end;
}

/* Lines of the points of full scalars, which are a few runs. */
static void count_point_lines(const ps_ctx *ctx, uint64_t *distinct, uint64_t *each)
{
    const uint64_t *density = ctx->threads[0].arrays[DENSITY];
    uint64_t n = bitmap_words(ctx, L), rank[N_VECTORS] = {0};
    line_count lines[N_VECTORS + 1] = {{0, 0, 0}};
    for (uint64_t word = 0; word < n; word++) {
        uint64_t there[N_VECTORS] = {~0ull, density[word], density[n + word]};
        uint64_t full = full_word(ctx, word);
        for (uint32_t v = L; v <= B; v++) {
            for (uint64_t left = full & there[v]; left; left &= left - 1) {
                uint64_t before = there[v] & ((left & -left) - 1);
                uint64_t point = rank[v] + (uint64_t)__builtin_popcountll(before);
                count_lines(&lines[v], point, 8 * G1_WORDS);
                if (v == B)
                    count_lines(&lines[N_VECTORS], point, 8 * G2_WORDS);
            }
            rank[v] += (uint64_t)__builtin_popcountll(there[v]);
        }
    }
    *distinct = *each = 0;
    for (uint32_t i = 0; i <= N_VECTORS; i++) {
        *distinct += lines[i].distinct;
        *each += lines[i].each;
    }
}

/* Ranks and counts, 40 B a chunk and stage, are not counted: the real thing keeps them in
 * registers. */
static void work(const ps_ctx *ctx, ps_work *work)
{
    uint64_t n = n_scalars(ctx), chunks = ctx->words[N_CHUNKS], distinct, each, bitmaps = 0;
    for (uint32_t v = L; v <= B; v++)
        bitmaps += 8 * bitmap_words(ctx, v);
    uint64_t tails = ctx->bytes[TAIL_SCALAR] + ctx->bytes[TAIL_G1] + ctx->bytes[TAIL_G2];
    uint64_t points = ctx->bytes[TAIL_G1] + ctx->bytes[TAIL_G2];
    uint64_t streams = 2 * (8 * SCALAR_WORDS * n + 2 * n / 8) /* classify and fill */
                       + 2 * bitmaps; /* merge and fill */
    *work = (ps_work){.n_steps = 3 * chunks + 1,
                      .n_stages = N_STAGES,
                      .stage_steps = {chunks, chunks, 1, chunks},
                      .ops = n};
    work->read_bytes = streams + points;
    work->written_bytes = 3 * bitmaps + tails;
    count_point_lines(ctx, &distinct, &each);
    work->bus_min_bytes = streams + PS_LINE * distinct + 2 * work->written_bytes;
    work->bus_max_bytes = streams + PS_LINE * each + 2 * work->written_bytes;
}

/* ---- steps ---------------------------------------------------------------------------------- */

static prep_job job_of(const ps_ctx *ctx, uint32_t thread, uint64_t chunk, uint32_t output)
{
    void *const *arrays = ctx->threads[thread].arrays;
    const uint64_t *rank = arrays[RANK], *density = arrays[DENSITY];
    const uint64_t *before = (const uint64_t *)arrays[COUNT] + N_VECTORS * ctx->words[N_CHUNKS];
    prep_job job = {.aux = arrays[AUX], .point_g2 = arrays[POINT_B2]};
    job.density[A] = density;
    job.density[B] = density + bitmap_words(ctx, L);
    for (uint32_t v = L; v <= B; v++) {
        uint64_t start = bitmap_start(ctx, v);
        job.rank[v] = v == L ? chunk * ctx->values[CHUNK].number : rank[2 * chunk + v - A];
        job.out[v] = stream_at((uint64_t *)arrays[output] + start, job.rank[v]);
        job.mask[v] = (const uint64_t *)arrays[MASK] + start;
        job.point[v] = arrays[POINT_L + v];
        if (output != ONES)
            continue;
        uint64_t entry = tail_start(ctx, v) + before[N_VECTORS * chunk + v];
        job.tail_scalar[v] = (uint64_t *)arrays[TAIL_SCALAR] + SCALAR_WORDS * entry;
        job.tail_g1[v] = (uint64_t *)arrays[TAIL_G1] + G1_WORDS * entry;
    }
    if (output == ONES)
        job.tail_g2 = (uint64_t *)arrays[TAIL_G2] + G2_WORDS * before[N_VECTORS * chunk + B];
    return job;
}

typedef void sweep(prep_job *job, uint64_t first, uint64_t last);

/* A word of scalars is 2 KiB; what is written besides is a hundredth. */
static void sweep_chunk(ps_ctx *ctx, uint32_t thread, uint64_t chunk, uint32_t output, sweep *body)
{
    prep_job job = job_of(ctx, thread, chunk, output);
    uint64_t first, last;
    chunk_words(ctx, chunk, &first, &last);
    for (; ctx->pace_bytes_per_s > 0 && first < last; first++) {
        ps_pace(ctx, &ctx->threads[thread], 64 * 8 * SCALAR_WORDS);
        body(&job, first, first + 1);
    }
    if (first < last)
        body(&job, first, last);
    for (uint32_t v = L; v <= B; v++)
        stream_store(&job.out[v]);
}

static void merge_chunk(const ps_ctx *ctx, uint32_t thread, uint64_t chunk)
{
    void *const *arrays = ctx->threads[thread].arrays;
    const uint64_t *rank = arrays[RANK];
    uint64_t *count = (uint64_t *)arrays[COUNT] + N_VECTORS * chunk, first, last;
    chunk_words(ctx, chunk, &first, &last);
    for (uint32_t v = L; v <= B; v++) {
        uint64_t start = bitmap_start(ctx, v);
        uint64_t from = v == L ? 64 * first : rank[2 * chunk + v - A];
        uint64_t to = v == L ? 64 * last : rank[2 * chunk + 2 + v - A];
        count[v] = merge_range((const uint64_t *)arrays[BITS] + start,
                               (uint64_t *)arrays[MASK] + start, from, to);
    }
}

/* Where each chunk's part of the tails begins. The real thing also decides here whether tails pay:
 * they do where at most half of the scalars are full. */
static void decide(const ps_ctx *ctx, uint32_t thread)
{
    const uint64_t *count = ctx->threads[thread].arrays[COUNT];
    uint64_t n = N_VECTORS * ctx->words[N_CHUNKS], sum[N_VECTORS] = {0};
    uint64_t *before = (uint64_t *)ctx->threads[thread].arrays[COUNT] + n;
    for (uint64_t i = 0; i < n; i++) {
        before[i] = sum[i % N_VECTORS];
        sum[i % N_VECTORS] += count[i];
    }
}

static int prep_step(ps_ctx *ctx, uint32_t thread, uint64_t ticket)
{
    ps_thread *own = &ctx->threads[thread];
    uint64_t chunks = ctx->words[N_CHUNKS], start = ps_clock_ns();
    bool branchy = ctx->values[BRANCHES].number == BRANCHY;
    enum stage stage = CLASSIFY;
    if (ticket < chunks) {
        sweep_chunk(ctx, thread, ticket, BITS, branchy ? classify_branchy : classify_free);
    } else if (ticket < 2 * chunks) {
        stage = MERGE;
        merge_chunk(ctx, thread, ticket - chunks);
    } else if (ticket == 2 * chunks) {
        stage = DECIDE;
        decide(ctx, thread);
    } else {
        stage = FILL;
        sweep_chunk(ctx, thread, ticket - 2 * chunks - 1, ONES, branchy ? fill_branchy : fill_free);
    }
    own->phase_ns[stage] += ps_clock_ns() - start;
    own->words[MADE]++;
    return 0;
}

/* ---- descriptor ----------------------------------------------------------------------------- */

#define SHARE(row, default_share, text)                                                            \
    {.name = row,                                                                                  \
     .kind = PS_U64,                                                                               \
     .default_value = default_share,                                                               \
     .max = PER,                                                                                   \
     .unit = "/10000",                                                                             \
     .help = text}

static const ps_param params[] = {
    [ONE] = SHARE("one", 4900, "share of scalars that are one; the rest but full ones are zero"),
    [FULL] = SHARE("full", 133, "share of scalars that are neither, and are copied to the tails"),
    [RUN] = {.name = "run",
             .kind = PS_U64,
             .default_value = 530,
             .min = 1,
             .max = 1u << 20,
             .unit = "",
             .help = "full scalars in a row; 1: all over the place"},
    [DENSITY_A] = SHARE("density_a", 9970, "share of scalars with a point in A"),
    [DENSITY_B] = SHARE("density_b", 2540, "share of scalars with points in B"),
    [FULL_B] = SHARE("full_b", 7500, "share of the full scalars with points in B"),
    [BRANCHES] = {.name = "branches",
                  .kind = PS_CHOICE,
                  .choices = branches_names,
                  .n_choices = PS_COUNT(branches_names),
                  .unit = "",
                  .help = "branchy: on every scalar, as provers do, though zero or one is a coin "
                          "toss; free: bit arithmetic, branches on full scalars only"},
    [CHUNK] = {.name = "chunk",
               .kind = PS_U64,
               .default_value = 8192,
               .min = 64,
               .max = 1u << 24,
               .unit = "",
               .help = "scalars that a thread takes at once, a multiple of 64"},
};

static const ps_array array_rows[N_ARRAYS] = {
    [AUX] = {"aux", "u8", PS_IN, PS_PER_ACTOR},
    [DENSITY] = {"density", "u8", PS_IN, PS_PER_ACTOR},
    [RANK] = {"rank", "u8", PS_IN, PS_PER_ACTOR},
    [POINT_L] = {"point_l", "u8", PS_IN, PS_PER_ACTOR},
    [POINT_A] = {"point_a", "u8", PS_IN, PS_PER_ACTOR},
    [POINT_B1] = {"point_b1", "u8", PS_IN, PS_PER_ACTOR},
    [POINT_B2] = {"point_b2", "u8", PS_IN, PS_PER_ACTOR},
    [BITS] = {"bits", "u8", PS_OUT, PS_PER_ACTOR},
    [MASK] = {"mask", "u8", PS_OUT, PS_PER_ACTOR},
    [ONES] = {"ones", "u8", PS_OUT, PS_PER_ACTOR},
    [COUNT] = {"count", "u8", PS_SCRATCH, PS_PER_ACTOR},
    [TAIL_SCALAR] = {"tail_scalar", "u8", PS_OUT, PS_PER_ACTOR},
    [TAIL_G1] = {"tail_g1", "u8", PS_OUT, PS_PER_ACTOR},
    [TAIL_G2] = {"tail_g2", "u8", PS_OUT, PS_PER_ACTOR},
};

static const ps_variant variants[] = {{.name = "scalar", .step = prep_step}};

const ps_kernel ps_kernel_prep = {
    .name = "prep",
    .summary = "classify scalars as zero, one or full into bitmaps, merge, gather dense tails",
    .op = "scalar",
    .params = params,
    .n_params = PS_COUNT(params),
    .arrays = array_rows,
    .n_arrays = N_ARRAYS,
    .variants = variants,
    .n_variants = PS_COUNT(variants),
    .phases = phase_names,
    .n_phases = N_STAGES,
    .sharing = PS_TEAM,
    .memory = PS_ARENA,
    .paces_inside = true,
    .layout = layout,
    .fill = generate,
    .work = work,
    .check = check,
};
