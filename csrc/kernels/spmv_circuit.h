/*
 * spmv_circuit.h - rows of the constraint matrices of a SHA-256 circuit on bits, one block of 64
 * rounds after the other: what 81 of 100 rows of a storage prover's matrices are.
 *
 * A row is one constraint (A w)(B w) = C w on the vector w of variables. Column 0 is the constant
 * one; every gate makes new variables, numbered as they come, so that columns lie behind the newest
 * variable at small distances. The gates:
 *   xor       A {a}          B {b}     C {a, b, new}
 *   choose    A {b, c}       B {a}     C {new, c}
 *   majority  A {b}          B {c}     C {bc = new},  then  A {bc, b, c}  B {a}  C {bc, new}
 *   bit       A {one, new}   B {new}   C {}           each bit of a sum is one
 *   sum       of n 32-bit words: its bits are new; equality of operands and bits waits until the
 *             waiting sums fill a field element (254 bits), then one row holds all of them:
 *             A {operand bits}  B {one}  C {result bits}
 * Rotations and shifts are renumberings. Coefficients are not modelled here.
 *
 * Columns of a block in its own numbering: 0 one, 1 to 512 the message, 513 to 768 the state that
 * comes in, 769 on what the block makes.
 */
#ifndef PS_SPMV_CIRCUIT_H
#define PS_SPMV_CIRCUIT_H

#include <stdlib.h>

#include "internal.h"

#define CIRCUIT_MESSAGE 512u
#define CIRCUIT_INPUTS (CIRCUIT_MESSAGE + 256u) /* and the state */
#define CIRCUIT_ROWS 26192u
#define CIRCUIT_VARIABLES 26166u /* new ones in a block */
#define CIRCUIT_FIELD_BITS 254u

enum circuit_matrix { CIRCUIT_A, CIRCUIT_B, CIRCUIT_C, CIRCUIT_MATRICES };

typedef struct {
    uint32_t start[CIRCUIT_ROWS + 1];
    uint32_t column[64u << 10]; /* A has 60,749 */
} circuit_part;

typedef struct {
    circuit_part part[CIRCUIT_MATRICES];
    uint32_t newest[CIRCUIT_ROWS]; /* last variable made before the row */
    uint32_t output[256]; /* bits of the state that goes out */
    /* while it is built */
    uint32_t n_rows, variables;
    struct {
        uint32_t column[2048], n; /* 7 sums of 7 words, with repeats */
    } waiting[2]; /* operand bits, result bits */
    uint32_t waiting_bits;
} circuit;

typedef struct {
    uint32_t bit[32]; /* columns, lowest bit first; NONE where it is a constant zero */
} circuit_word;

#define CIRCUIT_NONE UINT32_MAX

static uint32_t circuit_new(circuit *c)
{
    return CIRCUIT_INPUTS + ++c->variables;
}

static int circuit_by_column(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Nearly all rows have up to three entries: a call of qsort each would be most of the work. */
static void circuit_sort(uint32_t *columns, uint32_t n)
{
    if (n > 8) {
        qsort(columns, n, sizeof(*columns), circuit_by_column);
        return;
    }
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t j = i; j > 0 && columns[j] < columns[j - 1]; j--) {
            uint32_t larger = columns[j - 1];
            columns[j - 1] = columns[j];
            columns[j] = larger;
        }
}

/* Appends a row's entries, each column once, in ascending order. */
static void circuit_part_row(circuit_part *part, uint32_t row, const uint32_t *columns, uint32_t n)
{
    uint32_t *out = part->column + part->start[row], kept = 0;
    memcpy(out, columns, n * sizeof(*out));
    circuit_sort(out, n);
    for (uint32_t i = 0; i < n; i++)
        if (i == 0 || out[i] != out[i - 1])
            out[kept++] = out[i];
    part->start[row + 1] = part->start[row] + kept;
}

typedef struct {
    uint32_t column[4], n;
} circuit_side;

#define SIDE(...)                                                                                  \
    (circuit_side)                                                                                 \
    {                                                                                              \
        {__VA_ARGS__}, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)                        \
    }

static void circuit_row(circuit *c, circuit_side a, circuit_side b, circuit_side d)
{
    circuit_part_row(&c->part[CIRCUIT_A], c->n_rows, a.column, a.n);
    circuit_part_row(&c->part[CIRCUIT_B], c->n_rows, b.column, b.n);
    circuit_part_row(&c->part[CIRCUIT_C], c->n_rows, d.column, d.n);
    c->newest[c->n_rows++] = CIRCUIT_INPUTS + c->variables;
}

