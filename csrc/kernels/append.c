/* A vector that grows as elements are appended: its capacity doubles, and it moves. */
#include "churn.h"

enum param { GROWTH, FIRST, STEP };
enum growth { GROWTH_MREMAP, GROWTH_INPLACE, GROWTH_COPY };
enum phase { PHASE_GROW, PHASE_APPEND, PHASE_RELEASE };
/* ps_ctx.words: bytes of the vector at the end of a pass, which are its capacity then. */
enum ctx_word { LAST };
/* ps_thread.words: where the vector lies in the region; bytes it has room for, bytes in it, bytes
 * of it that were ever touched; steps made; passes begun. */
enum thread_word { PLACE, CAPACITY, USED, TOUCHED, MADE, PASSES };

static const char *const growth_names[] = {
    [GROWTH_MREMAP] = "mremap", [GROWTH_INPLACE] = "inplace", [GROWTH_COPY] = "copy"};
static const char *const phases[] = {"grow", "append", "release"};

/* A field element: four 64-bit limbs. */
#define LIMBS 4u
#define ELEMENT (LIMBS * 8u)
#define BLOCK 4096u

static uint64_t limb(const ps_ctx *ctx, uint32_t thread, uint64_t pass, uint64_t index)
{
    return ctx->seed + (pass << 8) + thread + (2 * index + 1) * 0x9e3779b97f4a7c15u;
}

/* ---- hooks --------------------------------------------------------------------------------- */

static int layout(ps_ctx *ctx, uint64_t *bytes, char *why)
{
    uint64_t first = ctx->values[FIRST].number, page = ps_base_page();
    uint64_t share = ctx->size_bytes / ctx->n_threads;
    if (first % page)
        return ps_refuse(why, EINVAL, "first is a multiple of %llu B, not %llu",
                         (unsigned long long)page, (unsigned long long)first);
    if (ctx->values[STEP].number % BLOCK)
        return ps_refuse(why, EINVAL, "step is a multiple of %u B", BLOCK);
    /* One growth at least. Old and new copy exist together; the same length for every growth. */
    uint64_t least = 3 * first * ctx->n_threads;
    if (ctx->size_bytes < least)
        return ps_refuse(why, EINVAL, "%u threads with vectors from %llu B on need at least %llu B",
                         ctx->n_threads, (unsigned long long)first, (unsigned long long)least);
    uint64_t last = 2 * first;
    while (3 * last <= share)
        last *= 2;
    ctx->words[LAST] = last;
    /* Of an element its share of first touches, and of a copy. */
    ctx->effort = (ps_effort){.ops = last / ELEMENT, .op_ns = 20};
    bool moves = ctx->values[GROWTH].number != GROWTH_INPLACE;
    bytes[0] = moves ? last / 2 * 3 : last;
    ctx->live_bytes = ctx->values[GROWTH].number == GROWTH_COPY ? last / 2 * 3 : last;
    return 0;
}

static int accepts(const ps_ctx *ctx, const ps_policy *policy, char *why)
{
    if (policy->hugetlb && ctx->values[GROWTH].number != GROWTH_COPY)
        return ps_refuse(why, ENOTSUP, "Linux grows no hugetlb mapping; use growth=copy");
    return churn_accepts_size(policy, "a first capacity", ctx->values[FIRST].number, why);
}

static void work(const ps_ctx *ctx, ps_work *work)
{
    uint64_t last = ctx->words[LAST], step = ctx->values[STEP].number;
    uint64_t n = (last + step - 1) / step;
    /* Every capacity but the last is copied once: half, a quarter, ... down to the first. */
    bool copies = ctx->values[GROWTH].number == GROWTH_COPY;
    uint64_t copied = copies ? last - ctx->values[FIRST].number : 0;
    *work = (ps_work){.n_steps = n, .n_stages = 1, .stage_steps = {n}, .chunk_bytes = last};
    work->ops = last / ELEMENT;
    work->read_bytes = copied;
    work->written_bytes = last + copied;
    /* Fresh pages are zeroed, then written: both in the cache and written back once; or both with
     * a read before and a write after. */
    work->bus_min_bytes = work->read_bytes + work->written_bytes;
    work->bus_max_bytes = work->read_bytes + 4 * work->written_bytes;
}

/* ---- growing ------------------------------------------------------------------------------- */

