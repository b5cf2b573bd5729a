/*
 * spmv_matrix.h - which entries the matrix has: rows, columns and values as functions of the seed,
 * or a user's file. Row starts need no pass over the rows before, so that any thread fills any
 * rows.
 */
#ifndef PS_SPMV_MATRIX_H
#define PS_SPMV_MATRIX_H

#include "fr.h"
#include "spmv_circuit.h"

enum param { VALUES, COLUMNS, MATRIX, OUTPUT, NNZ_ROW, BAND, CHUNK, PREFETCH, MATRIX_FILE };
enum values { VALUES_F64, VALUES_FR, VALUES_PATTERN, VALUES_PATTERN_FR };
enum columns { COLUMNS_PROVER, COLUMNS_BANDED, COLUMNS_UNIFORM };

/* A converted file: this, then row starts (u4, n_rows + 1), columns (u4, nnz) and values (f8, nnz;
 * none of a pattern), each from a multiple of 64 bytes on; little endian. */
#define MATRIX_MAGIC "pagestorm csr 1\n"
#define MATRIX_HAS_VALUES 1u
#define MATRIX_WHOLE 2u /* every value is a whole number below 2^53 in size */
typedef struct {
    char magic[16];
    uint64_t n_rows, n_cols, nnz, flags;
    uint64_t reserved[2];
} matrix_header;

typedef struct {
    uint64_t n_rows, n_cols, nnz;
    uint64_t seed;
    int columns;
    /* banded, uniform: one entry in each of per_row equal strata of a window */
    uint64_t per_row, width, stratum; /* stratum in 2^-32 columns */
    /* prover */
    const circuit *block;
    const circuit_part *part;
    /* file */
    const matrix_header *file;
    const uint32_t *file_start, *file_column;
    const double *file_value; /* NULL: all are one */
    const char *path;
} matrix;

/* Entries of a generated row, at most; a file may have more. */
#define MATRIX_MOST_PER_ROW 4096u

