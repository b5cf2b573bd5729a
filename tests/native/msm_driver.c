/* The parts of msm, and the whole of it on points and scalars of the caller's, for tests. */
#include <stdlib.h>

#include "kernels/msm.c" /* its insides are what is tested */

enum field_op { ADD, SUB, MUL, SQUARE, INVERSE };
enum group_op { ADD_POINT, ADD_BUCKET, DOUBLE };

int driver_field(int degree, int isa, int op, const void *a, const void *b, void *r);
int driver_group(int group, int isa, int op, void *bucket, const void *other);
void driver_plain(const uint64_t *montgomery, uint64_t *plain);
void driver_grid(uint64_t n, uint32_t threads, uint32_t window, uint32_t *out);
void driver_tile(const uint32_t *grid, uint64_t n, uint64_t ticket, uint64_t *out);
int driver_sum(const uint64_t *numbers, uint32_t variant, uint32_t threads, uint64_t n,
               const void *points, const void *scalars, void *result, char *why);

int driver_field(int degree, int isa, int op, const void *a, const void *b, void *r)
{
#define CASES(field, set)                                                                          \
    switch (op) {                                                                                  \
    case ADD:                                                                                      \
        field##_add_##set(r, a, b);                                                                \
        return 0;                                                                                  \
    case SUB:                                                                                      \
        field##_sub_##set(r, a, b);                                                                \
        return 0;                                                                                  \
    case MUL:                                                                                      \
        field##_mul_##set(r, a, b);                                                                \
        return 0;                                                                                  \
    case SQUARE:                                                                                   \
        field##_square_##set(r, a);                                                                \
        return 0;                                                                                  \
    default:                                                                                       \
        field##_inverse_##set(r, a);                                                               \
        return 0;                                                                                  \
    }
    if (isa == ISA_SCALAR) {
        if (degree == 1)
            CASES(fp, scalar)
        CASES(fp2, scalar)
    }
#if defined(__x86_64__)
    if (degree == 1)
        CASES(fp, adx)
    CASES(fp2, adx)
#else
    return ENOTSUP;
#endif
#undef CASES
}

int driver_group(int group, int isa, int op, void *bucket, const void *other)
{
#define CASES(name, set)                                                                           \
    switch (op) {                                                                                  \
    case ADD_POINT:                                                                                \
        name##_add_point_##set(bucket, other);                                                     \
        return 0;                                                                                  \
    case ADD_BUCKET:                                                                               \
        name##_add_bucket_##set(bucket, other);                                                    \
        return 0;                                                                                  \
    default:                                                                                       \
        name##_double_##set(bucket);                                                               \
        return 0;                                                                                  \
    }
    if (isa == ISA_SCALAR) {
        if (group == GROUP_G1)
            CASES(g1, scalar)
        CASES(g2, scalar)
    }
#if defined(__x86_64__)
    if (group == GROUP_G1)
        CASES(g1, adx)
    CASES(g2, adx)
#else
    return ENOTSUP;
#endif
#undef CASES
}

void driver_plain(const uint64_t *montgomery, uint64_t *plain)
{
    msm_plain(plain, montgomery);
}

void driver_grid(uint64_t n, uint32_t threads, uint32_t window, uint32_t *out)
{
    msm_grid grid = msm_grid_of(n, threads, window);
    out[0] = grid.nx;
    out[1] = grid.ny;
    out[2] = grid.window;
}

void driver_tile(const uint32_t *grid, uint64_t n, uint64_t ticket, uint64_t *out)
{
    msm_grid of = {.nx = grid[0], .ny = grid[1], .window = grid[2]};
    msm_tile tile = msm_tile_of(&of, n, ticket);
    out[0] = tile.first;
    out[1] = tile.last;
    out[2] = tile.bit;
    out[3] = tile.bits;
}

/* One pass over inputs that fill() would not make; threads take turns. numbers: the parameters, in
 * descriptor order. */
int driver_sum(const uint64_t *numbers, uint32_t variant, uint32_t threads, uint64_t n,
               const void *points, const void *scalars, void *result, char *why)
{
    ps_value values[16] = {0};
    for (uint32_t i = 0; i < PS_COUNT(params); i++)
        values[i].number = numbers[i];
    values[POINTS].number = n;
    ps_ctx ctx = {.kernel = &ps_kernel_msm,
                  .variant = &variants[variant],
                  .values = values,
                  .size_bytes = 1ull << 30,
                  .n_threads = threads,
                  .seed = 1};
    int code = layout(&ctx, ctx.bytes, why);
    if (code)
        return code;
    ctx.threads = calloc(threads, sizeof(ps_thread));
    for (uint32_t t = 0; t < threads; t++)
        for (uint32_t i = 0; i < N_ARRAYS; i++)
            if (t > 0 && i != BUCKETS)
                ctx.threads[t].arrays[i] = ctx.threads[0].arrays[i];
            else if (posix_memalign(&ctx.threads[t].arrays[i], 4096, ctx.bytes[i]))
                return ENOMEM;
    for (uint32_t t = 0; t < threads && code == 0; t++)
        code = fill(&ctx, t, why);
    ps_work bytes;
    work(&ctx, &bytes);
    memcpy(aligned_start(&ctx, 0, BASES), points, n * arithmetic_of(&ctx, 0)->point_bytes);
    memcpy(ctx.threads[0].arrays[SCALARS], scalars, ctx.bytes[SCALARS]);
    for (uint64_t ticket = 0; ticket < bytes.n_steps && code == 0; ticket++)
        code = ctx.variant->step(&ctx, (uint32_t)(ticket % threads), ticket);
    memcpy(result, ctx.threads[0].arrays[RESULT], ctx.bytes[RESULT]);
    for (uint32_t t = 0; t < threads; t++)
        for (uint32_t i = 0; i < N_ARRAYS; i++)
            if (t == 0 || i == BUCKETS)
                free(ctx.threads[t].arrays[i]);
    free(ctx.threads);
    return code;
}
