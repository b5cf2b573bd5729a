/*
 * scan_values.h - what the arrays of scan hold, at the start and after any number of passes.
 *
 * All are small whole numbers or products with powers of two, so that every op is exact in double
 * precision. What a pass stores depends on the number of the pass wherever the op allows it: a
 * store left out in the last pass then shows.
 */
#ifndef PS_SCAN_VALUES_H
#define PS_SCAN_VALUES_H

#include "scan_isa.h"

enum param { OP, STORE, STREAMS, STEP };
enum store { STORE_PLAIN, STORE_NT };
enum array { U, A, B, C, D, N_ARRAYS };
/* ps_ctx.words: elements of an array; of a step in each stream; from stream to stream. */
enum ctx_word { ELEMENTS, CHUNK, DIST, N_STEPS };
/* ps_thread.words: steps really made; their sum (read). */
enum thread_word { MADE, SUM };

/* Scale of triad and value that write and libc_set store in a pass, counted from 0. */
static double triad_scale(uint64_t pass)
{
    return pass % 2 ? 3.0 : 2.0;
}

static double write_value(uint64_t pass)
{
    return (double)(pass % 251 + 1);
}

static int set_byte(uint64_t pass)
{
    return (int)(pass % 251 + 1);
}

/* Factor of update in a pass: doubles for 512 passes, halves for 512, always negative. A product of
 * powers of two is exact, and only after 1024 passes is an element back where it began. */
static double update_factor(uint64_t pass)
{
    return pass % 1024 < 512 ? -2.0 : -0.5;
}

/* Product of the first `passes` of these factors: 2^e, e climbing to 512 and back, sign by parity.
 */
static double update_product(uint64_t passes)
{
    uint64_t e = passes % 1024 <= 512 ? passes % 1024 : 1024 - passes % 1024;
    uint64_t bits = (passes % 2) << 63 | (1023 + e) << 52;
    double product;
    memcpy(&product, &bits, sizeof(product));
    return product;
}

static double scale_of(uint64_t op, uint64_t pass)
{
    switch (op) {
    case OP_WRITE:
        return write_value(pass);
    case OP_LIBC_SET:
        return (double)set_byte(pass);
    case OP_TRIAD:
        return triad_scale(pass);
    case OP_UPDATE:
        return update_factor(pass);
    default: /* daxpy; the others have none */
        return 2.0;
    }
}

/* Element `i` of an array of this thread, a whole number from 1 to 256. */
static double element(const ps_ctx *ctx, uint32_t thread, uint32_t array, uint64_t i)
{
    uint64_t position = thread * ctx->words[ELEMENTS] + i;
    return (double)((ps_hash(ctx->seed + array, position) & 255) + 1);
}

/* Before the first pass: a value that no op stores, or what the op starts from. */
static double initial(const ps_ctx *ctx, uint32_t thread, uint64_t i)
{
    uint64_t op = ctx->values[OP].number;
    return op == OP_UPDATE || op == OP_DAXPY ? element(ctx, thread, A, i) : -1.0;
}

/* The numbers that op=read sums: an arithmetic series, so that the sum of any range is known. */
static uint64_t series_step(const ps_ctx *ctx)
{
    return ps_hash(ctx->seed, 0) | 1;
}

static uint64_t series(const ps_ctx *ctx, uint32_t thread, uint64_t i)
{
    return ps_hash(ctx->seed, 1) + (thread * ctx->words[ELEMENTS] + i) * series_step(ctx);
}

static uint64_t series_sum(const ps_ctx *ctx, uint32_t thread, uint64_t first, uint64_t n)
{
    /* n (n - 1) / 2, halved before the product can wrap around. */
    uint64_t pairs = n % 2 ? n * ((n - 1) / 2) : n / 2 * (n - 1);
    return n * series(ctx, thread, first) + pairs * series_step(ctx);
}

/* Element i of the result after `done` passes over it. */
static double expected(const ps_ctx *ctx, uint32_t thread, uint64_t i, uint64_t done)
{
    if (done == 0)
        return initial(ctx, thread, i);
    switch (ctx->values[OP].number) {
    case OP_WRITE:
        return write_value(done - 1);
    case OP_LIBC_SET: {
        uint64_t byte = (uint64_t)set_byte(done - 1), bits = byte * 0x0101010101010101u;
        double value;
        memcpy(&value, &bits, sizeof(value));
        return value;
    }
    case OP_COPY:
    case OP_LIBC_COPY:
        return element(ctx, thread, B, i);
    case OP_TRIAD:
        return element(ctx, thread, B, i) + triad_scale(done - 1) * element(ctx, thread, C, i);
    case OP_VTRIAD:
        return element(ctx, thread, B, i) + element(ctx, thread, C, i) * element(ctx, thread, D, i);
    case OP_DAXPY:
        return initial(ctx, thread, i) + 2.0 * (double)done * element(ctx, thread, B, i);
    default: /* update */
        return update_product(done) * initial(ctx, thread, i);
    }
}

#endif
