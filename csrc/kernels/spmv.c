/* y = A x with A in compressed rows: 4 B row starts and columns, rows in chunks from one counter.
 */
#include "spmv_contents.h"
#include "spmv_isa.h"

static const char *const values_names[] = {
    [VALUES_F64] = "f64",
    [VALUES_FR] = "fr",
    [VALUES_PATTERN] = "pattern",
    [VALUES_PATTERN_FR] = "pattern_fr",
};
static const char *const columns_names[] = {
    [COLUMNS_PROVER] = "prover",
    [COLUMNS_BANDED] = "banded",
    [COLUMNS_UNIFORM] = "uniform",
};
static const char *const matrix_names[] = {[CIRCUIT_A] = "a", [CIRCUIT_B] = "b", [CIRCUIT_C] = "c"};
static const char *const output_names[] = {[OUTPUT_COLD] = "cold", [OUTPUT_WARM] = "warm"};
static const char *const prefetch_names[] = {
    [PREFETCH_AUTO] = "auto", [PREFETCH_NONE] = "none", [PREFETCH_STREAMS] = "streams"};

/* What every array may lose at its start, which the engine staggers. */
#define PADDING 4096u

/* ---- sizes ---------------------------------------------------------------------------------- */

static void set_bytes(const ps_ctx *ctx, const matrix *m, uint64_t *bytes)
{
    uint64_t element = element_bytes(ctx);
    bytes[START] = 4 * (m->n_rows + 1);
    bytes[COLUMN] = 4 * m->nnz;
    bytes[is_fr(ctx) ? VALUE_FR : VALUE] = has_values(ctx) ? element * m->nnz : 0;
    bytes[is_fr(ctx) ? X_FR : X] = element * m->n_cols;
    uint64_t chunk = ctx->values[CHUNK].number;
    if (is_warm(ctx))
        bytes[TILE] = element * (chunk < m->n_rows ? chunk : m->n_rows);
    else
        bytes[is_fr(ctx) ? Y_FR : Y] = element * m->n_rows;
}

/* What these arrays take of size_bytes. */
static uint64_t needed_bytes(const ps_ctx *ctx, const matrix *m)
{
    uint64_t bytes[N_ARRAYS] = {0}, sum = 0;
    set_bytes(ctx, m, bytes);
    for (uint32_t i = 0; i < N_ARRAYS; i++)
        if (bytes[i])
            sum += (bytes[i] + PADDING) * (i == TILE ? ctx->n_threads : 1);
    return sum;
}

/* The most rows whose arrays fit; 0 where none does. */
static uint64_t fitting_rows(const ps_ctx *ctx, matrix *m)
{
    uint64_t fits = 0, too_many = ctx->size_bytes / 4 + 1;
    while (too_many - fits > 1) {
        uint64_t rows = fits + (too_many - fits) / 2;
        matrix_resize(m, ctx, rows);
        if (needed_bytes(ctx, m) <= ctx->size_bytes)
            fits = rows;
        else
            too_many = rows;
    }
    return fits;
}

static int refuse_params(const ps_ctx *ctx, const matrix *m, char *why)
{
    const ps_value *values = ctx->values;
    const ps_param *params = ctx->kernel->params;
    bool file = m->file != NULL, prover = m->columns == COLUMNS_PROVER;
    for (uint32_t i = 0; i < ctx->kernel->n_params; i++) {
        bool shape = i == NNZ_ROW || i == BAND || i == MATRIX;
        if (values[i].number == params[i].default_value || (!shape && i != COLUMNS))
            continue;
        if (file)
            return ps_refuse(why, EINVAL, "%s belongs to generated matrices, not to a file",
                             params[i].name);
        if (i == MATRIX && !prover)
            return ps_refuse(why, EINVAL, "matrix belongs to columns=prover");
        if (i == NNZ_ROW && prover)
            return ps_refuse(why, EINVAL, "nnz_row belongs to columns=banded and uniform");
        if (i == BAND && m->columns != COLUMNS_BANDED)
            return ps_refuse(why, EINVAL, "band belongs to columns=banded");
    }
    if (!file && m->columns == COLUMNS_BANDED && values[BAND].number < values[NNZ_ROW].number)
        return ps_refuse(why, EINVAL, "a band of %llu columns cannot hold %llu entries a row",
                         (unsigned long long)values[BAND].number,
                         (unsigned long long)values[NNZ_ROW].number);
    if (file && is_fr(ctx) && has_values(ctx) && m->file_value && !(m->file->flags & MATRIX_WHOLE))
        return ps_refuse(why, EINVAL, "values=fr needs whole numbers, and %s has others",
                         values[MATRIX_FILE].path);
    return 0;
}