/* Vectors that move lie at the region's start and at its end in turn, the last at the start. */
static uint64_t place_of(const ps_ctx *ctx, uint64_t capacity)
{
    if (ctx->values[GROWTH].number == GROWTH_INPLACE)
        return 0;
    uint64_t growths = (uint64_t)__builtin_ctzll(ctx->words[LAST] / capacity);
    return growths % 2 ? ctx->words[LAST] : 0;
}

static char *vector_of(const ps_thread *own)
{
    return (char *)own->arrays[0] + own->words[PLACE];
}

/* Note that the front of the vector is touched up to `bytes`. */
static void touch_to(const ps_ctx *ctx, ps_thread *own, uint64_t bytes)
{
    uint64_t touched = ps_round_up(bytes, ps_policy_page(ctx->policy));
    if (touched > own->words[TOUCHED]) {
        own->touched_bytes += touched - own->words[TOUCHED];
        own->words[TOUCHED] = touched;
    }
    churn_hold(own, vector_of(own), own->words[TOUCHED]);
}

static int begin(const ps_ctx *ctx, ps_thread *own)
{
    void *start;
    uint64_t first = ctx->values[FIRST].number;
    own->words[PLACE] = place_of(ctx, first);
    int code = ctx->policy->map(ctx->policy, vector_of(own), first, &start);
    own->words[CAPACITY] = code ? 0 : first;
    return code;
}

/* The page-table entries move, or only the mapping's end; no byte is copied. */
static int grow_mapping(ps_thread *own, uint64_t place, uint64_t capacity)
{
    char *to = (char *)own->arrays[0] + place;
    int flags = to == vector_of(own) ? 0 : MREMAP_MAYMOVE | MREMAP_FIXED;
    return mremap(vector_of(own), own->words[CAPACITY], capacity, flags, to) == MAP_FAILED ? errno
                                                                                           : 0;
}

static int grow_copy(const ps_ctx *ctx, ps_thread *own, uint64_t place, uint64_t capacity)
{
    void *to;
    int code = ctx->policy->map(ctx->policy, (char *)own->arrays[0] + place, capacity, &to);
    if (code)
        return code;
    ps_pace(ctx, own, 2 * own->words[USED]);
    memcpy(to, vector_of(own), own->words[USED]);
    return munmap(vector_of(own), own->words[CAPACITY]) ? errno : 0;
}

static int grow(const ps_ctx *ctx, ps_thread *own)
{
    uint64_t capacity = 2 * own->words[CAPACITY], place = place_of(ctx, capacity);
    bool copies = ctx->values[GROWTH].number == GROWTH_COPY;
    churn_hold(own, NULL, 0);
    int code = copies ? grow_copy(ctx, own, place, capacity) : grow_mapping(own, place, capacity);
    if (code)
        return code;
    own->words[PLACE] = place;
    own->words[CAPACITY] = capacity;
    if (copies)
        own->words[TOUCHED] = 0;
    touch_to(ctx, own, own->words[USED]);
    return 0;
}

static int release(ps_thread *own)
{
    int code = own->words[CAPACITY] && munmap(vector_of(own), own->words[CAPACITY]) ? errno : 0;
    churn_hold(own, NULL, 0);
    own->words[CAPACITY] = own->words[USED] = own->words[TOUCHED] = 0;
    return code;
}

/* ---- steps --------------------------------------------------------------------------------- */

static void append_block(const ps_ctx *ctx, uint32_t thread, uint64_t bytes)
{
    ps_thread *own = &ctx->threads[thread];
    uint64_t index = own->words[USED] / 8, pass = own->words[PASSES];
    uint64_t *out = (uint64_t *)(void *)(vector_of(own) + own->words[USED]);
    for (uint64_t i = 0; i < bytes / 8; i += LIMBS)
        for (uint64_t k = 0; k < LIMBS; k++)
            out[i + k] = limb(ctx, thread, pass, index + i + k);
    own->words[USED] += bytes;
}

