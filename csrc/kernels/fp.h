/*
 * fp.h - the base field of BLS12-381: whole numbers modulo a 381-bit prime p.
 *
 * An element x is held as x * 2^384 mod p (Montgomery form), always below p, six 64-bit limbs, the
 * lowest first. Every operation exists once for each instruction set, with the set in its name;
 * they give the same bits. Arguments may be the same element.
 */
#ifndef PS_FP_H
#define PS_FP_H

#include "internal.h"
#include "limbs.h"

#define PS_GLUE2(a, b) a##_##b
#define PS_GLUE3(a, b, c) a##_##b##_##c
/* With macro arguments expanded first. */
#define PS_NAME2(a, b) PS_GLUE2(a, b)
#define PS_NAME3(a, b, c) PS_GLUE3(a, b, c)

enum { FP_LIMBS = 6 };

typedef struct {
    uint64_t limb[FP_LIMBS];
} fp;

static const fp fp_modulus = {{0xb9feffffffffaaabu, 0x1eabfffeb153ffffu, 0x6730d2a0f6b0f624u,
                               0x64774b84f38512bfu, 0x4b1ba7b6434bacd7u, 0x1a0111ea397fe69au}};
/* 2^384 mod p: the element 1. */
static const fp fp_one = {{0x760900000002fffdu, 0xebf4000bc40c0002u, 0x5f48985753c758bau,
                           0x77ce585370525745u, 0x5c071a97a256ec6du, 0x15f65ec3fa80e493u}};
/* -1/p mod 2^64. */
#define FP_MINUS_INVERSE 0x89f3fffcfffcfffdu

static inline bool fp_is_zero(const fp *a)
{
    return !(a->limb[0] | a->limb[1] | a->limb[2] | a->limb[3] | a->limb[4] | a->limb[5]);
}

/* ---- for any 64-bit CPU -------------------------------------------------------------------- */

/* r = t mod p for t below 2 p; without a branch, which would be a coin toss. */
static inline void fp_settle_scalar(fp *r, const uint64_t *t)
{
    uint64_t less[FP_LIMBS], borrow = 0;
#pragma GCC unroll 6
    for (int i = 0; i < FP_LIMBS; i++)
        less[i] = limb_sub(t[i], fp_modulus.limb[i], &borrow);
    uint64_t keep = 0 - borrow;
#pragma GCC unroll 6
    for (int i = 0; i < FP_LIMBS; i++)
        r->limb[i] = (t[i] & keep) | (less[i] & ~keep);
}

static inline void fp_add_scalar(fp *r, const fp *a, const fp *b)
{
    uint64_t t[FP_LIMBS], carry = 0;
#pragma GCC unroll 6
    for (int i = 0; i < FP_LIMBS; i++)
        t[i] = limb_add(a->limb[i], b->limb[i], &carry);
    fp_settle_scalar(r, t);
}

static inline void fp_sub_scalar(fp *r, const fp *a, const fp *b)
{
    uint64_t t[FP_LIMBS], borrow = 0, carry = 0;
#pragma GCC unroll 6
    for (int i = 0; i < FP_LIMBS; i++)
        t[i] = limb_sub(a->limb[i], b->limb[i], &borrow);
#pragma GCC unroll 6
    for (int i = 0; i < FP_LIMBS; i++)
        r->limb[i] = limb_add(t[i], fp_modulus.limb[i] & (0 - borrow), &carry);
}

/* r = a b / 2^384 mod p, one limb of b at a time. p leaves the top bits of its highest limb free,
 * so that the carries of a round fit one limb beside t. */
static __attribute__((noinline)) void fp_mul_scalar(fp *r, const fp *a, const fp *b)
{
    uint64_t t[FP_LIMBS] = {0};
#pragma GCC unroll 6
    for (int i = 0; i < FP_LIMBS; i++) {
        uint64_t high = 0, low = 0;
        t[0] = limb_multiply_add(a->limb[0], b->limb[i], t[0], &high);
        uint64_t factor = t[0] * FP_MINUS_INVERSE;
        (void)limb_multiply_add(factor, fp_modulus.limb[0], t[0], &low);
#pragma GCC unroll 6
        for (int j = 1; j < FP_LIMBS; j++) {
            t[j] = limb_multiply_add(a->limb[j], b->limb[i], t[j], &high);
            t[j - 1] = limb_multiply_add(factor, fp_modulus.limb[j], t[j], &low);
        }
        t[FP_LIMBS - 1] = high + low;
    }
    fp_settle_scalar(r, t);
}

#if defined(__x86_64__)
#include "fp_adx.h"
#endif

#endif
