/*
 * bitmap_body.h - the loops of bitmap, once for every instruction set that includes this file.
 *
 * The includer defines, and this file undefines:
 *   BITMAP_NAME(x)    the name of x in this instruction set
 *   BITMAP_TARGET     function attribute that allows the instruction set
 *   BITMAP_TYPE       a vector of 64-bit words, or one word
 *   BITMAP_PART(v)    counts of the set bits of v, in parts so small that four of them add up
 *   BITMAP_FOLD(p)    such a sum of parts as 64-bit counts
 */

#define WORDS ((uint64_t)(sizeof(BITMAP_TYPE) / 8))
#define AT(p) (*(BITMAP_TYPE *)(p))
#define CAT(p) (*(const BITMAP_TYPE *)(p))

static BITMAP_TARGET uint64_t BITMAP_NAME(total)(BITMAP_TYPE counts)
{
    uint64_t words[sizeof(BITMAP_TYPE) / 8], sum = 0;
    memcpy(words, &counts, sizeof(words));
    for (uint32_t i = 0; i < WORDS; i++)
        sum += words[i];
    return sum;
}

/* Four vectors a turn: eight are more than the registers hold. `bits` may use i, the position, and
 * may store. */
#define BITMAP_SWEEP(name, bits)                                                                   \
    static BITMAP_TARGET uint64_t BITMAP_NAME(name)(const bitmap_job *job, uint64_t first,         \
                                                    uint64_t last)                                 \
    {                                                                                              \
        const uint64_t *const a = job->a, *const b = job->b, *const c = job->c;                    \
        uint64_t *const d = job->d;                                                                \
        BITMAP_TYPE counts = {0};                                                                  \
        (void)b, (void)c, (void)d;                                                                 \
        for (uint64_t turn = first; turn < last; turn += 4 * WORDS) {                              \
            BITMAP_TYPE parts = {0};                                                               \
            _Pragma("GCC unroll 4") for (uint32_t v = 0; v < 4; v++)                               \
            {                                                                                      \
                uint64_t i = turn + v * WORDS;                                                     \
                BITMAP_TYPE set = bits;                                                            \
                parts += BITMAP_PART(set);                                                         \
            }                                                                                      \
            counts += BITMAP_FOLD(parts);                                                          \
        }                                                                                          \
        return BITMAP_NAME(total)(counts);                                                         \
    }
BITMAP_SWEEP(popcount, CAT(a + i))
BITMAP_SWEEP(merge, (AT(d + i) = CAT(a + i) | CAT(b + i) | CAT(c + i)))

#undef WORDS
#undef AT
#undef CAT
#undef BITMAP_SWEEP
#undef BITMAP_NAME
#undef BITMAP_TARGET
#undef BITMAP_TYPE
#undef BITMAP_PART
#undef BITMAP_FOLD
