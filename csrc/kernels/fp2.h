/*
 * fp2.h - inverses in Fp, and the quadratic extension Fp2 = Fp(u) with u^2 = -1, on the arithmetic
 * of the instruction set ISA. Included once for each; the names end in it.
 */
#include "fp.h"

#ifndef PS_FP2_H
#define PS_FP2_H

typedef struct {
    fp real, imaginary;
} fp2;

static const fp2 fp2_one = {
    .real = {{0x760900000002fffdu, 0xebf4000bc40c0002u, 0x5f48985753c758bau, 0x77ce585370525745u,
              0x5c071a97a256ec6du, 0x15f65ec3fa80e493u}}};

static inline bool fp2_is_zero(const fp2 *a)
{
    return fp_is_zero(&a->real) && fp_is_zero(&a->imaginary);
}

#endif

#define FP(op) PS_NAME3(fp, op, ISA)
#define FP2(op) PS_NAME3(fp2, op, ISA)

/* r = a^(p - 2), which is 1/a, and 0 for 0. */
static void FP(inverse)(fp *r, const fp *a)
{
    fp power = fp_one;
    for (int bit = 64 * FP_LIMBS - 1; bit >= 0; bit--) {
        uint64_t limb = fp_modulus.limb[bit / 64] - (bit < 64 ? 2 : 0);
        FP(mul)(&power, &power, &power);
        if (limb >> (bit % 64) & 1)
            FP(mul)(&power, &power, a);
    }
    *r = power;
}

static inline void FP2(add)(fp2 *r, const fp2 *a, const fp2 *b)
{
    FP(add)(&r->real, &a->real, &b->real);
    FP(add)(&r->imaginary, &a->imaginary, &b->imaginary);
}

static inline void FP2(sub)(fp2 *r, const fp2 *a, const fp2 *b)
{
    FP(sub)(&r->real, &a->real, &b->real);
    FP(sub)(&r->imaginary, &a->imaginary, &b->imaginary);
}

/* Three multiplications for four (Karatsuba). */
static __attribute__((noinline)) void FP2(mul)(fp2 *r, const fp2 *a, const fp2 *b)
{
    fp real, imaginary, sum_a, sum_b;
    FP(add)(&sum_a, &a->real, &a->imaginary);
    FP(add)(&sum_b, &b->real, &b->imaginary);
    FP(mul)(&real, &a->real, &b->real);
    FP(mul)(&imaginary, &a->imaginary, &b->imaginary);
    FP(mul)(&sum_a, &sum_a, &sum_b);
    FP(sub)(&sum_a, &sum_a, &real);
    FP(sub)(&r->imaginary, &sum_a, &imaginary);
    FP(sub)(&r->real, &real, &imaginary);
}

static inline void FP(square)(fp *r, const fp *a)
{
    FP(mul)(r, a, a);
}

/* (x + y u)^2 = (x + y)(x - y) + 2 x y u. */
static __attribute__((noinline)) void FP2(square)(fp2 *r, const fp2 *a)
{
    fp sum, difference, product;
    FP(add)(&sum, &a->real, &a->imaginary);
    FP(sub)(&difference, &a->real, &a->imaginary);
    FP(mul)(&product, &a->real, &a->imaginary);
    FP(mul)(&r->real, &sum, &difference);
    FP(add)(&r->imaginary, &product, &product);
}

/* 1/(x + y u) = (x - y u)/(x^2 + y^2). */
static void FP2(inverse)(fp2 *r, const fp2 *a)
{
    fp norm, other;
    FP(mul)(&norm, &a->real, &a->real);
    FP(mul)(&other, &a->imaginary, &a->imaginary);
    FP(add)(&norm, &norm, &other);
    FP(inverse)(&norm, &norm);
    FP(mul)(&r->real, &a->real, &norm);
    FP(mul)(&other, &a->imaginary, &norm);
    FP(sub)(&r->imaginary, &(fp){{0}}, &other);
}

#undef FP
#undef FP2