static int fit(const ps_ctx *ctx, matrix *m, char *why)
{
    if (m->file) {
        if (needed_bytes(ctx, m) > ctx->size_bytes)
            return ps_refuse(why, EINVAL, "this matrix needs %llu B, more than %llu",
                             (unsigned long long)needed_bytes(ctx, m),
                             (unsigned long long)ctx->size_bytes);
        return 0;
    }
    uint64_t rows = fitting_rows(ctx, m), least = 1;
    if (m->columns != COLUMNS_PROVER)
        least = m->per_row;
    if (rows < least) {
        matrix_resize(m, ctx, least);
        return ps_refuse(why, EINVAL, "%u threads need at least %llu B", ctx->n_threads,
                         (unsigned long long)needed_bytes(ctx, m));
    }
    matrix_resize(m, ctx, rows);
    if (m->nnz > UINT32_MAX || m->n_cols > UINT32_MAX)
        return ps_refuse(why, EINVAL, "%llu entries are too many for 4 B row starts",
                         (unsigned long long)m->nnz);
    return 0;
}

/* Of an entry: a product in the field, a sum; and its share of the latency of memory where entries
 * are all over an x that no cache near a core holds: more of it where a product keeps the core from
 * looking far ahead. */
static ps_effort effort_of(const ps_ctx *ctx, const matrix *m)
{
    bool fast = ctx->variant->needs != 0, anywhere = m->columns == COLUMNS_UNIFORM || m->file;
    ps_effort effort = {.ops = m->nnz, .op_ns = is_fr(ctx) ? 10 : 2};
    if (is_fr(ctx) && has_values(ctx))
        effort.op_ns = fast ? 35 : 80;
    if (anywhere && m->n_cols * element_bytes(ctx) > 4u << 20)
        effort.op_waits = !is_fr(ctx) ? 1.0 / 16 : has_values(ctx) ? 1.0 / 2 : 1.0 / 5;
    return effort;
}

static int layout(ps_ctx *ctx, uint64_t *bytes, char *why)
{
    matrix m;
    int code = matrix_open(&m, ctx, why);
    if (!code)
        code = refuse_params(ctx, &m, why);
    if (!code)
        code = fit(ctx, &m, why);
    if (!code) {
        uint64_t chunk = ctx->values[CHUNK].number;
        set_bytes(ctx, &m, bytes);
        ctx->effort = effort_of(ctx, &m);
        ctx->words[ROWS] = m.n_rows;
        ctx->words[COLS] = m.n_cols;
        ctx->words[NNZ] = m.nnz;
        ctx->words[N_CHUNKS] = (m.n_rows + chunk - 1) / chunk;
    }
    matrix_close(&m);
    return code;
}

/* ---- work ----------------------------------------------------------------------------------- */

/* Lines of x that some entry refers to: what a cache that keeps all of them would fetch. All, where
 * there is no memory to count them. One thread counts while others wait: a byte a line, as bits of
 * one word would have to wait for each other. */
static uint64_t lines_of_x(const ps_ctx *ctx)
{
    uint64_t a_line = PS_LINE / element_bytes(ctx), nnz = ctx->words[NNZ], lines = 0;
    uint64_t n = ctx->words[COLS] / a_line + 1;
    uint32_t shift = (uint32_t)__builtin_ctzll(a_line);
    const uint32_t *column = ctx->threads[0].arrays[COLUMN];
    uint8_t *seen = calloc(n, sizeof(*seen));
    if (!seen)
        return n;
    for (uint64_t k = 0; k < nnz; k++)
        seen[column[k] >> shift] = 1;
    for (uint64_t i = 0; i < n; i++)
        lines += seen[i];
    free(seen);
    return lines;
}