static uint64_t matrix_align(uint64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* Checks what can be checked without reading all of it. */
static int matrix_open_file(matrix *m, const ps_value *file, char *why)
{
    const matrix_header *header = file->data;
    if (!header || file->data_bytes < sizeof(*header) ||
        memcmp(header->magic, MATRIX_MAGIC, sizeof(header->magic)) != 0) {
        ps_refuse(why, EINVAL, "%s is no converted matrix", file->path);
        return EINVAL;
    }
    if (header->n_rows >= UINT32_MAX || header->n_cols > UINT32_MAX || header->nnz > UINT32_MAX ||
        header->n_rows == 0 || header->n_cols == 0 || header->nnz == 0) {
        ps_refuse(why, EINVAL, "%s: sizes are not from 1 to 2^32", file->path);
        return EINVAL;
    }
    uint64_t starts = sizeof(*header), columns = starts + matrix_align(4 * (header->n_rows + 1));
    uint64_t values = columns + matrix_align(4 * header->nnz), end = values;
    const char *data = file->data;
    if (header->flags & MATRIX_HAS_VALUES)
        end += 8 * header->nnz;
    if (file->data_bytes != end) {
        ps_refuse(why, EINVAL, "%s has %llu bytes, not %llu", file->path,
                  (unsigned long long)file->data_bytes, (unsigned long long)end);
        return EINVAL;
    }
    m->file = header;
    m->path = file->path;
    m->file_start = (const uint32_t *)(const void *)(data + starts);
    m->file_column = (const uint32_t *)(const void *)(data + columns);
    if (header->flags & MATRIX_HAS_VALUES)
        m->file_value = (const double *)(const void *)(data + values);
    m->n_rows = header->n_rows;
    m->n_cols = header->n_cols;
    m->nnz = header->nnz;
    return 0;
}

/* A file may hold anything: row starts that fall, columns outside. */
static int matrix_check_row(const matrix *m, uint64_t row, char *why)
{
    uint32_t start = m->file_start[row], end = m->file_start[row + 1];
    if (start > end || end > m->nnz || (row == 0 && start != 0) ||
        (row + 1 == m->n_rows && end != m->nnz))
        return ps_refuse(why, EINVAL, "%s is broken: start of row %llu", m->path,
                         (unsigned long long)row);
    for (uint32_t k = start; k < end; k++)
        if (m->file_column[k] >= m->n_cols)
            return ps_refuse(why, EINVAL, "%s is broken: column of entry %u", m->path, k);
    return 0;
}

/* Everything but the size. ENOMEM, or EINVAL for a broken file; matrix_close() frees. */
static int matrix_open(matrix *m, const ps_ctx *ctx, char *why)
{
    *m = (matrix){.columns = (int)ctx->values[COLUMNS].number, .seed = ctx->seed};
    if (ctx->values[MATRIX_FILE].path)
        return matrix_open_file(m, &ctx->values[MATRIX_FILE], why);
    m->per_row = ctx->values[NNZ_ROW].number;
    if (m->per_row == 0) {
        ps_refuse(why, EINVAL, "a row needs an entry");
        return EINVAL;
    }
    if (m->columns != COLUMNS_PROVER)
        return 0;
    m->block = circuit_build();
    if (!m->block) {
        ps_refuse(why, ENOMEM, "no memory to build the circuit");
        return ENOMEM;
    }
    m->part = &m->block->part[ctx->values[MATRIX].number];
    return 0;
}

static void matrix_close(matrix *m)
{
    free((void *)(uintptr_t)m->block);
    m->block = NULL;
}

/* Entries before a row, which may be the one after the last. */
static uint64_t matrix_start(const matrix *m, uint64_t row)
{
    if (m->file)
        return m->file_start[row];
    if (m->columns != COLUMNS_PROVER)
        return row * m->per_row;
    return row / CIRCUIT_ROWS * m->part->start[CIRCUIT_ROWS] + m->part->start[row % CIRCUIT_ROWS];
}

/* Sizes for so many rows; no file. */
static void matrix_resize(matrix *m, const ps_ctx *ctx, uint64_t n_rows)
{
    m->n_rows = n_rows;
    m->nnz = matrix_start(m, n_rows);
    if (m->columns == COLUMNS_PROVER) {
        uint64_t blocks = n_rows / CIRCUIT_ROWS, rest = n_rows % CIRCUIT_ROWS;
        m->n_cols = 1 + blocks * CIRCUIT_VARIABLES +
                    (rest ? m->block->newest[rest - 1] : (uint64_t)CIRCUIT_INPUTS);
        return;
    }
    m->n_cols = n_rows;
    m->width = m->columns == COLUMNS_BANDED && ctx->values[BAND].number < n_rows
                   ? ctx->values[BAND].number
                   : n_rows;
    /* Rounded up, so that the last stratum ends with the window and not before it. */
    m->stratum = ((m->width << 32) + m->per_row - 1) / m->per_row;
}

/* ---- columns -------------------------------------------------------------------------------- */

/* Where half a message (256 bits) of a block lies: any run of variables in the 20 blocks before,
 * about the length of one label's circuit, whose parents' bits come again and again. */
static uint64_t matrix_message(const matrix *m, uint64_t block, uint64_t half)
{
    const uint64_t bits = CIRCUIT_MESSAGE / 2;
    if (block == 0)
        return 1 + half * bits;
    uint64_t end = 1 + CIRCUIT_INPUTS + block * CIRCUIT_VARIABLES - bits;
    uint64_t reach = 20 * (uint64_t)CIRCUIT_VARIABLES;
    uint64_t first = end > reach ? end - reach : 1;
    uint64_t random = ps_hash(m->seed + 3, 2 * block + half);
    return first + (uint64_t)((unsigned __int128)random * (end - first) >> 64);
}

static uint32_t matrix_circuit_column(const matrix *m, uint64_t block, const uint64_t message[2],
                                      uint32_t local)
{
    if (local == 0)
        return 0;
    if (local > CIRCUIT_INPUTS)
        return (uint32_t)(block * CIRCUIT_VARIABLES + local);
    if (local <= CIRCUIT_MESSAGE) {
        uint32_t bit = local - 1, half = CIRCUIT_MESSAGE / 2;
        return (uint32_t)(message[bit / half] + bit % half);
    }
    /* The state comes from the block before. */
    if (block == 0)
        return local;
    return (uint32_t)((block - 1) * CIRCUIT_VARIABLES +
                      m->block->output[local - CIRCUIT_MESSAGE - 1]);
}

/* Columns of a row. */
static void matrix_row(const matrix *m, uint64_t row, uint32_t *out)
{
    if (m->file) {
        uint64_t start = m->file_start[row], n = m->file_start[row + 1] - start;
        memcpy(out, m->file_column + start, n * sizeof(*out));
        return;
    }
    if (m->columns == COLUMNS_PROVER) {
        uint64_t block = row / CIRCUIT_ROWS, local = row % CIRCUIT_ROWS;
        uint64_t message[2] = {matrix_message(m, block, 0), matrix_message(m, block, 1)};
        for (uint32_t k = m->part->start[local]; k < m->part->start[local + 1]; k++)
            *out++ = matrix_circuit_column(m, block, message, m->part->column[k]);
        return;
    }
    /* The window follows the diagonal and stays inside. */
    uint64_t window = row > m->width / 2 ? row - m->width / 2 : 0;
    if (window > m->n_cols - m->width)
        window = m->n_cols - m->width;
    for (uint64_t k = 0; k < m->per_row; k++) {
        uint64_t low = k * m->stratum >> 32, high = (k + 1) * m->stratum >> 32;
        uint64_t random = ps_hash(m->seed + 2, row * m->per_row + k) >> 32;
        out[k] = (uint32_t)(window + low + ((high - low) * random >> 32));
    }
}

/* ---- numbers -------------------------------------------------------------------------------- */

/* Small whole numbers: sums of products are exact in double precision in any order. */
static double matrix_value(const matrix *m, uint64_t entry)
{
    if (m->file)
        return m->file_value ? m->file_value[entry] : 1.0;
    uint64_t random = ps_hash(m->seed + 1, entry);
    return (double)((int64_t)(random & 7) + 1) * (random & 8 ? -1.0 : 1.0);
}

static double matrix_x(uint64_t seed, uint64_t column)
{
    return (double)((ps_hash(seed, column) & 255) + 1);
}

/* Any number below 2^254, and so below r: what it stands for does not matter to the time. */
static void matrix_random_fr(fr *out, uint64_t seed, uint64_t index)
{
    for (uint64_t i = 0; i < 4; i++)
        out->limb[i] = ps_hash(seed, 4 * index + i);
    out->limb[3] >>= 2;
}

static void matrix_value_fr(const matrix *m, uint64_t entry, fr *out)
{
    if (m->file)
        fr_from_whole(out, m->file_value ? (int64_t)m->file_value[entry] : 1);
    else
        matrix_random_fr(out, m->seed + 1, entry);
}

#endif
