/* Bitmaps of 64-bit words: count the set bits of one, or merge three and count the result's. */
#include "internal.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

enum param { OP, STEP };
enum op { OP_POPCOUNT, OP_MERGE, N_OPS };
enum array { A, B, C, D, N_ARRAYS };
/* ps_ctx.words: words of a step; steps of a pass. */
enum ctx_word { CHUNK, N_STEPS };
/* ps_thread.words: steps really made; bits they counted. */
enum thread_word { MADE, BITS };

typedef struct {
    const uint64_t *a, *b, *c;
    uint64_t *d;
} bitmap_job;
typedef uint64_t bitmap_body(const bitmap_job *job, uint64_t first, uint64_t last);

/* ---- counting, by instruction set ---------------------------------------------------------- */

/* Pairs of bits, then fours, then bytes: no table and no instruction that a CPU may lack. */
static inline uint64_t byte_counts(uint64_t x)
{
    x -= x >> 1 & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + (x >> 2 & 0x3333333333333333u);
    return (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
}

/* Eight bytes of up to 32 each: in pairs first, as their sum does not fit a byte. */
static inline uint64_t sum_bytes(uint64_t x)
{
    x = (x & 0x00ff00ff00ff00ffu) + (x >> 8 & 0x00ff00ff00ff00ffu);
    return x * 0x0001000100010001u >> 48;
}

#define BITMAP_NAME(x) x##_scalar
#define BITMAP_TARGET
#define BITMAP_TYPE uint64_t
#define BITMAP_PART(v) byte_counts(v)
#define BITMAP_FOLD(p) sum_bytes(p)
#include "bitmap_body.h"

#if defined(__x86_64__)
typedef uint64_t words_avx2 __attribute__((vector_size(32), may_alias));
typedef uint8_t bytes_avx2 __attribute__((vector_size(32)));

/* A table of sixteen counts, looked up for both halves of every byte. */
static inline __attribute__((always_inline, target("avx2"))) words_avx2 part_avx2(words_avx2 v)
{
    const __m256i counts = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1,
                                            2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
    const __m256i half = _mm256_set1_epi8(15);
    __m256i low = _mm256_and_si256((__m256i)v, half);
    __m256i high = _mm256_and_si256(_mm256_srli_epi16((__m256i)v, 4), half);
    return (words_avx2)_mm256_add_epi8(_mm256_shuffle_epi8(counts, low),
                                       _mm256_shuffle_epi8(counts, high));
}

#define BITMAP_NAME(x) x##_avx2
#define BITMAP_TARGET __attribute__((target("avx2")))
#define BITMAP_TYPE words_avx2
#define BITMAP_PART(v) part_avx2(v)
#define BITMAP_FOLD(p) ((words_avx2)_mm256_sad_epu8((__m256i)(p), _mm256_setzero_si256()))
#include "bitmap_body.h"

typedef uint64_t words_avx512 __attribute__((vector_size(64), may_alias));
#define BITMAP_NAME(x) x##_avx512
#define BITMAP_TARGET __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx512vpopcntdq")))
#define BITMAP_TYPE words_avx512
#define BITMAP_PART(v) ((words_avx512)_mm512_popcnt_epi64((__m512i)(v)))
#define BITMAP_FOLD(p) (p)
#include "bitmap_body.h"
#elif defined(__aarch64__)
typedef uint64_t words_neon __attribute__((vector_size(16), may_alias));

/* Bytes; their sum in fours of sixteen, in pairs of 32, in 64-bit words. */
#define BITMAP_NAME(x) x##_neon
#define BITMAP_TARGET
#define BITMAP_TYPE words_neon
#define BITMAP_PART(v) ((words_neon)vcntq_u8((uint8x16_t)(v)))
#define BITMAP_FOLD(p) ((words_neon)vpaddlq_u32(vpaddlq_u16(vpaddlq_u8((uint8x16_t)(p)))))
#include "bitmap_body.h"
#endif

static int bitmap_step(ps_ctx *ctx, uint32_t thread, uint64_t ticket);

static const ps_variant variants[] = {
    {.name = "scalar", .step = bitmap_step},
#if defined(__x86_64__)
    {.name = "avx2", .needs = PS_ISA_AVX2, .step = bitmap_step},
    {.name = "avx512", .needs = PS_ISA_AVX512 | PS_ISA_VPOPCNT, .step = bitmap_step},
#elif defined(__aarch64__)
    {.name = "neon", .needs = PS_ISA_NEON, .step = bitmap_step},
#endif
};
/* In the order of the variants. */
static bitmap_body *const bodies[PS_COUNT(variants)][N_OPS] = {
    {popcount_scalar, merge_scalar},
#if defined(__x86_64__)
    {popcount_avx2, merge_avx2},
    {popcount_avx512, merge_avx512},
#elif defined(__aarch64__)
    {popcount_neon, merge_neon},
#endif
};

/* ---- values -------------------------------------------------------------------------------- */

static uint64_t word(const ps_ctx *ctx, uint32_t thread, uint32_t array, uint64_t i)
{
    uint64_t position = thread * ctx->words[CHUNK] * ctx->words[N_STEPS] + i;
    return ps_hash(ctx->seed + array, position);
}

/* What a pass counts the bits of. */
static uint64_t counted(const ps_ctx *ctx, uint32_t thread, uint64_t i)
{
    uint64_t a = word(ctx, thread, A, i);
    return ctx->values[OP].number == OP_POPCOUNT
               ? a
               : a | word(ctx, thread, B, i) | word(ctx, thread, C, i);
}

/* ---- hooks --------------------------------------------------------------------------------- */

static const char *const op_names[N_OPS] = {[OP_POPCOUNT] = "popcount", [OP_MERGE] = "merge"};

/* Words that every vector body can take in one turn: 4 vectors of 64 bytes. */
#define GRANULE 32u

static uint32_t n_arrays(const ps_ctx *ctx)
{
    return ctx->values[OP].number == OP_POPCOUNT ? 1 : N_ARRAYS;
}

static int layout(ps_ctx *ctx, uint64_t *bytes, char *why)
{
    uint32_t arrays = n_arrays(ctx);
    uint64_t slice = ps_slice_bytes(ctx, arrays, 8) / 8;
    uint64_t n_steps = slice * 8 * arrays / ctx->values[STEP].number;
    n_steps += n_steps == 0;
    uint64_t chunk = slice / n_steps / GRANULE * GRANULE;
    if (chunk == 0)
        return ps_refuse(why, EINVAL, "%u threads with %u bitmaps need at least %llu B",
                         ctx->n_threads, arrays,
                         (unsigned long long)ctx->n_threads * arrays * (4096u + GRANULE * 8));
    ctx->words[CHUNK] = chunk;
    ctx->words[N_STEPS] = n_steps;
    for (uint32_t i = 0; i < N_ARRAYS; i++)
        bytes[i] = i < arrays ? chunk * n_steps * 8 : 0;
    return 0;
}

static int fill(ps_ctx *ctx, uint32_t thread, char *why)
{
    (void)why;
    for (uint32_t array = A; array < n_arrays(ctx); array++) {
        uint64_t *x = ctx->threads[thread].arrays[array];
        for (uint64_t i = 0; i < ctx->bytes[array] / 8; i++)
            x[i] = array == D ? ~counted(ctx, thread, i) : word(ctx, thread, array, i);
    }
    return 0;
}

static void work(const ps_ctx *ctx, ps_work *work)
{
    uint64_t n_steps = ctx->words[N_STEPS], bytes = ctx->words[CHUNK] * n_steps * 8;
    bool merges = ctx->values[OP].number == OP_MERGE;
    *work = (ps_work){.n_steps = n_steps, .n_stages = 1, .stage_steps = {n_steps}};
    work->read_bytes = merges ? 3 * bytes : bytes;
    work->written_bytes = merges ? bytes : 0;
    /* The stores read the line before it is written back. */
    work->bus_min_bytes = work->bus_max_bytes = work->read_bytes + 2 * work->written_bytes;
}

static int bitmap_step(ps_ctx *ctx, uint32_t thread, uint64_t ticket)
{
    ps_thread *own = &ctx->threads[thread];
    bitmap_body *body = bodies[ctx->variant - variants][ctx->values[OP].number];
    const bitmap_job job = {
        .a = own->arrays[A], .b = own->arrays[B], .c = own->arrays[C], .d = own->arrays[D]};
    uint64_t first = ticket * ctx->words[CHUNK], last = first + ctx->words[CHUNK];
    if (ctx->pace_bytes_per_s > 0) {
        uint64_t each = 8 * n_arrays(ctx), block = 4096 / each / GRANULE * GRANULE;
        for (; last - first > block; first += block) {
            ps_pace(ctx, own, block * each);
            own->words[BITS] += body(&job, first, first + block);
        }
        ps_pace(ctx, own, (last - first) * each);
    }
    own->words[BITS] += body(&job, first, last);
    own->words[MADE]++;
    own->sink = own->words[BITS];
    return 0;
}

static int check(ps_ctx *ctx, uint32_t thread, char *why)
{
    const ps_thread *own = &ctx->threads[thread];
    uint64_t n_steps = ctx->words[N_STEPS], n = ctx->words[CHUNK] * n_steps;
    uint64_t passes = own->steps / n_steps, border = own->steps % n_steps * ctx->words[CHUNK];
    uint64_t expected = 0;
    const uint64_t *d = ctx->values[OP].number == OP_MERGE ? own->arrays[D] : NULL;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t value = counted(ctx, thread, i), done = passes + (i < border);
        expected += done * sum_bytes(byte_counts(value));
        uint64_t want = done ? value : ~value;
        if (d && d[i] != want)
            return ps_refuse(why, EBADMSG, "d[%llu] of thread %u is %#llx, not %#llx",
                             (unsigned long long)i, thread, (unsigned long long)d[i],
                             (unsigned long long)want);
    }
    if (own->words[MADE] != own->steps || own->words[BITS] != expected)
        return ps_refuse(why, EBADMSG,
                         "thread %u counted %llu bits in %llu steps, not %llu in %llu", thread,
                         (unsigned long long)own->words[BITS], (unsigned long long)own->words[MADE],
                         (unsigned long long)expected, (unsigned long long)own->steps);
    return 0;
}

static const ps_param params[] = {
    {.name = "op",
     .kind = PS_CHOICE,
     .choices = op_names,
     .n_choices = N_OPS,
     .unit = "",
     .help = "popcount: bits of a; merge: d = a | b | c, and the bits of d"},
    {.name = "step",
     .kind = PS_SIZE,
     .default_value = 256u << 10,
     .min = 4096,
     .max = 1u << 30,
     .unit = "B",
     .help = "useful bytes of one step"},
};
static const ps_array array_rows[N_ARRAYS] = {
    [A] = {"a", "u8", PS_IN, PS_PER_THREAD},
    [B] = {"b", "u8", PS_IN, PS_PER_THREAD},
    [C] = {"c", "u8", PS_IN, PS_PER_THREAD},
    [D] = {"d", "u8", PS_OUT, PS_PER_THREAD},
};

const ps_kernel ps_kernel_bitmap = {
    .name = "bitmap",
    .summary = "set bits of a bitmap, or of three merged into a fourth",
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
