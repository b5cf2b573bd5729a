/*
 * fr.h - the scalar field of BLS12-381: whole numbers modulo a 255-bit prime r, four 64-bit limbs.
 *
 * An element a is stored in Montgomery form, as a R mod r with R = 2^256, and always reduced below
 * r. Products are Montgomery products, a b / R, so that forms stay forms. Times do not depend on
 * the numbers: no branch looks at them.
 *
 * fr_mul and fr_add are portable; fr_mul_adx and fr_add_adx need BMI2 and ADX and give the same.
 */
#ifndef PS_FR_H
#define PS_FR_H

#include <stdbool.h>

#include "limbs.h"

#if defined(__x86_64__)
#define FR_HAS_ADX 1
#else
#define FR_HAS_ADX 0
#endif

/* A call would cost a tenth of a product, and keep its operands out of registers. */
#define FR_INLINE static inline __attribute__((always_inline))

typedef struct {
    uint64_t limb[4]; /* least significant first */
} fr;

static const fr fr_modulus = {FR_MODULUS};
/* -1 / r modulo 2^64: makes the lowest limb of a + m r zero for m = a_0 times it. */
static const uint64_t fr_minus_inverse = FR_MINUS_INVERSE;
/* R^2 mod r: the product with it brings a plain number into Montgomery form. */
static const fr fr_r_squared = {
    {0xc999e990f3f29c6du, 0x2b6cedcb87925c23u, 0x05d314967254398fu, 0x0748d9d99f59ff11u}};

/* t, which is below 2 r, reduced below r. */
static inline void fr_reduce(fr *out, const uint64_t t[4])
{
    uint64_t less[4], borrow = 0;
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        less[i] = limb_sub(t[i], fr_modulus.limb[i], &borrow);
    uint64_t keep = 0 - borrow;
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        out->limb[i] = (t[i] & keep) | (less[i] & ~keep);
}

FR_INLINE void fr_add(fr *out, const fr *a, const fr *b)
{
    uint64_t t[4], carry = 0;
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) /* 2 r is below 2^256: no carry is left */
        t[i] = limb_add(a->limb[i], b->limb[i], &carry);
    fr_reduce(out, t);
}

/* Word by word: t += a b_i, then t = (t + m r) / 2^64. As r is below 2^255, both carries fit into
 * one limb on top of t. */
FR_INLINE void fr_mul(fr *out, const fr *a, const fr *b)
{
    uint64_t t[4] = {0};
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        uint64_t high = 0, carry = 0;
        uint64_t low = limb_multiply_add(a->limb[0], b->limb[i], t[0], &high);
        uint64_t m = low * fr_minus_inverse;
        (void)limb_multiply_add(m, fr_modulus.limb[0], low, &carry);
#pragma GCC unroll 3
        for (int j = 1; j < 4; j++) {
            uint64_t word = limb_multiply_add(a->limb[j], b->limb[i], t[j], &high);
            t[j - 1] = limb_multiply_add(m, fr_modulus.limb[j], word, &carry);
        }
        t[3] = high + carry;
    }
    fr_reduce(out, t);
}

/* A whole number in Montgomery form. */
static inline void fr_from_whole(fr *out, int64_t number)
{
    uint64_t size = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    fr plain = {{size}};
    fr_mul(out, &plain, &fr_r_squared);
    if (number >= 0 || size == 0)
        return;
    uint64_t borrow = 0;
    for (int i = 0; i < 4; i++)
        out->limb[i] = limb_sub(fr_modulus.limb[i], out->limb[i], &borrow);
}

#if FR_HAS_ADX

/* Two independent carry chains, CF by adcx and OF by adox, let additions of both halves of the
 * products overlap; compilers keep one. xor clears both flags. */

/* t += a b_i; leaves the fifth limb in h. rdx holds b_i. */
#define FR_ROW(b_i)                                                                                \
    "movq " b_i ", %%rdx\n\t"                                                                      \
    "xorl %k[l], %k[l]\n\t"                                                                        \
    "mulxq 0(%[a]), %[l], %[h]\n\t"                                                                \
    "adoxq %[l], %[t0]\n\t"                                                                        \
    "adcxq %[h], %[t1]\n\t"                                                                        \
    "mulxq 8(%[a]), %[l], %[h]\n\t"                                                                \
    "adoxq %[l], %[t1]\n\t"                                                                        \
    "adcxq %[h], %[t2]\n\t"                                                                        \
    "mulxq 16(%[a]), %[l], %[h]\n\t"                                                               \
    "adoxq %[l], %[t2]\n\t"                                                                        \
    "adcxq %[h], %[t3]\n\t"                                                                        \
    "mulxq 24(%[a]), %[l], %[h]\n\t"                                                               \
    "adoxq %[l], %[t3]\n\t"                                                                        \
    "movl $0, %k[l]\n\t"                                                                           \
    "adcxq %[l], %[h]\n\t"                                                                         \
    "adoxq %[l], %[h]\n\t"