static void work(const ps_ctx *ctx, ps_work *work)
{
    uint64_t rows = ctx->words[ROWS], nnz = ctx->words[NNZ], n = ctx->words[N_CHUNKS];
    uint64_t element = element_bytes(ctx), streams = 4 * (rows + 1) + 4 * nnz;
    if (has_values(ctx))
        streams += element * nnz;
    *work = (ps_work){.n_steps = n, .n_stages = 1, .stage_steps = {n}, .ops = nnz};
    work->read_bytes = streams + element * nnz;
    work->written_bytes = element * rows;
    /* Cold output is fetched before it is written back; warm output need not leave the cache.
     * Each entry may fetch a line of x, or all entries of a line one. */
    uint64_t output = 2 * work->written_bytes;
    work->bus_min_bytes = streams + (is_warm(ctx) ? 0 : output) + PS_LINE * lines_of_x(ctx);
    work->bus_max_bytes = streams + output + PS_LINE * nnz;
}

/* ---- steps ---------------------------------------------------------------------------------- */

/* Bytes of values that lie between a use and its prefetch: any of 4 to 16 KiB did well. */
#define AHEAD_BYTES 6144u

static bool asks_ahead(const ps_ctx *ctx)
{
    uint64_t prefetch = ctx->values[PREFETCH].number;
    return prefetch == PREFETCH_STREAMS || (prefetch == PREFETCH_AUTO && !is_fr(ctx));
}

static spmv_body *body_of(const ps_ctx *ctx)
{
    const spmv_bodies *bodies = &spmv_variant_bodies[ctx->variant - spmv_variants];
    uint64_t values = ctx->values[VALUES].number;
    return asks_ahead(ctx) ? bodies->ahead[values] : bodies->plain[values];
}

static spmv_job job_of(const ps_ctx *ctx, uint32_t thread)
{
    void *const *arrays = ctx->threads[thread].arrays;
    return (spmv_job){
        .start = arrays[START],
        .column = arrays[COLUMN],
        .value = arrays[VALUE],
        .value_fr = arrays[VALUE_FR],
        .x = arrays[X],
        .x_fr = arrays[X_FR],
        .ahead = AHEAD_BYTES / element_bytes(ctx),
    };
}

/* The next rows that come to 4 KiB, and their bytes. */
static uint64_t paced_rows(const ps_ctx *ctx, const spmv_job *job, uint64_t first, uint64_t last,
                           uint64_t *bytes)
{
    uint64_t element = element_bytes(ctx), entry = 4 + element * (has_values(ctx) ? 2 : 1);
    uint64_t row = first;
    *bytes = 0;
    while (row < last && *bytes < 4096) {
        *bytes += (job->start[row + 1] - job->start[row]) * entry + 4 + element;
        row++;
    }
    return row;
}

static int spmv_step(ps_ctx *ctx, uint32_t thread, uint64_t ticket)
{
    ps_thread *own = &ctx->threads[thread];
    spmv_job job = job_of(ctx, thread);
    spmv_body *body = body_of(ctx);
    uint64_t first, last;
    chunk_rows(ctx, ticket, &first, &last);
    char *out = output_of(ctx, thread, first);
    while (ctx->pace_bytes_per_s > 0 && first < last) {
        uint64_t bytes, end = paced_rows(ctx, &job, first, last, &bytes);
        ps_pace(ctx, own, bytes);
        body(&job, first, end, out);
        out += (end - first) * element_bytes(ctx);
        first = end;
    }
    if (first < last)
        body(&job, first, last, out);
    own->words[LAST_CHUNK] = ticket + 1;
    own->words[MADE]++;
    return 0;
}

/* ---- descriptor ----------------------------------------------------------------------------- */

