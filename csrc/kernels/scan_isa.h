/*
 * scan_isa.h - the loops of scan in every instruction set this architecture may have.
 *
 * Everything that is special to an instruction set is here: vector type, non-temporal store, fence.
 */
#ifndef PS_SCAN_ISA_H
#define PS_SCAN_ISA_H

#include "internal.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum op {
    OP_READ,
    OP_WRITE,
    OP_COPY,
    OP_TRIAD,
    OP_VTRIAD,
    OP_UPDATE,
    OP_DAXPY,
    OP_LIBC_COPY,
    OP_LIBC_SET,
    N_OPS
};

/* What a body works on. */
typedef struct {
    const uint64_t *u;
    double *a;
    const double *b, *c, *d;
    uint64_t dist;
    double scale;
} scan_job;

/* Elements [first, last) of each stream; returns their sum (read) or 0. */
typedef uint64_t scan_body(const scan_job *job, uint64_t first, uint64_t last);

typedef struct {
    scan_body *read[4]; /* 1, 2, 4, 8 streams */
    scan_body *plain[N_OPS], *nt[N_OPS];
} scan_bodies;

static uint64_t libc_copy(const scan_job *job, uint64_t first, uint64_t last)
{
    memcpy(job->a + first, job->b + first, (last - first) * 8);
    return 0;
}

static uint64_t libc_set(const scan_job *job, uint64_t first, uint64_t last)
{
    memset(job->a + first, (int)job->scale, (last - first) * 8);
    return 0;
}

#define SCAN_NAME(x) x##_scalar
#define SCAN_TARGET
#define SCAN_BYTES 8
#define SCAN_VECTOR
#if defined(__x86_64__)
static inline void stream_f64(double *p, double v)
{
    long long bits;
    memcpy(&bits, &v, sizeof(bits));
    _mm_stream_si64((long long *)p, bits);
}
#define SCAN_NT2(p, v, w) (stream_f64(p, v), stream_f64((p) + 1, w))
#define SCAN_FENCE() _mm_sfence()
#define SCAN_HAS_NT 1
#elif defined(__aarch64__)
#define SCAN_NT2(p, v, w)                                                                          \
    __asm__ volatile("stnp %d1, %d2, [%0]" ::"r"(p), "w"(v), "w"(w) : "memory")
#define SCAN_FENCE() __asm__ volatile("dmb ishst" ::: "memory")
#define SCAN_HAS_NT 1
#else
#define SCAN_HAS_NT 0
#endif
#include "scan_body.h"

#if defined(__x86_64__)
#define SCAN_NAME(x) x##_avx2
#define SCAN_TARGET __attribute__((target("avx2,fma")))
#define SCAN_BYTES 32
#define SCAN_VECTOR __attribute__((vector_size(32), may_alias))
#define SCAN_NT2(p, v, w)                                                                          \
    (_mm256_stream_pd(p, (__m256d)(v)), _mm256_stream_pd((p) + 4, (__m256d)(w)))
#define SCAN_FENCE() _mm_sfence()
#define SCAN_HAS_NT 1
#include "scan_body.h"

#define SCAN_NAME(x) x##_avx512
#define SCAN_TARGET __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl")))
#define SCAN_BYTES 64
#define SCAN_VECTOR __attribute__((vector_size(64), may_alias))
#define SCAN_NT2(p, v, w)                                                                          \
    (_mm512_stream_pd(p, (__m512d)(v)), _mm512_stream_pd((p) + 8, (__m512d)(w)))
#define SCAN_FENCE() _mm_sfence()
#define SCAN_HAS_NT 1
#include "scan_body.h"
#endif

#if defined(__aarch64__)
#define SCAN_NAME(x) x##_neon
#define SCAN_TARGET
#define SCAN_BYTES 16
#define SCAN_VECTOR __attribute__((vector_size(16), may_alias))
#define SCAN_NT2(p, v, w)                                                                          \
    __asm__ volatile("stnp %q1, %q2, [%0]" ::"r"(p), "w"(v), "w"(w) : "memory")
#define SCAN_FENCE() __asm__ volatile("dmb ishst" ::: "memory")
#define SCAN_HAS_NT 1
#include "scan_body.h"
#endif

static int scan_step(ps_ctx *ctx, uint32_t thread, uint64_t ticket);

static const ps_variant scan_variants[] = {
    {.name = "scalar", .step = scan_step},
#if defined(__x86_64__)
    {.name = "avx2", .needs = PS_ISA_AVX2, .step = scan_step},
    {.name = "avx512", .needs = PS_ISA_AVX512, .step = scan_step},
#elif defined(__aarch64__)
    {.name = "neon", .needs = PS_ISA_NEON, .step = scan_step},
#endif
};

/* In the order of the variants. */
static const scan_bodies *const scan_variant_bodies[PS_COUNT(scan_variants)] = {
    &bodies_scalar,
#if defined(__x86_64__)
    &bodies_avx2,
    &bodies_avx512,
#elif defined(__aarch64__)
    &bodies_neon,
#endif
};

#endif
