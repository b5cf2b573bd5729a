/* spmv_contents.h - what the arrays of spmv hold before and after a pass. */
#ifndef PS_SPMV_CONTENTS_H
#define PS_SPMV_CONTENTS_H

#include <math.h>

#include "spmv_matrix.h"

enum output { OUTPUT_COLD, OUTPUT_WARM };
enum prefetch { PREFETCH_AUTO, PREFETCH_NONE, PREFETCH_STREAMS };
enum array { START, COLUMN, VALUE, VALUE_FR, X, X_FR, Y, Y_FR, TILE, N_ARRAYS };
/* ps_ctx.words */
enum ctx_word { ROWS, COLS, NNZ, N_CHUNKS };
/* ps_thread.words: chunk made last, plus one: what the tile holds; steps made. */
enum thread_word { LAST_CHUNK, MADE };

static bool has_values(const ps_ctx *ctx)
{
    return ctx->values[VALUES].number == VALUES_F64 || ctx->values[VALUES].number == VALUES_FR;
}

static bool is_fr(const ps_ctx *ctx)
{
    return ctx->values[VALUES].number == VALUES_FR ||
           ctx->values[VALUES].number == VALUES_PATTERN_FR;
}

/* Bytes of an element of x and y. */
static uint64_t element_bytes(const ps_ctx *ctx)
{
    return is_fr(ctx) ? sizeof(fr) : sizeof(double);
}

static bool is_warm(const ps_ctx *ctx)
{
    return ctx->values[OUTPUT].number == OUTPUT_WARM;
}

static void chunk_rows(const ps_ctx *ctx, uint64_t chunk, uint64_t *first, uint64_t *last)
{
    *first = chunk * ctx->values[CHUNK].number;
    *last = *first + ctx->values[CHUNK].number;
    *last = *last < ctx->words[ROWS] ? *last : ctx->words[ROWS];
}

/* Where the results of a chunk go: its rows of y, or the thread's one tile for all chunks. */
static char *output_of(const ps_ctx *ctx, uint32_t thread, uint64_t first_row)
{
    void *const *arrays = ctx->threads[thread].arrays;
    if (is_warm(ctx))
        return arrays[TILE];
    return (char *)arrays[is_fr(ctx) ? Y_FR : Y] + first_row * element_bytes(ctx);
}

/* The matrix that was laid out. */
static int reopen(const ps_ctx *ctx, matrix *m, char *why)
{
    int code = matrix_open(m, ctx, why);
    if (!code && !m->file)
        matrix_resize(m, ctx, ctx->words[ROWS]);
    return code;
}

/* ---- before --------------------------------------------------------------------------------- */

static void fill_vectors(const ps_ctx *ctx, uint32_t thread)
{
    const ps_thread *own = &ctx->threads[thread];
    uint64_t first, last;
    ps_share(ctx, thread, ctx->words[COLS], 512, &first, &last);
    for (uint64_t i = first; i < last; i++)
        if (is_fr(ctx))
            matrix_random_fr((fr *)own->arrays[X_FR] + i, ctx->seed, i);
        else
            ((double *)own->arrays[X])[i] = matrix_x(ctx->seed, i);
    /* No result is all ones: a field element is smaller, and as a double it is not a number. */
    ps_share(ctx, thread, ctx->words[ROWS], ctx->values[CHUNK].number, &first, &last);
    if (is_warm(ctx))
        memset(own->arrays[TILE], 0xff, ctx->bytes[TILE]);
    else
        memset(output_of(ctx, thread, first), 0xff, (last - first) * element_bytes(ctx));
}

static void fill_row(const ps_ctx *ctx, const matrix *m, uint32_t thread, uint64_t row)
{
    const ps_thread *own = &ctx->threads[thread];
    uint64_t start = matrix_start(m, row), end = matrix_start(m, row + 1);
    double *value = own->arrays[VALUE];
    fr *value_fr = own->arrays[VALUE_FR];
    ((uint32_t *)own->arrays[START])[row] = (uint32_t)start;
    matrix_row(m, row, (uint32_t *)own->arrays[COLUMN] + start);
    if (!has_values(ctx))
        return;
    for (uint64_t k = start; k < end; k++)
        if (is_fr(ctx))
            matrix_value_fr(m, k, &value_fr[k]);
        else
            value[k] = matrix_value(m, k);
}

