/*
 * spmv_isa.h - the loops of spmv in every instruction set this architecture may have.
 *
 * A row's entries lie one behind the other, so that one cursor runs through columns and values of
 * all rows. Each loop exists twice: with `ahead`, columns and values are asked for that many
 * entries before they are used; a prefetch past the end of an array does nothing.
 */
#ifndef PS_SPMV_ISA_H
#define PS_SPMV_ISA_H

#include "fr.h"
#include "internal.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef struct {
    const uint32_t *start, *column;
    const double *value, *x;
    const fr *value_fr, *x_fr;
    uint64_t ahead; /* entries, of loops that prefetch */
} spmv_job;

/* Results of rows [first, last) to out. */
typedef void spmv_body(const spmv_job *job, uint64_t first, uint64_t last, void *out);

typedef struct {
    spmv_body *plain[4], *ahead[4]; /* by enum values */
} spmv_bodies;

#define ALWAYS static inline __attribute__((always_inline))

/* Both loops of a sweep. */
#define SPMV_PAIR(name, target)                                                                    \
    static target void spmv_##name(const spmv_job *job, uint64_t first, uint64_t last, void *out)  \
    {                                                                                              \
        name(job, first, last, out, false);                                                        \
    }                                                                                              \
    static target void spmv_##name##_ahead(const spmv_job *job, uint64_t first, uint64_t last,     \
                                           void *out)                                              \
    {                                                                                              \
        name(job, first, last, out, true);                                                         \
    }

/* ---- plain C -------------------------------------------------------------------------------- */

ALWAYS void fetch_ahead(const spmv_job *job, uint64_t k, bool values, bool values_fr)
{
    __builtin_prefetch(job->column + k + job->ahead);
    if (values)
        __builtin_prefetch(job->value + k + job->ahead);
    if (values_fr)
        __builtin_prefetch(job->value_fr + k + job->ahead);
}

/* Four sums: one would wait for its own last addition, four cycles and more. */
ALWAYS void rows_scalar(const spmv_job *job, uint64_t first, uint64_t last, double *out, bool ahead,
                        bool values)
{
    const double *value = job->value, *x = job->x;
    const uint32_t *column = job->column;
    uint64_t k = job->start[first];
#define TERM(i) (values ? value[k + (i)] * x[column[k + (i)]] : x[column[k + (i)]])
    for (uint64_t row = first; row < last; row++) {
        uint64_t end = job->start[row + 1];
        double a = 0, b = 0, c = 0, d = 0;
        for (; k + 4 <= end; k += 4) {
            if (ahead)
                fetch_ahead(job, k, values, false);
            a += TERM(0);
            b += TERM(1);
            c += TERM(2);
            d += TERM(3);
        }
        if (ahead)
            fetch_ahead(job, k, values, false);
        for (; k < end; k++)
            a += TERM(0);
        out[row - first] = (a + b) + (c + d);
    }
#undef TERM
}

/* As the prover has it: products that do not wait for each other, one sum that does. */
ALWAYS void rows_fr(const spmv_job *job, uint64_t first, uint64_t last, fr *out, bool ahead,
                    bool values, void (*mul)(fr *, const fr *, const fr *),
                    void (*add)(fr *, const fr *, const fr *))
{
    const fr *value = job->value_fr, *x = job->x_fr;
    const uint32_t *column = job->column;
    uint64_t k = job->start[first];
    for (uint64_t row = first; row < last; row++) {
        uint64_t end = job->start[row + 1];
        fr sum = {{0}};
        for (; k < end; k++) {
            fr product;
            if (ahead)
                fetch_ahead(job, k, false, values);
            if (values)
                mul(&product, &value[k], &x[column[k]]);
            add(&sum, &sum, values ? &product : &x[column[k]]);
        }
        out[row - first] = sum;
    }
}

#define FR_SWEEP(name, values, mul, add)                                                           \
    ALWAYS void name(const spmv_job *job, uint64_t first, uint64_t last, void *out, bool ahead)    \
    {                                                                                              \
        rows_fr(job, first, last, out, ahead, values, mul, add);                                   \
    }                                                                                              \
    SPMV_PAIR(name, )

ALWAYS void f64_scalar(const spmv_job *job, uint64_t first, uint64_t last, void *out, bool ahead)
{
    rows_scalar(job, first, last, out, ahead, true);
}
ALWAYS void pattern_scalar(const spmv_job *job, uint64_t first, uint64_t last, void *out,
                           bool ahead)
{
    rows_scalar(job, first, last, out, ahead, false);
}
SPMV_PAIR(f64_scalar, )
SPMV_PAIR(pattern_scalar, )
FR_SWEEP(fr_scalar, true, fr_mul, fr_add)
FR_SWEEP(pattern_fr_scalar, false, fr_mul, fr_add)

