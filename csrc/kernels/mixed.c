/* Reads and writes in a fixed ratio: so much of one array, then so much of another. */
#include "internal.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum param { READS, WRITES, STORE, STEP };
enum store { STORE_PLAIN, STORE_NT };
enum array { U, A, N_ARRAYS };
/* ps_ctx.words: turns of a step; steps of a pass; words from read stream to read stream. */
enum ctx_word { CHUNK, N_STEPS, DIST };
/* ps_thread.words: steps really made; sum of what they read. */
enum thread_word { MADE, SUM };

/* Places read in turn: one alone understates many cores, whose prefetchers stop at every 4 KiB. Two
 * lines a place: prefetchers of neighbouring lines stay useful. */
#define STREAMS 4u
#define PAIR_BYTES 128u
#define PAIR_WORDS 16u
#define TURN_BYTES (STREAMS * PAIR_BYTES)

typedef struct {
    const uint64_t *u;
    uint64_t *a;
    uint64_t reads, writes; /* a turn, of TURN_BYTES each */
    uint64_t dist, value;
} mixed_job;
typedef uint64_t mixed_body(const mixed_job *job, uint64_t first, uint64_t last);

/* ---- the loop, by instruction set ---------------------------------------------------------- */

#define MIXED_NAME(x) mixed_##x##_scalar
#define MIXED_TARGET
#define MIXED_TYPE uint64_t
#if defined(__x86_64__)
#define MIXED_HAS_NT 1
#define MIXED_NT(p, v) _mm_stream_si64((long long *)(void *)(p), (long long)(v))
#define MIXED_FENCE() _mm_sfence()
#elif defined(__aarch64__)
/* The architecture has them in pairs only: every other store writes both. */
#define MIXED_HAS_NT 1
#define MIXED_NT(p, v)                                                                             \
    if (k % 2 == 0)                                                                                \
    __asm__ volatile("stnp %1, %1, [%0]" ::"r"(p), "r"(v) : "memory")
#define MIXED_FENCE() __asm__ volatile("dmb ishst" ::: "memory")
#else
#define MIXED_HAS_NT 0
#endif
#include "mixed_body.h"

#if defined(__x86_64__)
typedef uint64_t mixed_avx2 __attribute__((vector_size(32), may_alias));
#define MIXED_NAME(x) mixed_##x##_avx2
#define MIXED_TARGET __attribute__((target("avx2")))
#define MIXED_TYPE mixed_avx2
#define MIXED_HAS_NT 1
#define MIXED_NT(p, v) _mm256_stream_si256((__m256i *)(void *)(p), (__m256i)(v))
#define MIXED_FENCE() _mm_sfence()
#include "mixed_body.h"

typedef uint64_t mixed_avx512 __attribute__((vector_size(64), may_alias));
#define MIXED_NAME(x) mixed_##x##_avx512
#define MIXED_TARGET __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl")))
#define MIXED_TYPE mixed_avx512
#define MIXED_HAS_NT 1
#define MIXED_NT(p, v) _mm512_stream_si512((__m512i *)(void *)(p), (__m512i)(v))
#define MIXED_FENCE() _mm_sfence()
#include "mixed_body.h"
#elif defined(__aarch64__)
typedef uint64_t mixed_neon __attribute__((vector_size(16), may_alias));
#define MIXED_NAME(x) mixed_##x##_neon
#define MIXED_TARGET
#define MIXED_TYPE mixed_neon
#define MIXED_HAS_NT 1
#define MIXED_NT(p, v)                                                                             \
    if (k % 2 == 0)                                                                                \
    __asm__ volatile("stnp %q1, %q1, [%0]" ::"r"(p), "w"(v) : "memory")
#define MIXED_FENCE() __asm__ volatile("dmb ishst" ::: "memory")
#include "mixed_body.h"
#endif

static int mixed_step(ps_ctx *ctx, uint32_t thread, uint64_t ticket);

static const ps_variant variants[] = {
    {.name = "scalar", .step = mixed_step},
#if defined(__x86_64__)
    {.name = "avx2", .needs = PS_ISA_AVX2, .step = mixed_step},
    {.name = "avx512", .needs = PS_ISA_AVX512, .step = mixed_step},
#elif defined(__aarch64__)
    {.name = "neon", .needs = PS_ISA_NEON, .step = mixed_step},
#endif
};
/* By variant and store, in the order of the variants. */
static mixed_body *const bodies[PS_COUNT(variants)][2] = {
#if defined(__x86_64__)
    {mixed_plain_scalar, mixed_nt_scalar},
    {mixed_plain_avx2, mixed_nt_avx2},
    {mixed_plain_avx512, mixed_nt_avx512},
#elif defined(__aarch64__)
    {mixed_plain_scalar, mixed_nt_scalar},
    {mixed_plain_neon, mixed_nt_neon},
#else
    {mixed_plain_scalar, NULL},
#endif
};