static const ps_param params[] = {
    [VALUES] = {.name = "values",
                .kind = PS_CHOICE,
                .choices = values_names,
                .n_choices = PS_COUNT(values_names),
                .unit = "",
                .help = "f64: 8 B; fr: 32 B, the scalar field of BLS12-381; pattern, pattern_fr: x "
                        "of f64 or fr, and every entry is one. Variant adx is plain C for f64, "
                        "avx2 is adx for fr"},
    [COLUMNS] = {.name = "columns",
                 .kind = PS_CHOICE,
                 .choices = columns_names,
                 .n_choices = PS_COUNT(columns_names),
                 .unit = "",
                 .help = "prover: constraints of SHA-256, 0 to 3 entries a row and a few of "
                         "hundreds, most columns near; banded: near the diagonal; uniform: "
                         "one anywhere in each of nnz_row equal parts of x, so that columns "
                         "ascend in a row"},
    [MATRIX] = {.name = "matrix",
                .kind = PS_CHOICE,
                .choices = matrix_names,
                .n_choices = PS_COUNT(matrix_names),
                .unit = "",
                .help = "of columns=prover: 2.3 (a), 1 (b), 2.2 (c) entries a row"},
    [OUTPUT] = {.name = "output",
                .kind = PS_CHOICE,
                .choices = output_names,
                .n_choices = PS_COUNT(output_names),
                .unit = "",
                .help = "cold: every row has its own place in y, which a pass finds where the last "
                        "one left it: in memory, unless all arrays fit the caches; warm: a thread "
                        "writes all its chunks to one place, which stays in its cache"},
    [NNZ_ROW] = {.name = "nnz_row",
                 .kind = PS_U64,
                 .default_value = 32,
                 .min = 1,
                 .max = MATRIX_MOST_PER_ROW,
                 .unit = "entries",
                 .help = "entries of each row; of columns=banded and uniform"},
    [BAND] = {.name = "band",
              .kind = PS_U64,
              .default_value = 1024,
              .min = 1,
              .max = UINT32_MAX,
              .unit = "columns",
              .help = "of columns=banded: width of the window around the diagonal"},
    [CHUNK] = {.name = "chunk",
               .kind = PS_U64,
               .default_value = 8192,
               .min = 1,
               .max = 1u << 24,
               .unit = "rows",
               .help = "rows that a thread takes at once"},
    [PREFETCH] = {.name = "prefetch",
                  .kind = PS_CHOICE,
                  .choices = prefetch_names,
                  .n_choices = PS_COUNT(prefetch_names),
                  .unit = "",
                  .help = "streams: columns and values are asked for some KiB ahead; none: left to "
                          "the CPU; auto: streams for f64 and pattern, where that pays, none for "
                          "fr, as provers do"},
    [MATRIX_FILE] = {.name = "matrix_file",
                     .kind = PS_FILE,
                     .unit = "",
                     .help = "a Matrix Market file (.mtx, .mtx.gz) instead of a generated matrix"},
};

static const ps_array array_rows[N_ARRAYS] = {
    [START] = {"start", "u4", PS_IN, PS_PER_ACTOR},
    [COLUMN] = {"column", "u4", PS_IN, PS_PER_ACTOR},
    [VALUE] = {"value", "f8", PS_IN, PS_PER_ACTOR},
    [VALUE_FR] = {"value_fr", "u8", PS_IN, PS_PER_ACTOR},
    [X] = {"x", "f8", PS_IN, PS_PER_ACTOR},
    [X_FR] = {"x_fr", "u8", PS_IN, PS_PER_ACTOR},
    [Y] = {"y", "f8", PS_OUT, PS_PER_ACTOR},
    [Y_FR] = {"y_fr", "u8", PS_OUT, PS_PER_ACTOR},
    [TILE] = {"tile", "u8", PS_SCRATCH, PS_PER_THREAD},
};

const ps_kernel ps_kernel_spmv = {
    .name = "spmv",
    .summary = "y = A x, A sparse in compressed rows, a team taking chunks of rows",
    .op = "entry",
    .params = params,
    .n_params = PS_COUNT(params),
    .arrays = array_rows,
    .n_arrays = N_ARRAYS,
    .variants = spmv_variants,
    .n_variants = PS_COUNT(spmv_variants),
    .sharing = PS_TEAM,
    .memory = PS_ARENA,
    .paces_inside = true,
    .layout = layout,
    .fill = fill,
    .work = work,
    .check = check,
};
