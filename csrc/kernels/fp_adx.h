/*
 * fp_adx.h - the base field with mulx, adcx and adox: two carry chains side by side, the high
 * halves of the products through one (CF), the low halves through the other (OF).
 *
 * Multiplication takes one limb of b at a time, as the portable one does. Included by fp.h.
 */
#ifndef PS_FP_ADX_H
#define PS_FP_ADX_H

/* Every limb is an operand of its own: an offset cannot be added to one that may be a symbol. */
#define FP_LIMBS_IN(name, constraint, x)                                                           \
    [name##0] constraint((x)[0]), [name##1] constraint((x)[1]), [name##2] constraint((x)[2]),      \
        [name##3] constraint((x)[3]), [name##4] constraint((x)[4]), [name##5] constraint((x)[5])

/* clang-format off: it would join lines of assembly */

/* t = a * b[0], the limb above t in `above`. */
#define FP_ADX_FIRST                                                                               \
    "movq %[b0], %%rdx\n\t"                                                                        \
    "mulxq %[a0], %[t0], %[t1]\n\t"                                                                \
    "mulxq %[a1], %[low], %[t2]\n\t"                                                               \
    "addq %[low], %[t1]\n\t"                                                                       \
    "mulxq %[a2], %[low], %[t3]\n\t"                                                               \
    "adcq %[low], %[t2]\n\t"                                                                       \
    "mulxq %[a3], %[low], %[t4]\n\t"                                                               \
    "adcq %[low], %[t3]\n\t"                                                                       \
    "mulxq %[a4], %[low], %[t5]\n\t"                                                               \
    "adcq %[low], %[t4]\n\t"                                                                       \
    "mulxq %[a5], %[low], %[above]\n\t"                                                            \
    "adcq %[low], %[t5]\n\t"                                                                       \
    "adcq $0, %[above]\n\t"

/* t = t + a * b[i]; xor clears both carries. */
#define FP_ADX_TERM(i)                                                                             \
    "adcxq %[above], %[t" #i "]\n\t"                                                               \
    "mulxq %[a" #i "], %[low], %[above]\n\t"                                                       \
    "adoxq %[low], %[t" #i "]\n\t"
#define FP_ADX_ROUND(i)                                                                            \
    "movq %[b" #i "], %%rdx\n\t"                                                                   \
    "xorl %k[zero], %k[zero]\n\t"                                                                  \
    "mulxq %[a0], %[low], %[above]\n\t"                                                            \
    "adoxq %[low], %[t0]\n\t" FP_ADX_TERM(1) FP_ADX_TERM(2) FP_ADX_TERM(3) FP_ADX_TERM(4)          \
        FP_ADX_TERM(5) "adcxq %[zero], %[above]\n\t"                                               \
                       "adoxq %[zero], %[above]\n\t"

/* t = (t + factor * p) / 2^64 with the factor that makes the lowest limb zero. */
#define FP_ADX_SHIFT(to, i)                                                                        \
    "adcxq %[t" #i "], %[t" #to "]\n\t"                                                            \
    "mulxq %[p" #i "], %[low], %[t" #i "]\n\t"                                                     \
    "adoxq %[low], %[t" #to "]\n\t"
#define FP_ADX_REDUCE                                                                              \
    "movq %[inverse], %%rdx\n\t"                                                                   \
    "imulq %[t0], %%rdx\n\t"                                                                       \
    "xorl %k[zero], %k[zero]\n\t"                                                                  \
    "mulxq %[p0], %[low], %[high]\n\t"                                                             \
    "adcxq %[t0], %[low]\n\t"                                                                      \
    "movq %[high], %[t0]\n\t" FP_ADX_SHIFT(0, 1) FP_ADX_SHIFT(1, 2) FP_ADX_SHIFT(2, 3)             \
        FP_ADX_SHIFT(3, 4) FP_ADX_SHIFT(4, 5) "adcxq %[zero], %[t5]\n\t"                           \
                                              "adoxq %[above], %[t5]\n\t"

/* Six limbs, one after the other. */
#define FP_CHAIN(first, next, from, to)                                                            \
    first "q %[" from "0], %[" to "0]\n\t" next "q %[" from "1], %[" to "1]\n\t" next "q %[" from  \
          "2], %[" to "2]\n\t" next "q %[" from "3], %[" to "3]\n\t" next "q %[" from "4], %[" to  \
          "4]\n\t" next "q %[" from "5], %[" to "5]\n\t"
/* clang-format on */

/* r = t mod p for t below 2 p. */
static inline __attribute__((always_inline)) void fp_settle_adx(fp *r, const uint64_t *t)
{
    uint64_t u[FP_LIMBS];
    memcpy(u, t, sizeof(u));
    __asm__(FP_CHAIN("sub", "sbb", "p", "u") FP_CHAIN("cmovc", "cmovc", "t", "u")
            : FP_LIMBS_IN(u, "+&r", u)
            : FP_LIMBS_IN(p, "m", fp_modulus.limb), FP_LIMBS_IN(t, "rm", t)
            : "cc");
    memcpy(r->limb, u, sizeof(u));
}

static __attribute__((noinline)) void fp_mul_adx(fp *r, const fp *a, const fp *b)
{
    uint64_t t[FP_LIMBS], low, high, above, zero;
    __asm__(FP_ADX_FIRST FP_ADX_REDUCE FP_ADX_ROUND(1) FP_ADX_REDUCE FP_ADX_ROUND(2)
                FP_ADX_REDUCE FP_ADX_ROUND(3) FP_ADX_REDUCE FP_ADX_ROUND(4)
                    FP_ADX_REDUCE FP_ADX_ROUND(5) FP_ADX_REDUCE
            : FP_LIMBS_IN(t, "=&r", t), [low] "=&r"(low), [high] "=&r"(high), [above] "=&r"(above),
              [zero] "=&r"(zero)
            : FP_LIMBS_IN(a, "m", a->limb), FP_LIMBS_IN(b, "m", b->limb),
              FP_LIMBS_IN(p, "m", fp_modulus.limb), [inverse] "i"(FP_MINUS_INVERSE)
            : "rdx", "cc");
    fp_settle_adx(r, t);
}

static inline void fp_add_adx(fp *r, const fp *a, const fp *b)
{
    uint64_t t[FP_LIMBS];
    memcpy(t, a->limb, sizeof(t));
    __asm__(FP_CHAIN("add", "adc", "b", "t")
            : FP_LIMBS_IN(t, "+&r", t)
            : FP_LIMBS_IN(b, "m", b->limb)
            : "cc");
    fp_settle_adx(r, t);
}

static inline void fp_sub_adx(fp *r, const fp *a, const fp *b)
{
    uint64_t t[FP_LIMBS], p[FP_LIMBS], mask;
    memcpy(t, a->limb, sizeof(t));
    __asm__(FP_CHAIN("sub", "sbb", "b", "t") "sbbq %[mask], %[mask]\n\t" /* all ones below zero */
            : FP_LIMBS_IN(t, "+&r", t), [mask] "=&r"(mask)
            : FP_LIMBS_IN(b, "m", b->limb)
            : "cc");
    for (int i = 0; i < FP_LIMBS; i++)
        p[i] = fp_modulus.limb[i] & mask;
    __asm__(FP_CHAIN("add", "adc", "p", "t")
            : FP_LIMBS_IN(t, "+&r", t)
            : FP_LIMBS_IN(p, "rm", p)
            : "cc");
    memcpy(r->limb, t, sizeof(t));
}

#endif