static int fill(ps_ctx *ctx, uint32_t thread, char *why)
{
    matrix m;
    uint64_t first, last, n_rows = ctx->words[ROWS];
    int code = reopen(ctx, &m, why);
    ps_share(ctx, thread, n_rows, ctx->values[CHUNK].number, &first, &last);
    for (uint64_t row = first; row < last && !code; row++) {
        if (m.file)
            code = matrix_check_row(&m, row, why);
        if (!code)
            fill_row(ctx, &m, thread, row);
    }
    if (!code && first < last && last == n_rows)
        ((uint32_t *)ctx->threads[thread].arrays[START])[n_rows] = (uint32_t)m.nnz;
    if (!code)
        fill_vectors(ctx, thread);
    matrix_close(&m);
    return code;
}

/* ---- after ---------------------------------------------------------------------------------- */

/* Products that one thread's check makes, less than a tenth of a second; with more entries it takes
 * every so-manieth row. */
#define CHECKED_F64 (1ull << 22)
#define CHECKED_FR (1ull << 20)

/* Result of a row, made anew from the seed (or the file) in the plainest way, without the arrays.
 */
static bool right_f64(const ps_ctx *ctx, const matrix *m, uint64_t row, const uint32_t *columns,
                      double result)
{
    uint64_t start = matrix_start(m, row), n = matrix_start(m, row + 1) - start;
    double sum = 0, size = 0;
    for (uint64_t i = 0; i < n; i++) {
        double x = matrix_x(ctx->seed, columns[i]);
        double term = has_values(ctx) ? matrix_value(m, start + i) * x : x;
        sum += term;
        size += fabs(term);
    }
    /* Numbers too large for a sum, as a file may have them: order decides between a number, an
     * infinity and none. What it cannot be is all ones, as fill() left it. */
    if (!isfinite(size)) {
        static const uint64_t never_made = UINT64_MAX;
        return memcmp(&result, &never_made, sizeof(result)) != 0;
    }
    /* Generated sums are exact; those of a file depend on the order of additions. */
    double allowed = m->file ? (double)n * 0x1p-52 * size : 0;
    return fabs(result - sum) <= allowed || result == sum;
}

static bool right_fr(const ps_ctx *ctx, const matrix *m, uint64_t row, const uint32_t *columns,
                     const fr *result)
{
    uint64_t start = matrix_start(m, row), n = matrix_start(m, row + 1) - start;
    fr sum = {{0}};
    for (uint64_t i = 0; i < n; i++) {
        fr term, value;
        matrix_random_fr(&term, ctx->seed, columns[i]);
        if (has_values(ctx)) {
            matrix_value_fr(m, start + i, &value);
            fr_mul(&term, &term, &value);
        }
        fr_add(&sum, &sum, &term);
    }
    return memcmp(&sum, result, sizeof(sum)) == 0;
}

static int check_rows(const ps_ctx *ctx, const matrix *m, uint64_t first, uint64_t last,
                      uint64_t stride, const char *out, char *why)
{
    uint32_t made[MATRIX_MOST_PER_ROW];
    for (uint64_t row = first; row < last; row += stride) {
        const char *result = out + (row - first) * element_bytes(ctx);
        const uint32_t *columns = m->file ? m->file_column + m->file_start[row] : made;
        if (!m->file)
            matrix_row(m, row, made);
        bool right = is_fr(ctx)
                         ? right_fr(ctx, m, row, columns, (const fr *)(const void *)result)
                         : right_f64(ctx, m, row, columns, *(const double *)(const void *)result);
        if (!right)
            return ps_refuse(why, EBADMSG, "y[%llu] is wrong", (unsigned long long)row);
    }
    return 0;
}

static int check(ps_ctx *ctx, uint32_t thread, char *why)
{
    matrix m;
    const ps_thread *own = &ctx->threads[thread];
    uint64_t first, last, enough = is_fr(ctx) ? CHECKED_FR : CHECKED_F64;
    /* Odd, so that no rows of a loop's turn are always left out. */
    uint64_t stride = (ctx->words[NNZ] / ctx->n_threads / enough) | 1;
    if (own->words[MADE] != own->steps)
        return ps_refuse(why, EBADMSG, "thread %u made %llu steps of %llu", thread,
                         (unsigned long long)own->words[MADE], (unsigned long long)own->steps);
    int code = reopen(ctx, &m, why);
    if (!code && is_warm(ctx) && own->words[LAST_CHUNK]) {
        chunk_rows(ctx, own->words[LAST_CHUNK] - 1, &first, &last);
        code = check_rows(ctx, &m, first, last, stride, own->arrays[TILE], why);
    } else if (!code && !is_warm(ctx)) {
        ps_share(ctx, thread, ctx->words[ROWS], ctx->values[CHUNK].number, &first, &last);
        code = check_rows(ctx, &m, first, last, stride, output_of(ctx, thread, first), why);
    }
    matrix_close(&m);
    return code;
}

#endif
