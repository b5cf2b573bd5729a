/*
 * scan_body.h - the loops of scan, once for every instruction set that includes this file.
 *
 * The includer defines, and this file undefines:
 *   SCAN_NAME(x)          the name of x in this instruction set
 *   SCAN_TARGET           function attribute that allows the instruction set
 *   SCAN_BYTES            bytes of a vector, 8 to 64
 *   SCAN_VECTOR           what makes one of double and uint64_t; nothing for plain C
 *   SCAN_NT2(p, v, w)     two non-temporal stores, v to p and w behind it
 *   SCAN_FENCE()          makes them visible before the step ends
 *   SCAN_HAS_NT           1 where these two exist; else 0 and both may be empty
 *
 * Vectors are the compiler's own vector types, so that one source serves all. A compiler silently
 * splits vectors that the target lacks: the object-code test looks at what came out.
 */

typedef double SCAN_NAME(f64s) SCAN_VECTOR;
typedef uint64_t SCAN_NAME(u64s) SCAN_VECTOR;

#define LANES (SCAN_BYTES / 8u)
#define U64S(p) (*(const SCAN_NAME(u64s) *)(p))
#define F64S(p) (*(SCAN_NAME(f64s) *)(p))
#define CF64S(p) (*(const SCAN_NAME(f64s) *)(p))

/* Eight accumulators: 64-bit vector adds take one cycle and two to four loads complete in one, so
 * four would just do and eight never wait. Streams take turns of `turn` bytes: two lines keep the
 * adjacent-line prefetcher of each stream useful. */
static inline __attribute__((always_inline)) SCAN_TARGET uint64_t SCAN_NAME(sum)(
    const scan_job *job, uint64_t first, uint64_t last, const uint32_t streams, const uint32_t turn)
{
    const uint64_t *u = job->u;
    const uint64_t dist = job->dist;
    SCAN_NAME(u64s) sums[8] = {0};
    for (uint64_t i = first; i < last; i += turn / 8) {
#pragma GCC unroll 8
        for (uint32_t s = 0; s < streams; s++)
#pragma GCC unroll 32
            for (uint32_t v = 0; v < turn / SCAN_BYTES; v++)
                sums[(s * (turn / SCAN_BYTES) + v) % 8] += U64S(u + s * dist + i + v * LANES);
    }
    SCAN_NAME(u64s)
    all = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
    uint64_t lanes[LANES], sum = 0;
    memcpy(lanes, &all, sizeof(lanes));
    for (uint32_t lane = 0; lane < LANES; lane++)
        sum += lanes[lane];
    return sum;
}

#define SCAN_READ(streams, turn)                                                                   \
    static SCAN_TARGET uint64_t SCAN_NAME(read##streams)(const scan_job *job, uint64_t first,      \
                                                         uint64_t last)                            \
    {                                                                                              \
        return SCAN_NAME(sum)(job, first, last, streams, turn);                                    \
    }
SCAN_READ(1, 256)
SCAN_READ(2, 128)
SCAN_READ(4, 128)
SCAN_READ(8, 128)

/* Eight vectors a turn of the loop; `value` may use i, the position, and s, the scale. */
#define SCAN_SWEEP(name, store2, fence, value)                                                     \
    static SCAN_TARGET uint64_t SCAN_NAME(name)(const scan_job *job, uint64_t first,               \
                                                uint64_t last)                                     \
    {                                                                                              \
        double *const a = job->a;                                                                  \
        const double *const b = job->b, *const c = job->c, *const d = job->d;                      \
        const SCAN_NAME(f64s) s = job->scale - (SCAN_NAME(f64s)){0};                               \
        (void)b, (void)c, (void)d, (void)s;                                                        \
        for (uint64_t turn = first; turn < last; turn += 8 * LANES) {                              \
            _Pragma("GCC unroll 4") for (uint32_t v = 0; v < 8; v += 2)                            \
            {                                                                                      \
                uint64_t i = turn + v * LANES;                                                     \
                SCAN_NAME(f64s) low = value;                                                       \
                i += LANES;                                                                        \
                SCAN_NAME(f64s) high = value;                                                      \
                store2(a + turn + v * LANES, low, high);                                           \
            }                                                                                      \
        }                                                                                          \
        fence();                                                                                   \
        return 0;                                                                                  \
    }
#define STORE2(p, v, w) (F64S(p) = (v), F64S((p) + LANES) = (w))
#define NO_FENCE() ((void)0)
#define COPY CF64S(b + i)
#define TRIAD (CF64S(b + i) + s * CF64S(c + i))
#define VTRIAD (CF64S(b + i) + CF64S(c + i) * CF64S(d + i))
SCAN_SWEEP(write, STORE2, NO_FENCE, s)
SCAN_SWEEP(copy, STORE2, NO_FENCE, COPY)
SCAN_SWEEP(triad, STORE2, NO_FENCE, TRIAD)
SCAN_SWEEP(vtriad, STORE2, NO_FENCE, VTRIAD)
SCAN_SWEEP(update, STORE2, NO_FENCE, s *CF64S(a + i))
SCAN_SWEEP(daxpy, STORE2, NO_FENCE, CF64S(a + i) + s * CF64S(b + i))
#if SCAN_HAS_NT
SCAN_SWEEP(write_nt, SCAN_NT2, SCAN_FENCE, s)
SCAN_SWEEP(copy_nt, SCAN_NT2, SCAN_FENCE, COPY)
SCAN_SWEEP(triad_nt, SCAN_NT2, SCAN_FENCE, TRIAD)
SCAN_SWEEP(vtriad_nt, SCAN_NT2, SCAN_FENCE, VTRIAD)
#define SCAN_NT_ROWS                                                                               \
    .nt = {                                                                                        \
        [OP_WRITE] = SCAN_NAME(write_nt),                                                          \
        [OP_COPY] = SCAN_NAME(copy_nt),                                                            \
        [OP_TRIAD] = SCAN_NAME(triad_nt),                                                          \
        [OP_VTRIAD] = SCAN_NAME(vtriad_nt),                                                        \
    },
#else
#define SCAN_NT_ROWS
#endif

static const scan_bodies SCAN_NAME(bodies) = {
    .read = {SCAN_NAME(read1), SCAN_NAME(read2), SCAN_NAME(read4), SCAN_NAME(read8)},
    .plain =
        {
            [OP_WRITE] = SCAN_NAME(write),
            [OP_COPY] = SCAN_NAME(copy),
            [OP_TRIAD] = SCAN_NAME(triad),
            [OP_VTRIAD] = SCAN_NAME(vtriad),
            [OP_UPDATE] = SCAN_NAME(update),
            [OP_DAXPY] = SCAN_NAME(daxpy),
            [OP_LIBC_COPY] = libc_copy,
            [OP_LIBC_SET] = libc_set,
        },
    SCAN_NT_ROWS};

#undef LANES
#undef U64S
#undef F64S
#undef CF64S
#undef STORE2
#undef NO_FENCE
#undef COPY
#undef TRIAD
#undef VTRIAD
#undef SCAN_READ
#undef SCAN_SWEEP
#undef SCAN_NT_ROWS
#undef SCAN_NAME
#undef SCAN_TARGET
#undef SCAN_BYTES
#undef SCAN_VECTOR
#undef SCAN_NT2
#undef SCAN_FENCE
#undef SCAN_HAS_NT