/* ---- gates --------------------------------------------------------------------------------- */

static uint32_t circuit_xor(circuit *c, uint32_t a, uint32_t b)
{
    if (a == CIRCUIT_NONE || b == CIRCUIT_NONE)
        return a == CIRCUIT_NONE ? b : a;
    uint32_t made = circuit_new(c);
    circuit_row(c, SIDE(a), SIDE(b), SIDE(a, b, made));
    return made;
}

static uint32_t circuit_choose(circuit *c, uint32_t which, uint32_t yes, uint32_t no)
{
    uint32_t made = circuit_new(c);
    circuit_row(c, SIDE(yes, no), SIDE(which), SIDE(made, no));
    return made;
}

static uint32_t circuit_majority(circuit *c, uint32_t x, uint32_t y, uint32_t z)
{
    uint32_t made = circuit_new(c), both = circuit_new(c);
    circuit_row(c, SIDE(y), SIDE(z), SIDE(both));
    circuit_row(c, SIDE(both, y, z), SIDE(x), SIDE(both, made));
    return made;
}

static circuit_word circuit_rotate(const circuit_word *x, uint32_t by)
{
    circuit_word out;
    for (uint32_t i = 0; i < 32; i++)
        out.bit[i] = x->bit[(i + by) % 32];
    return out;
}

static circuit_word circuit_shift(const circuit_word *x, uint32_t by)
{
    circuit_word out;
    for (uint32_t i = 0; i < 32; i++)
        out.bit[i] = i + by < 32 ? x->bit[i + by] : CIRCUIT_NONE;
    return out;
}

/* x rotated by r[0], r[1] and r[2], all three xored; the last is a shift where told. */
static circuit_word circuit_sigma(circuit *c, const circuit_word *x, const uint32_t r[3],
                                  bool shifts)
{
    circuit_word first = circuit_rotate(x, r[0]), second = circuit_rotate(x, r[1]);
    circuit_word third = shifts ? circuit_shift(x, r[2]) : circuit_rotate(x, r[2]);
    for (uint32_t i = 0; i < 32; i++)
        first.bit[i] = circuit_xor(c, first.bit[i], second.bit[i]);
    for (uint32_t i = 0; i < 32; i++)
        first.bit[i] = circuit_xor(c, first.bit[i], third.bit[i]);
    return first;
}

/* The one row that the waiting sums share. */
static void circuit_flush(circuit *c)
{
    const uint32_t one = 0;
    circuit_part_row(&c->part[CIRCUIT_A], c->n_rows, c->waiting[0].column, c->waiting[0].n);
    circuit_part_row(&c->part[CIRCUIT_B], c->n_rows, &one, 1);
    circuit_part_row(&c->part[CIRCUIT_C], c->n_rows, c->waiting[1].column, c->waiting[1].n);
    c->newest[c->n_rows++] = CIRCUIT_INPUTS + c->variables;
    c->waiting[0].n = c->waiting[1].n = c->waiting_bits = 0;
}

/* Sum of n words, and of a round constant where told; its lower 32 bits. */
static circuit_word circuit_sum(circuit *c, const circuit_word *const *words, uint32_t n,
                                bool constant)
{
    uint64_t largest = (uint64_t)(n + (constant ? 1 : 0)) * UINT32_MAX;
    uint32_t bits = 64u - (uint32_t)__builtin_clzll(largest), made[36];
    for (uint32_t i = 0; i < bits; i++) {
        made[i] = circuit_new(c);
        circuit_row(c, SIDE(0, made[i]), SIDE(made[i]), (circuit_side){.n = 0});
    }
    if (c->waiting_bits + bits >= CIRCUIT_FIELD_BITS)
        circuit_flush(c);
    for (uint32_t w = 0; w < n; w++)
        for (uint32_t i = 0; i < 32; i++)
            if (words[w]->bit[i] != CIRCUIT_NONE)
                c->waiting[0].column[c->waiting[0].n++] = words[w]->bit[i];
    if (constant)
        c->waiting[0].column[c->waiting[0].n++] = 0;
    for (uint32_t i = 0; i < bits; i++)
        c->waiting[1].column[c->waiting[1].n++] = made[i];
    c->waiting_bits += bits;
    circuit_word out;
    memcpy(out.bit, made, sizeof(out.bit));
    return out;
}