/* t = (t + m r) / 2^64, with the fifth limb in h. The lowest limb only leaves its carry. */
#define FR_FOLD                                                                                    \
    "movq %[t0], %%rdx\n\t"                                                                        \
    "imulq %[inverse], %%rdx\n\t"                                                                  \
    "xorl %k[l], %k[l]\n\t"                                                                        \
    "mulxq 0(%[r]), %[l], %[u]\n\t"                                                                \
    "adcxq %[t0], %[l]\n\t"                                                                        \
    "movq %[u], %[t0]\n\t"                                                                         \
    "adcxq %[t1], %[t0]\n\t"                                                                       \
    "mulxq 8(%[r]), %[l], %[t1]\n\t"                                                               \
    "adoxq %[l], %[t0]\n\t"                                                                        \
    "adcxq %[t2], %[t1]\n\t"                                                                       \
    "mulxq 16(%[r]), %[l], %[t2]\n\t"                                                              \
    "adoxq %[l], %[t1]\n\t"                                                                        \
    "adcxq %[t3], %[t2]\n\t"                                                                       \
    "mulxq 24(%[r]), %[l], %[t3]\n\t"                                                              \
    "adoxq %[l], %[t2]\n\t"                                                                        \
    "adcxq %[h], %[t3]\n\t"                                                                        \
    "movl $0, %k[l]\n\t"                                                                           \
    "adoxq %[l], %[t3]\n\t"

/* t below 2 r, reduced: subtract r, and take t back where that borrowed. l, h, u, rdx are free. */
#define FR_REDUCE                                                                                  \
    "movq %[t0], %[l]\n\t"                                                                         \
    "movq %[t1], %[h]\n\t"                                                                         \
    "movq %[t2], %[u]\n\t"                                                                         \
    "movq %[t3], %%rdx\n\t"                                                                        \
    "subq 0(%[r]), %[l]\n\t"                                                                       \
    "sbbq 8(%[r]), %[h]\n\t"                                                                       \
    "sbbq 16(%[r]), %[u]\n\t"                                                                      \
    "sbbq 24(%[r]), %%rdx\n\t"                                                                     \
    "cmovncq %[l], %[t0]\n\t"                                                                      \
    "cmovncq %[h], %[t1]\n\t"                                                                      \
    "cmovncq %[u], %[t2]\n\t"                                                                      \
    "cmovncq %%rdx, %[t3]\n\t"

FR_INLINE void fr_mul_adx(fr *out, const fr *a, const fr *b)
{
    uint64_t t0 = 0, t1 = 0, t2 = 0, t3 = 0, l, h, u;
    __asm__(FR_ROW("0(%[b])") FR_FOLD FR_ROW("8(%[b])") FR_FOLD FR_ROW("16(%[b])")
                FR_FOLD FR_ROW("24(%[b])") FR_FOLD FR_REDUCE
            : [t0] "+&r"(t0), [t1] "+&r"(t1), [t2] "+&r"(t2), [t3] "+&r"(t3), [l] "=&r"(l),
              [h] "=&r"(h), [u] "=&r"(u)
            : [a] "r"(a), [b] "r"(b), [r] "r"(&fr_modulus), [inverse] "m"(fr_minus_inverse),
              "m"(*a), "m"(*b), "m"(fr_modulus)
            : "rdx", "cc");
    *out = (fr){{t0, t1, t2, t3}};
}

FR_INLINE void fr_add_adx(fr *out, const fr *a, const fr *b)
{
    uint64_t t0 = a->limb[0], t1 = a->limb[1], t2 = a->limb[2], t3 = a->limb[3], l, h, u;
    __asm__("addq 0(%[b]), %[t0]\n\t"
            "adcq 8(%[b]), %[t1]\n\t"
            "adcq 16(%[b]), %[t2]\n\t"
            "adcq 24(%[b]), %[t3]\n\t" FR_REDUCE
            : [t0] "+&r"(t0), [t1] "+&r"(t1), [t2] "+&r"(t2), [t3] "+&r"(t3), [l] "=&r"(l),
              [h] "=&r"(h), [u] "=&r"(u)
            : [b] "r"(b), [r] "r"(&fr_modulus), "m"(*b), "m"(fr_modulus)
            : "rdx", "cc");
    *out = (fr){{t0, t1, t2, t3}};
}

#undef FR_ROW
#undef FR_FOLD
#undef FR_REDUCE

#endif
#endif