static int append_step(ps_ctx *ctx, uint32_t thread, uint64_t ticket)
{
    ps_thread *own = &ctx->threads[thread];
    uint64_t last = ctx->words[LAST], now = ps_clock_ns(), then = now;
    int code = 0;
    if (ticket == 0) {
        code = release(own);
        now = ps_clock_ns();
        own->phase_ns[PHASE_RELEASE] += now - then;
        own->words[PASSES]++;
        code = code ? code : begin(ctx, own);
        then = now, now = ps_clock_ns();
        own->phase_ns[PHASE_GROW] += now - then;
    }
    uint64_t end = own->words[USED] + ctx->values[STEP].number;
    end = end < last ? end : last;
    while (!code && own->words[USED] < end) {
        if (own->words[USED] == own->words[CAPACITY]) {
            code = grow(ctx, own);
            then = now, now = ps_clock_ns();
            own->phase_ns[PHASE_GROW] += now - then;
            continue;
        }
        uint64_t room = own->words[CAPACITY] - own->words[USED], left = end - own->words[USED];
        uint64_t stop = own->words[USED] + (room < left ? room : left);
        while (own->words[USED] < stop) {
            ps_pace(ctx, own, BLOCK);
            append_block(ctx, thread, BLOCK);
        }
        touch_to(ctx, own, own->words[USED]);
        then = now, now = ps_clock_ns();
        own->phase_ns[PHASE_APPEND] += now - then;
    }
    own->words[MADE]++;
    return code;
}

static int check_vector(const ps_ctx *ctx, uint32_t thread, char *why)
{
    const ps_thread *own = &ctx->threads[thread];
    const uint64_t *vector = (const uint64_t *)(void *)vector_of(own);
    uint64_t step = ctx->values[STEP].number, n = (ctx->words[LAST] + step - 1) / step;
    uint64_t made = own->steps ? (own->steps - 1) % n + 1 : 0; /* in the newest pass */
    uint64_t want = made * step < ctx->words[LAST] ? made * step : ctx->words[LAST];
    if (own->words[MADE] != own->steps || own->words[USED] != want)
        return ps_refuse(why, EBADMSG, "thread %u made %llu steps of %llu and has %llu B, not %llu",
                         thread, (unsigned long long)own->words[MADE],
                         (unsigned long long)own->steps, (unsigned long long)own->words[USED],
                         (unsigned long long)want);
    for (uint64_t i = 0; i < want / 8; i++)
        if (vector[i] != limb(ctx, thread, (own->steps - 1) / n + 1, i))
            return ps_refuse(why, EBADMSG, "limb %llu of element %llu of thread %u is %#llx",
                             (unsigned long long)(i % LIMBS), (unsigned long long)(i / LIMBS),
                             thread, (unsigned long long)vector[i]);
    return 0;
}

static int check(ps_ctx *ctx, uint32_t thread, char *why)
{
    int code = check_vector(ctx, thread, why);
    int failed = release(&ctx->threads[thread]);
    if (!code && failed)
        code = ps_refuse(why, EBADMSG, "thread %u cannot release its vector: %s", thread,
                         strerror(failed));
    return code ? code : churn_check_empty(ctx, thread, why);
}

static const ps_param params[] = {
    {.name = "growth",
     .kind = PS_CHOICE,
     .choices = growth_names,
     .n_choices = PS_COUNT(growth_names),
     .unit = "",
     .help = "mremap: the pages move to a place with more room, as realloc does where another "
             "mapping lies behind; inplace: there is room behind; copy: into a new mapping"},
    {.name = "first",
     .kind = PS_SIZE,
     .default_value = 2u << 20,
     .min = 4096,
     .max = 1ull << 38,
     .unit = "B",
     .help =
         "capacity to begin with, a multiple of the policy's page; doubled until the vector and "
         "the half of it that it was before fill a thread's share of the size"},
    {.name = "step",
     .kind = PS_SIZE,
     .default_value = 128u << 10,
     .min = BLOCK,
     .max = 1u << 30,
     .unit = "B",
     .help = "appended in one step"},
};

static const ps_array arrays[] = {{"vector", "u8", PS_SCRATCH, PS_PER_THREAD}};
static const ps_variant variants[] = {{.name = "scalar", .step = append_step}};

const ps_kernel ps_kernel_append = {
    .name = "append",
    .summary = "32 B elements appended to a vector whose capacity doubles; a pass begins anew",
    .op = "element",
    .params = params,
    .n_params = PS_COUNT(params),
    .arrays = arrays,
    .n_arrays = PS_COUNT(arrays),
    .variants = variants,
    .n_variants = PS_COUNT(variants),
    .phases = phases,
    .n_phases = PS_COUNT(phases),
    .sharing = PS_SLICED,
    .memory = PS_CHURN,
    .paces_inside = true,
    .layout = layout,
    .work = work,
    .check = check,
    .accepts = accepts,
};