#define SPMV_ROWS(f64_isa, fr_isa)                                                                 \
    {                                                                                              \
        .plain = {spmv_f64_##f64_isa, spmv_fr_##fr_isa, spmv_pattern_##f64_isa,                    \
                  spmv_pattern_fr_##fr_isa},                                                       \
        .ahead = {spmv_f64_##f64_isa##_ahead, spmv_fr_##fr_isa##_ahead,                            \
                  spmv_pattern_##f64_isa##_ahead, spmv_pattern_fr_##fr_isa##_ahead},               \
    }

/* ---- x86-64 --------------------------------------------------------------------------------- */

#if defined(__x86_64__)

FR_SWEEP(fr_adx, true, fr_mul_adx, fr_add_adx)
FR_SWEEP(pattern_fr_adx, false, fr_mul_adx, fr_add_adx)

#define AVX2 __attribute__((target("avx2,fma")))

/* Single loads put together: gather instructions are no faster where columns are near, and
 * microcode against data sampling makes them much slower on some CPUs. */
ALWAYS AVX2 __m128d load2(const double *x, const uint32_t *column)
{
    return _mm_loadh_pd(_mm_load_sd(x + column[0]), x + column[1]);
}

ALWAYS AVX2 __m256d load4(const double *x, const uint32_t *column)
{
    return _mm256_insertf128_pd(_mm256_castpd128_pd256(load2(x, column)), load2(x, column + 2), 1);
}

/* Prefetches go by the line of values, 8 entries, or by the row where rows are short. */
ALWAYS AVX2 void rows_avx2(const spmv_job *job, uint64_t first, uint64_t last, double *out,
                           bool ahead, bool values)
{
    const double *value = job->value, *x = job->x;
    const uint32_t *column = job->column;
    uint64_t k = job->start[first];
#define ADD4(sum, i)                                                                               \
    (values ? _mm256_fmadd_pd(_mm256_loadu_pd(value + k + (i)), load4(x, column + k + (i)), sum)   \
            : _mm256_add_pd(load4(x, column + k + (i)), sum))
    for (uint64_t row = first; row < last; row++) {
        uint64_t end = job->start[row + 1];
        double sum = 0;
        if (end - k >= 4) {
            __m256d a = _mm256_setzero_pd(), b = a;
            for (; k + 8 <= end; k += 8) {
                if (ahead)
                    fetch_ahead(job, k, values, false);
                a = ADD4(a, 0);
                b = ADD4(b, 4);
            }
            if (k + 4 <= end) {
                a = ADD4(a, 0);
                k += 4;
            }
            a = _mm256_add_pd(a, b);
            __m128d half = _mm_add_pd(_mm256_castpd256_pd128(a), _mm256_extractf128_pd(a, 1));
            sum = _mm_cvtsd_f64(_mm_add_sd(half, _mm_unpackhi_pd(half, half)));
        }
        if (ahead)
            fetch_ahead(job, k, values, false);
        for (; k < end; k++)
            sum += values ? value[k] * x[column[k]] : x[column[k]];
        out[row - first] = sum;
    }
#undef ADD4
}

ALWAYS AVX2 void f64_avx2(const spmv_job *job, uint64_t first, uint64_t last, void *out, bool ahead)
{
    rows_avx2(job, first, last, out, ahead, true);
}
ALWAYS AVX2 void pattern_avx2(const spmv_job *job, uint64_t first, uint64_t last, void *out,
                              bool ahead)
{
    rows_avx2(job, first, last, out, ahead, false);
}
SPMV_PAIR(f64_avx2, AVX2)
SPMV_PAIR(pattern_avx2, AVX2)

#undef AVX2
#endif

/* ---- the variants --------------------------------------------------------------------------- */

static int spmv_step(ps_ctx *ctx, uint32_t thread, uint64_t ticket);

/* Each takes the best loop it may for the values at hand, so that the last one the CPU has is the
 * best for all: adx changes nothing for double precision, avx2 nothing for field elements. */
static const ps_variant spmv_variants[] = {
    {.name = "scalar", .step = spmv_step},
#if defined(__x86_64__)
    {.name = "adx", .needs = PS_ISA_BMI2_ADX, .step = spmv_step},
    {.name = "avx2", .needs = PS_ISA_BMI2_ADX | PS_ISA_AVX2, .step = spmv_step},
#endif
};

/* In the order of the variants. */
static const spmv_bodies spmv_variant_bodies[PS_COUNT(spmv_variants)] = {
    SPMV_ROWS(scalar, scalar),
#if defined(__x86_64__)
    SPMV_ROWS(scalar, adx),
    SPMV_ROWS(avx2, adx),
#endif
};

#undef ALWAYS
#undef FR_SWEEP
#undef SPMV_PAIR
#undef SPMV_ROWS

#endif