static mixed_body *body_of(const ps_ctx *ctx)
{
    return bodies[ctx->variant - variants][ctx->values[STORE].number];
}

/* ---- values -------------------------------------------------------------------------------- */

/* The words read are an arithmetic series, so that the sum of any range is known. */
static uint64_t series(const ps_ctx *ctx, uint32_t thread, uint64_t i)
{
    uint64_t position = thread * (ctx->bytes[U] / 8) + i;
    return ps_hash(ctx->seed, 1) + position * (ps_hash(ctx->seed, 0) | 1);
}

static uint64_t series_sum(const ps_ctx *ctx, uint32_t thread, uint64_t first, uint64_t n)
{
    /* n (n - 1) / 2, halved before the product can wrap around. */
    uint64_t pairs = n % 2 ? n * ((n - 1) / 2) : n / 2 * (n - 1);
    return n * series(ctx, thread, first) + pairs * (ps_hash(ctx->seed, 0) | 1);
}

/* What a pass, counted from 0, writes everywhere: a store left out in the last one shows. */
static uint64_t value_of(uint64_t pass)
{
    return ~(pass % 251);
}

/* ---- hooks --------------------------------------------------------------------------------- */

static const char *const store_names[] = {[STORE_PLAIN] = "plain", [STORE_NT] = "nt"};

/* Stream starts: neither equal modulo 4 KiB, where they would compete for the same sets of the
 * first-level cache, nor near each other. Applied to streams long enough to feel it. */
#define STAGGER_BYTES (2048u + 3u * 64u)
#define STAGGER_FROM_BYTES 65536u

/* Useful bytes of one turn; at most the 4 KiB that pacing goes by, see the parameters. */
static uint64_t turn_bytes(const ps_ctx *ctx)
{
    return TURN_BYTES * (ctx->values[READS].number + ctx->values[WRITES].number);
}

static int layout(ps_ctx *ctx, uint64_t *bytes, char *why)
{
    uint64_t reads = ctx->values[READS].number, writes = ctx->values[WRITES].number;
    uint64_t share = ctx->size_bytes / ctx->n_threads, padding = N_ARRAYS * 4096u;
    if (reads + writes == 0)
        return ps_refuse(why, EINVAL, "reads and writes cannot both be 0");
    if (ctx->values[STORE].number == STORE_NT && !writes)
        return ps_refuse(why, EINVAL, "writes=0 has no store that could be non-temporal");
    if (ctx->values[STORE].number == STORE_NT && !body_of(ctx))
        return ps_refuse(why, EINVAL, "no non-temporal stores on this architecture");
    bool staggered = share * reads / (reads + writes) / STREAMS >= 2 * STAGGER_FROM_BYTES;
    padding += staggered ? (STREAMS - 1) * 4096u : 0;
    uint64_t turns = share > padding ? (share - padding) / turn_bytes(ctx) : 0;
    uint64_t least = (padding + turn_bytes(ctx)) * ctx->n_threads;
    if (turns == 0)
        return ps_refuse(why, EINVAL, "%u threads need at least %llu B", ctx->n_threads,
                         (unsigned long long)least);
    uint64_t n_steps = turns * turn_bytes(ctx) / ctx->values[STEP].number;
    n_steps = n_steps ? n_steps : 1;
    turns = turns / n_steps * n_steps;
    uint64_t length = turns * reads * PAIR_BYTES;
    ctx->words[CHUNK] = turns / n_steps;
    ctx->words[N_STEPS] = n_steps;
    ctx->words[DIST] = (length + (staggered ? (STAGGER_BYTES - length) % 4096u : 0)) / 8;
    bytes[U] = reads ? (STREAMS - 1) * ctx->words[DIST] * 8 + length : 0;
    bytes[A] = turns * writes * TURN_BYTES;
    return 0;
}

static int fill(ps_ctx *ctx, uint32_t thread, char *why)
{
    uint64_t *u = ctx->threads[thread].arrays[U], *a = ctx->threads[thread].arrays[A];
    (void)why;
    for (uint64_t i = 0; i < ctx->bytes[U] / 8; i++)
        u[i] = series(ctx, thread, i);
    for (uint64_t i = 0; i < ctx->bytes[A] / 8; i++)
        a[i] = 0;
    return 0;
}

