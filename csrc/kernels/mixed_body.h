/*
 * mixed_body.h - the loop of mixed, once for every instruction set that includes this file.
 *
 * The includer defines, and this file undefines:
 *   MIXED_NAME(x)      the name of x in this instruction set
 *   MIXED_TARGET       function attribute that allows the instruction set
 *   MIXED_TYPE         a vector of 64-bit words, or one word
 *   MIXED_HAS_NT       1 where the two below exist; else 0
 *   MIXED_NT(p, v)     non-temporal store of the line at p, all of it vectors v
 *   MIXED_FENCE()      makes them visible before the step ends
 */

#define WORDS (sizeof(MIXED_TYPE) / 8)
#define VECTORS (64 / sizeof(MIXED_TYPE))
#define STORE_LINE(p, v)                                                                           \
    do {                                                                                           \
        _Pragma("GCC unroll 8") for (uint32_t k_ = 0; k_ < VECTORS; k_++) *                        \
            (MIXED_TYPE *)((p) + k_ * WORDS) = (v);                                                \
    } while (0)
#define NO_FENCE() ((void)0)

/* Lines [turn * reads, ...) of the read side, dealt to the streams in turn, then the lines of the
 * written side; for every turn. A vector of a line has an accumulator of its own, up to four: an
 * add takes one cycle, a line from memory many. */
#define MIXED_SWEEP(name, store, fence)                                                            \
    static MIXED_TARGET uint64_t MIXED_NAME(name)(const mixed_job *job, uint64_t first,            \
                                                  uint64_t last)                                   \
    {                                                                                              \
        const uint64_t reads = job->reads, writes = job->writes, dist = job->dist;                 \
        const MIXED_TYPE value = job->value - (MIXED_TYPE){0};                                     \
        uint64_t line = first * reads;                                                             \
        uint64_t *out = job->a + first * writes * 8;                                               \
        MIXED_TYPE sums[4] = {0};                                                                  \
        for (uint64_t turn = first; turn < last; turn++) {                                         \
            for (uint64_t i = 0; i < reads; i++, line++) {                                         \
                const uint64_t *at = job->u + line % STREAMS * dist + line / STREAMS * 8;          \
                _Pragma("GCC unroll 8") for (uint32_t k = 0; k < VECTORS; k++) sums[k % 4] +=      \
                    *(const MIXED_TYPE *)(at + k * WORDS);                                         \
            }                                                                                      \
            for (uint64_t i = 0; i < writes; i++, out += 8)                                        \
                store(out, value);                                                                 \
        }                                                                                          \
        fence();                                                                                   \
        MIXED_TYPE all = (sums[0] + sums[1]) + (sums[2] + sums[3]);                                \
        uint64_t words[WORDS], sum = 0;                                                            \
        memcpy(words, &all, sizeof(words));                                                        \
        for (uint32_t i = 0; i < WORDS; i++)                                                       \
            sum += words[i];                                                                       \
        return sum;                                                                                \
    }
MIXED_SWEEP(plain, STORE_LINE, NO_FENCE)
#if MIXED_HAS_NT
MIXED_SWEEP(nt, MIXED_NT, MIXED_FENCE)
#endif

#undef WORDS
#undef VECTORS
#undef STORE_LINE
#undef NO_FENCE
#undef MIXED_SWEEP
#undef MIXED_NAME
#undef MIXED_TARGET
#undef MIXED_TYPE
#undef MIXED_HAS_NT
#undef MIXED_NT
#undef MIXED_FENCE
