/*
 * mixed_body.h - the loop of mixed, once for every instruction set that includes this file.
 *
 * The includer defines, and this file undefines:
 *   MIXED_NAME(x)      the name of x in this instruction set
 *   MIXED_TARGET       function attribute that allows the instruction set
 *   MIXED_TYPE         a vector of 64-bit words, or one word
 *   MIXED_HAS_NT       1 where the two below exist; else 0
 *   MIXED_NT(p, v)     non-temporal store of one vector
 *   MIXED_FENCE()      makes them visible before the step ends
 */

#define WORDS (sizeof(MIXED_TYPE) / 8)
#define VECTORS (PAIR_BYTES / sizeof(MIXED_TYPE))
#define STORE(p, v) (*(MIXED_TYPE *)(p) = (v))
#define NO_FENCE() ((void)0)

/* `reads` times a pair of lines of every stream, then as much of the written side `writes` times. A
 * stream has load instructions of its own: prefetchers go by their addresses. Eight accumulators:
 * no add waits for the one before. */
#define MIXED_SWEEP(name, store, fence)                                                            \
    static MIXED_TARGET uint64_t MIXED_NAME(name)(const mixed_job *job, uint64_t first,            \
                                                  uint64_t last)                                   \
    {                                                                                              \
        const uint64_t reads = job->reads, writes = job->writes, dist = job->dist;                 \
        const MIXED_TYPE value = job->value - (MIXED_TYPE){0};                                     \
        const uint64_t *in = job->u + first * reads * PAIR_WORDS;                                  \
        uint64_t *out = job->a + first * writes * STREAMS * PAIR_WORDS;                            \
        MIXED_TYPE sums[8] = {0};                                                                  \
        for (uint64_t turn = first; turn < last; turn++) {                                         \
            for (uint64_t i = 0; i < reads; i++, in += PAIR_WORDS)                                 \
                _Pragma("GCC unroll 4") for (uint32_t s = 0; s < STREAMS; s++)                     \
                    _Pragma("GCC unroll 16") for (uint32_t k = 0; k < VECTORS; k++)                \
                        sums[(s * VECTORS + k) % 8] +=                                             \
                    *(const MIXED_TYPE *)(in + s * dist + k * WORDS);                              \
            for (uint64_t i = 0; i < writes * STREAMS; i++, out += PAIR_WORDS)                     \
                _Pragma("GCC unroll 16") for (uint32_t k = 0; k < VECTORS; k++)                    \
                    store(out + k * WORDS, value);                                                 \
        }                                                                                          \
        fence();                                                                                   \
        MIXED_TYPE all = ((sums[0] + sums[1]) + (sums[2] + sums[3])) +                             \
                         ((sums[4] + sums[5]) + (sums[6] + sums[7]));                              \
        uint64_t words[WORDS], sum = 0;                                                            \
        memcpy(words, &all, sizeof(words));                                                        \
        for (uint32_t i = 0; i < WORDS; i++)                                                       \
            sum += words[i];                                                                       \
        return sum;                                                                                \
    }
MIXED_SWEEP(plain, STORE, NO_FENCE)
#if MIXED_HAS_NT
MIXED_SWEEP(nt, MIXED_NT, MIXED_FENCE)
#endif

#undef WORDS
#undef VECTORS
#undef STORE
#undef NO_FENCE
#undef MIXED_SWEEP
#undef MIXED_NAME
#undef MIXED_TARGET
#undef MIXED_TYPE
#undef MIXED_HAS_NT
#undef MIXED_NT
#undef MIXED_FENCE
