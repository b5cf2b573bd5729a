/* limbs.h - words of long numbers, lowest first, and the constants of BLS12-381's scalar field. */
#ifndef PS_LIMBS_H
#define PS_LIMBS_H

#include <stdint.h>

/* The order of both groups, r, and 2^256 mod r: the Montgomery form of 1. */
#define FR_MODULUS                                                                                 \
    {0xffffffff00000001u, 0x53bda402fffe5bfeu, 0x3339d80809a1d805u, 0x73eda753299d7d48u}
#define FR_ONE {0x00000001fffffffeu, 0x5884b7fa00034802u, 0x998c4fefecbc4ff5u, 0x1824b159acc5056fu}
/* -1/r mod 2^64. */
#define FR_MINUS_INVERSE 0xfffffffeffffffffu

/* a * b + c + *carry; cannot overflow 128 bits. */
static inline uint64_t limb_multiply_add(uint64_t a, uint64_t b, uint64_t c, uint64_t *carry)
{
    unsigned __int128 sum = (unsigned __int128)a * b + c + *carry;
    *carry = (uint64_t)(sum >> 64);
    return (uint64_t)sum;
}

static inline uint64_t limb_add(uint64_t a, uint64_t b, uint64_t *carry)
{
    unsigned __int128 sum = (unsigned __int128)a + b + *carry;
    *carry = (uint64_t)(sum >> 64);
    return (uint64_t)sum;
}

static inline uint64_t limb_sub(uint64_t a, uint64_t b, uint64_t *borrow)
{
    unsigned __int128 difference = (unsigned __int128)a - b - *borrow;
    *borrow = (uint64_t)(difference >> 64) & 1;
    return (uint64_t)difference;
}

#endif