#define SUM(c, constant, ...)                                                                      \
    circuit_sum(c, (const circuit_word *const[]){__VA_ARGS__},                                     \
                sizeof((const circuit_word *const[]){__VA_ARGS__}) / sizeof(circuit_word *),       \
                constant)

/* ---- the block ------------------------------------------------------------------------------ */

static void circuit_schedule(circuit *c, circuit_word w[64])
{
    static const uint32_t s0[3] = {7, 18, 3}, s1[3] = {17, 19, 10};
    for (uint32_t i = 16; i < 64; i++) {
        circuit_word low = circuit_sigma(c, &w[i - 15], s0, true);
        circuit_word high = circuit_sigma(c, &w[i - 2], s1, true);
        w[i] = SUM(c, false, &w[i - 16], &low, &w[i - 7], &high);
    }
}

/* The new a and e of a round are sums that wait for the next one, which needs their bits. The words
 * of a sum are kept, not their sum: up to 7, for a. */
typedef struct {
    circuit_word word[7];
    uint32_t n;
} circuit_pending;

static circuit_word circuit_settle(circuit *c, const circuit_pending *sum,
                                   const circuit_word *extra)
{
    const circuit_word *words[8];
    uint32_t n = 0;
    for (; n < sum->n; n++)
        words[n] = &sum->word[n];
    if (extra)
        words[n++] = extra;
    return circuit_sum(c, words, n, true);
}

/* Both pending sums of a round, from the state [a, h] before it. */
static void circuit_round(circuit *c, circuit_word s[8], const circuit_word *w,
                          circuit_pending *next_a, circuit_pending *next_e)
{
    static const uint32_t big1[3] = {6, 11, 25}, big0[3] = {2, 13, 22};
    circuit_word *a = &s[0], *e = &s[4], chosen, most;
    if (next_e->n)
        *e = circuit_settle(c, next_e, NULL);
    circuit_word sigma1 = circuit_sigma(c, e, big1, false);
    for (uint32_t i = 0; i < 32; i++)
        chosen.bit[i] = circuit_choose(c, e->bit[i], s[5].bit[i], s[6].bit[i]);
    if (next_a->n)
        *a = circuit_settle(c, next_a, NULL);
    circuit_word sigma0 = circuit_sigma(c, a, big0, false);
    for (uint32_t i = 0; i < 32; i++)
        most.bit[i] = circuit_majority(c, a->bit[i], s[1].bit[i], s[2].bit[i]);
    *next_e = (circuit_pending){{s[7], sigma1, chosen, *w, s[3]}, 5};
    *next_a = (circuit_pending){{s[7], sigma1, chosen, *w, sigma0, most}, 6};
    for (uint32_t i = 7; i > 0; i--)
        s[i] = s[i - 1];
}

/* Builds the block; NULL where there is no memory. The caller frees it. */
static circuit *circuit_build(void)
{
    circuit *c = calloc(1, sizeof(*c));
    circuit_word w[64], s[8], in[8], out[8];
    circuit_pending next_a = {.n = 0}, next_e = {.n = 0};
    if (!c)
        return NULL;
    for (uint32_t i = 0; i < CIRCUIT_INPUTS; i++)
        if (i < CIRCUIT_MESSAGE)
            w[i / 32].bit[i % 32] = i + 1;
        else
            s[(i - CIRCUIT_MESSAGE) / 32].bit[i % 32] = i + 1;
    memcpy(in, s, sizeof(in));
    circuit_schedule(c, w);
    for (uint32_t i = 0; i < 64; i++)
        circuit_round(c, s, &w[i], &next_a, &next_e);
    /* After the last round the state has moved on by one: s[1] is b, s[5] is f. */
    out[0] = circuit_settle(c, &next_a, &in[0]);
    for (uint32_t i = 1; i < 4; i++)
        out[i] = SUM(c, false, &in[i], &s[i]);
    out[4] = circuit_settle(c, &next_e, &in[4]);
    for (uint32_t i = 5; i < 8; i++)
        out[i] = SUM(c, false, &in[i], &s[i]);
    circuit_flush(c);
    for (uint32_t i = 0; i < 256; i++)
        c->output[i] = out[i / 32].bit[i % 32];
    return c;
}

#undef SIDE
#undef SUM

#endif