static void work(const ps_ctx *ctx, ps_work *work)
{
    uint64_t n_steps = ctx->words[N_STEPS], turns = n_steps * ctx->words[CHUNK];
    *work = (ps_work){.n_steps = n_steps, .n_stages = 1, .stage_steps = {n_steps}};
    work->read_bytes = turns * ctx->values[READS].number * TURN_BYTES;
    work->written_bytes = turns * ctx->values[WRITES].number * TURN_BYTES;
    /* A plain store reads the line before it is written back; a non-temporal one does not. */
    uint64_t allocated = ctx->values[STORE].number == STORE_NT ? 0 : work->written_bytes;
    work->bus_min_bytes = work->bus_max_bytes = work->read_bytes + work->written_bytes + allocated;
}

static int mixed_step(ps_ctx *ctx, uint32_t thread, uint64_t ticket)
{
    ps_thread *own = &ctx->threads[thread];
    mixed_body *body = body_of(ctx);
    const mixed_job job = {
        .u = own->arrays[U],
        .a = own->arrays[A],
        .reads = ctx->values[READS].number,
        .writes = ctx->values[WRITES].number,
        .dist = ctx->words[DIST],
        .value = value_of(own->words[MADE] / ctx->words[N_STEPS]),
    };
    uint64_t first = ticket * ctx->words[CHUNK], last = first + ctx->words[CHUNK];
    for (; ctx->pace_bytes_per_s > 0 && first < last; first++) {
        ps_pace(ctx, own, turn_bytes(ctx));
        own->words[SUM] += body(&job, first, first + 1);
    }
    own->words[SUM] += body(&job, first, last);
    own->words[MADE]++;
    own->sink = own->words[SUM];
    return 0;
}

static int check(ps_ctx *ctx, uint32_t thread, char *why)
{
    const ps_thread *own = &ctx->threads[thread];
    uint64_t n_steps = ctx->words[N_STEPS], passes = own->steps / n_steps;
    uint64_t rest = own->steps % n_steps, expected = 0;
    /* Words of one stream that a step reads; words that it writes. */
    uint64_t read = ctx->words[CHUNK] * ctx->values[READS].number * PAIR_WORDS;
    uint64_t written = ctx->words[CHUNK] * ctx->values[WRITES].number * TURN_BYTES / 8;
    for (uint64_t s = 0; s < STREAMS; s++) {
        expected += passes * series_sum(ctx, thread, s * ctx->words[DIST], n_steps * read);
        expected += series_sum(ctx, thread, s * ctx->words[DIST], rest * read);
    }
    if (own->words[MADE] != own->steps || own->words[SUM] != expected)
        return ps_refuse(why, EBADMSG, "thread %u read a sum of %#llx in %llu steps, not %#llx",
                         thread, (unsigned long long)own->words[SUM],
                         (unsigned long long)own->words[MADE], (unsigned long long)expected);
    const uint64_t *a = own->arrays[A];
    for (uint64_t i = 0; i < n_steps * written; i++) {
        uint64_t done = passes + (i < rest * written), want = done ? value_of(done - 1) : 0;
        if (a[i] != want)
            return ps_refuse(why, EBADMSG, "a[%llu] of thread %u is %#llx, not %#llx",
                             (unsigned long long)i, thread, (unsigned long long)a[i],
                             (unsigned long long)want);
    }
    return 0;
}

static const ps_param params[] = {
    {.name = "reads",
     .kind = PS_U64,
     .default_value = 2,
     .min = 0,
     .max = 4,
     .unit = "",
     .help = "of 512 B, 128 from each of 4 places, before so many writes"},
    {.name = "writes",
     .kind = PS_U64,
     .default_value = 1,
     .min = 0,
     .max = 4,
     .unit = "",
     .help = "of 512 B before so many reads again"},
    {.name = "store",
     .kind = PS_CHOICE,
     .choices = store_names,
     .n_choices = PS_COUNT(store_names),
     .unit = "",
     .help = "nt: non-temporal, past the caches"},
    {.name = "step",
     .kind = PS_SIZE,
     .default_value = 256u << 10,
     .min = 4096,
     .max = 1u << 30,
     .unit = "B",
     .help = "useful bytes of one step"},
};
static const ps_array array_rows[N_ARRAYS] = {
    [U] = {"u", "u8", PS_IN, PS_PER_THREAD},
    [A] = {"a", "u8", PS_OUT, PS_PER_THREAD},
};

const ps_kernel ps_kernel_mixed = {
    .name = "mixed",
    .summary = "reads and writes in a ratio, each thread in its own slice",
    .params = params,
    .n_params = PS_COUNT(params),
    .arrays = array_rows,
    .n_arrays = N_ARRAYS,
    .variants = variants,
    .n_variants = PS_COUNT(variants),
    .sharing = PS_SLICED,
    .memory = PS_ARENA,
    .paces_inside = true,
    .layout = layout,
    .fill = fill,
    .work = work,
    .check = check,
};
