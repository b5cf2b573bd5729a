/*
 * msm_data.h - the scalars and the multiples of the generator that msm works on, as functions of
 * seed and index alone, and what the whole sum must then be.
 *
 * Point i is (start + i step) G. So the sum of scalar i times point i is (sum of scalar i times
 * (start + i step) modulo r) G, whatever the algorithm.
 */
#ifndef PS_MSM_DATA_H
#define PS_MSM_DATA_H

#include "fp.h"

enum { FR_LIMBS = 4 };
enum msm_digits { DIGITS_UNIFORM, DIGITS_SKEWED };

static const uint64_t fr_modulus[FR_LIMBS] = FR_MODULUS, fr_one[FR_LIMBS] = FR_ONE;

typedef struct {
    uint64_t scalar_seed, lane_seed;
    uint64_t start[FR_LIMBS]; /* 2^192 to 2^200: far from every h * step for small h */
    uint64_t step;
    int digits; /* msm_digits */
} msm_data;

static msm_data msm_data_of(uint64_t seed, int digits)
{
    return (msm_data){
        .scalar_seed = ps_hash(seed, 0),
        .lane_seed = ps_hash(seed, 1),
        .start = {ps_hash(seed, 2), ps_hash(seed, 3), ps_hash(seed, 4),
                  (ps_hash(seed, 5) & 0xff) | 1},
        .step = ps_hash(seed, 6) | 1,
        .digits = digits,
    };
}

/* Word `lane` of point i where the points stand for nothing. */
static inline uint64_t msm_lane(const msm_data *data, uint64_t i, uint64_t lanes, uint64_t lane)
{
    return ps_hash(data->lane_seed, i * lanes + lane);
}

/* out = start + i step. */
static void msm_multiple(const msm_data *data, uint64_t i, uint64_t *out)
{
    uint64_t high = 0, carry = 0;
    uint64_t low = limb_multiply_add(i, data->step, 0, &high);
    out[0] = limb_add(data->start[0], low, &carry);
    out[1] = limb_add(data->start[1], high, &carry);
    out[2] = limb_add(data->start[2], 0, &carry);
    out[3] = limb_add(data->start[3], 0, &carry);
}

static bool fr_below_modulus(const uint64_t *a)
{
    for (int i = FR_LIMBS - 1; i >= 0; i--)
        if (a[i] != fr_modulus[i])
            return a[i] < fr_modulus[i];
    return false;
}

/* a = a - r where a >= r. */
static inline void fr_settle(uint64_t *a)
{
    uint64_t borrow = 0;
    if (!fr_below_modulus(a))
        for (int i = 0; i < FR_LIMBS; i++)
            a[i] = limb_sub(a[i], fr_modulus[i], &borrow);
}

/* Scalar i in Montgomery form: multiplied by 2^256 modulo r. */
static void msm_scalar(const msm_data *data, uint64_t i, uint64_t *out)
{
    if (data->digits == DIGITS_SKEWED) {
        double share = (double)(ps_hash(data->scalar_seed, ~i) >> 11) * 0x1p-53;
        if (share < 0.98) {
            for (int k = 0; k < FR_LIMBS; k++)
                out[k] = share < 0.49 ? 0 : fr_one[k];
            return;
        }
    }
    /* Draw again what is not below r, else the low scalars come up twice as often. */
    uint64_t seed = data->scalar_seed;
    do {
        for (uint64_t k = 0; k < FR_LIMBS; k++)
            out[k] = ps_hash(seed, FR_LIMBS * i + k);
        out[FR_LIMBS - 1] &= UINT64_MAX >> 1;
        seed = ps_hash(seed, 0);
    } while (!fr_below_modulus(out));
}

/* out = in / 2^256 mod r: from Montgomery form to the plain number. */
static inline void msm_plain(uint64_t *out, const uint64_t *in)
{
    uint64_t t[FR_LIMBS];
    memcpy(t, in, sizeof(t));
#pragma GCC unroll 4
    for (int i = 0; i < FR_LIMBS; i++) {
        uint64_t factor = t[0] * FR_MINUS_INVERSE, carry = 0;
        (void)limb_multiply_add(factor, fr_modulus[0], t[0], &carry);
#pragma GCC unroll 4
        for (int j = 1; j < FR_LIMBS; j++)
            t[j - 1] = limb_multiply_add(factor, fr_modulus[j], t[j], &carry);
        t[FR_LIMBS - 1] = carry;
    }
    fr_settle(t);
    memcpy(out, t, sizeof(t));
}

/* ---- the closed form: slow and simple, and none of the arithmetic that it is to judge ------ */

static void fr_double_add(uint64_t *a, const uint64_t *b)
{
    uint64_t carry = 0;
    for (int i = 0; i < FR_LIMBS; i++)
        a[i] = limb_add(a[i], a[i], &carry);
    fr_settle(a);
    carry = 0;
    for (int i = 0; i < FR_LIMBS; i++)
        a[i] = limb_add(a[i], b[i], &carry);
    fr_settle(a);
}

/* out = a * b mod r for b below r and a of n limbs, bit by bit from the top. */
static void fr_multiply(uint64_t *out, const uint64_t *a, int n, const uint64_t *b)
{
    static const uint64_t zero[FR_LIMBS] = {0};
    uint64_t sum[FR_LIMBS] = {0};
    for (int bit = 64 * n - 1; bit >= 0; bit--)
        fr_double_add(sum, a[bit / 64] >> (bit % 64) & 1 ? b : zero);
    memcpy(out, sum, sizeof(sum));
}

static void fr_halve(uint64_t *a)
{
    uint64_t carry = 0;
    if (a[0] & 1)
        for (int i = 0; i < FR_LIMBS; i++)
            a[i] = limb_add(a[i], fr_modulus[i], &carry);
    for (int i = 0; i < FR_LIMBS; i++)
        a[i] = a[i] >> 1 | (i + 1 < FR_LIMBS ? a[i + 1] : carry) << 63;
}

/* out = sum over i < n of scalar i times (start + i step), modulo r. */
static void msm_closed_form(const msm_data *data, uint64_t n, uint64_t *out)
{
    enum { WIDE = 6 }; /* n^2 r fits for any n that memory can hold */
    uint64_t sum[WIDE] = {0}, weighted[WIDE] = {0}, m[FR_LIMBS];
    for (uint64_t i = 0; i < n; i++) {
        uint64_t carry = 0, high = 0;
        msm_scalar(data, i, m);
        for (int k = 0; k < WIDE; k++) {
            sum[k] = limb_add(sum[k], k < FR_LIMBS ? m[k] : 0, &carry);
            weighted[k] = limb_multiply_add(i, k < FR_LIMBS ? m[k] : 0, weighted[k], &high);
        }
    }
    uint64_t one[FR_LIMBS] = {1}, step[FR_LIMBS] = {data->step}, carry = 0, other[FR_LIMBS];
    fr_multiply(out, sum, WIDE, data->start);
    fr_multiply(other, weighted, WIDE, step);
    for (int k = 0; k < FR_LIMBS; k++)
        out[k] = limb_add(out[k], other[k], &carry);
    fr_multiply(out, out, FR_LIMBS, one);
    for (int bit = 0; bit < 64 * FR_LIMBS; bit++)
        fr_halve(out);
}

#endif
