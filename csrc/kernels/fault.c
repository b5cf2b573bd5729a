/* First touch of fresh memory, each thread in its own mapping. */
#include "churn.h"

enum param { HOW, CHUNK, HOLD, CHUNKS };
enum how { HOW_TOUCH, HOW_POPULATE };
enum hold { HOLD_CHUNK, HOLD_PASS };
enum phase { PHASE_TOUCH, PHASE_RELEASE };
/* ps_ctx.words: base page; steps of a pass. */
enum ctx_word { PAGE, N_STEPS };
/* ps_thread.words: whether the region is mapped; bytes touched and not yet released; steps made;
 * fresh pages that held something: how many, and of the first the step, its offset, what it held.
 */
enum thread_word { MAPPED, HELD, MADE, WRONG, WRONG_STEP, WRONG_AT, WRONG_SAW };

static const char *const how_names[] = {[HOW_TOUCH] = "touch", [HOW_POPULATE] = "populate"};
static const char *const hold_names[] = {[HOLD_CHUNK] = "chunk", [HOLD_PASS] = "pass"};
static const char *const phases[] = {"touch", "release"};

#define CHUNKS_DEFAULT 4u

static bool holds_pass(const ps_ctx *ctx)
{
    return ctx->values[HOLD].number == HOLD_PASS;
}

/* Of one first touch: the way into the system and back, and clearing. */
#define FAULT_NS 1500.0
#define ZERO_NS_PER_BYTE 0.1

static int layout(ps_ctx *ctx, uint64_t *bytes, char *why)
{
    uint64_t chunk = ctx->values[CHUNK].number, share = ctx->size_bytes / ctx->n_threads;
    uint64_t page = ctx->words[PAGE] = ps_base_page();
    if (chunk % page)
        return ps_refuse(why, EINVAL, "chunk is a multiple of %llu B, not %llu",
                         (unsigned long long)page, (unsigned long long)chunk);
    if (share < chunk)
        return ps_refuse(why, EINVAL, "%u threads with chunks of %llu B need at least %llu B",
                         ctx->n_threads, (unsigned long long)chunk,
                         (unsigned long long)chunk * ctx->n_threads);
    if (holds_pass(ctx) && ctx->values[CHUNKS].number != CHUNKS_DEFAULT)
        return ps_refuse(why, EINVAL, "chunks belongs to hold=chunk; hold=pass fills the size");
    ctx->words[N_STEPS] = holds_pass(ctx) ? share / chunk : ctx->values[CHUNKS].number;
    uint64_t touched = ps_policy_page(ctx->policy);
    ctx->effort = (ps_effort){.ops = ctx->words[N_STEPS] * chunk / touched,
                              .op_ns = FAULT_NS + ZERO_NS_PER_BYTE * (double)touched};
    bytes[0] = holds_pass(ctx) ? share / chunk * chunk : chunk;
    return 0;
}

static int accepts(const ps_ctx *ctx, const ps_policy *policy, char *why)
{
    int code = churn_accepts_size(policy, "a chunk", ctx->values[CHUNK].number, why);
    /* Of no bytes: asks only whether the kernel knows it. */
    if (!code && ctx->values[HOW].number == HOW_POPULATE && madvise(NULL, 0, MADV_POPULATE_WRITE))
        return ps_refuse(why, ENOTSUP, "how=populate needs MADV_POPULATE_WRITE (Linux 5.14)");
    if (!code && policy->hugetlb)
        code = churn_accepts_advice(policy, MADV_DONTNEED, "MADV_DONTNEED", "5.18", why);
    return code;
}

static void work(const ps_ctx *ctx, ps_work *work)
{
    uint64_t n = ctx->words[N_STEPS], chunk = ctx->values[CHUNK].number;
    *work = (ps_work){.n_steps = n, .n_stages = 1, .stage_steps = {n}, .chunk_bytes = chunk};
    /* The system writes them all: fresh pages are zeroed. That is done in the cache, and written
     * back once; or past it, or the lines are read first. */
    work->written_bytes = n * chunk;
    work->bus_min_bytes = work->written_bytes;
    work->bus_max_bytes = 2 * work->written_bytes;
    work->ops = work->written_bytes / ps_policy_page(ctx->policy);
}

/* Word of every page that a step stores into, and what: another one in every step, so that a page
 * that was not fresh shows. */
static uint64_t word_of(const ps_ctx *ctx, uint64_t step)
{
    return ps_hash(ctx->seed, step) % (ctx->words[PAGE] / 8);
}

static void store_words(const ps_ctx *ctx, char *start, uint64_t bytes, uint64_t step)
{
    uint64_t page = ctx->words[PAGE], at = 8 * word_of(ctx, step);
    for (; at < bytes; at += page)
        *(volatile uint64_t *)(void *)(start + at) = step + 1;
}

/* A step's sample of what it has just touched: a page is zero but for the word that was stored. */
static void look_at_fresh(const ps_ctx *ctx, ps_thread *own, uint64_t chunk_at, uint64_t step)
{
    uint64_t page = ctx->words[PAGE], n_pages = ctx->values[CHUNK].number / page;
    uint64_t random = ps_hash(ctx->seed, ~step);
    uint64_t page_at = chunk_at + random % n_pages * page;
    const uint64_t *words = (const uint64_t *)(void *)((char *)own->arrays[0] + page_at);
    /* The word that the step before stored, if this one did not store it again; else any. */
    uint64_t k = step ? word_of(ctx, step - 1) : random >> 32 & 255;
    uint64_t want = ctx->values[HOW].number == HOW_TOUCH && k == word_of(ctx, step) ? step + 1 : 0;
    if (words[k] == want || own->words[WRONG]++)
        return;
    own->words[WRONG_STEP] = step;
    own->words[WRONG_AT] = page_at + 8 * k;
    own->words[WRONG_SAW] = words[k];
}

static int release(const ps_thread *own)
{
    return madvise(own->arrays[0], own->words[HELD], MADV_DONTNEED) ? errno : 0;
}

/* Releases what is held where it is time to, then touches a chunk. */
static int fault_step(ps_ctx *ctx, uint32_t thread, uint64_t ticket)
{
    ps_thread *own = &ctx->threads[thread];
    uint64_t chunk = ctx->values[CHUNK].number, step = own->words[MADE];
    int code = 0;
    void *mapping;
    if (!own->words[MAPPED]) {
        code = ctx->policy->map(ctx->policy, own->arrays[0], ctx->bytes[0], &mapping);
        own->words[MAPPED] = !code;
    }
    uint64_t start = ps_clock_ns();
    if (!code && own->words[HELD] && (ticket == 0 || !holds_pass(ctx))) {
        code = release(own);
        own->words[HELD] = 0;
    }
    uint64_t released = ps_clock_ns();
    if (code)
        return code;
    char *at = (char *)own->arrays[0] + own->words[HELD];
    if (ctx->values[HOW].number == HOW_TOUCH)
        store_words(ctx, at, chunk, step);
    else if (madvise(at, chunk, MADV_POPULATE_WRITE))
        return errno;
    own->phase_ns[PHASE_TOUCH] += ps_clock_ns() - released;
    own->phase_ns[PHASE_RELEASE] += released - start;
    own->touched_bytes += chunk;
    look_at_fresh(ctx, own, own->words[HELD], step);
    own->words[HELD] += chunk;
    own->words[MADE]++;
    churn_hold(own, own->arrays[0], own->words[HELD]);
    return 0;
}

/* ---- check --------------------------------------------------------------------------------- */

/* Every page of the last chunk: its one word, and zeros around it. */
static int check_chunk(const ps_ctx *ctx, const ps_thread *own, char *why)
{
    uint64_t page = ctx->words[PAGE], chunk = ctx->values[CHUNK].number;
    uint64_t step = own->words[MADE] - 1, k = word_of(ctx, step), first = own->words[HELD] - chunk;
    bool touched = ctx->values[HOW].number == HOW_TOUCH;
    for (uint64_t at = first; at < first + chunk; at += page) {
        const uint64_t *words = (const uint64_t *)(void *)((char *)own->arrays[0] + at);
        for (uint64_t i = 0; i < page / 8; i++)
            if (words[i] != (touched && i == k ? step + 1 : 0))
                return ps_refuse(why, EBADMSG, "word %llu at %llu of the last chunk is %#llx",
                                 (unsigned long long)i, (unsigned long long)(at - first),
                                 (unsigned long long)words[i]);
    }
    return 0;
}

static int check_steps(const ps_ctx *ctx, const ps_thread *own, uint32_t thread, char *why)
{
    if (own->words[MADE] != own->steps)
        return ps_refuse(why, EBADMSG, "thread %u made %llu steps of %llu", thread,
                         (unsigned long long)own->words[MADE], (unsigned long long)own->steps);
    if (own->touched_bytes != own->steps * ctx->values[CHUNK].number)
        return ps_refuse(why, EBADMSG, "thread %u touched %llu B in %llu steps", thread,
                         (unsigned long long)own->touched_bytes, (unsigned long long)own->steps);
    if (own->words[WRONG])
        return ps_refuse(why, EBADMSG,
                         "%llu fresh pages of thread %u were not zero: step %llu found %#llx at "
                         "%llu",
                         (unsigned long long)own->words[WRONG], thread,
                         (unsigned long long)own->words[WRONG_STEP],
                         (unsigned long long)own->words[WRONG_SAW],
                         (unsigned long long)own->words[WRONG_AT]);
    return own->words[MADE] ? check_chunk(ctx, own, why) : 0;
}

static int check(ps_ctx *ctx, uint32_t thread, char *why)
{
    ps_thread *own = &ctx->threads[thread];
    int code = check_steps(ctx, own, thread, why);
    churn_hold(own, NULL, 0);
    if (own->words[MAPPED])
        munmap(own->arrays[0], ctx->bytes[0]);
    return code ? code : churn_check_empty(ctx, thread, why);
}

static const ps_param params[] = {
    {.name = "how",
     .kind = PS_CHOICE,
     .choices = how_names,
     .n_choices = PS_COUNT(how_names),
     .unit = "",
     .help = "touch: a store into every base page, a fault for each page that comes; populate: one "
             "call of MADV_POPULATE_WRITE"},
    {.name = "chunk",
     .kind = PS_SIZE,
     .default_value = 2u << 20,
     .min = 4096,
     .max = 1ull << 40,
     .unit = "B",
     .help = "touched in a step, a multiple of the policy's page"},
    {.name = "hold",
     .kind = PS_CHOICE,
     .choices = hold_names,
     .n_choices = PS_COUNT(hold_names),
     .unit = "",
     .help = "chunk: a chunk is released before the next is touched, which then gets the same warm "
             "pages; pass: a pass fills the size and holds it, the next releases all at its start"},
    {.name = "chunks",
     .kind = PS_U64,
     .default_value = CHUNKS_DEFAULT,
     .min = 1,
     .max = 1u << 20,
     .unit = "",
     .help = "in a pass of hold=chunk"},
};

static const ps_array arrays[] = {{"region", "u1", PS_SCRATCH, PS_PER_THREAD}};
static const ps_variant variants[] = {{.name = "scalar", .step = fault_step}};

const ps_kernel ps_kernel_fault = {
    .name = "fault",
    .summary = "first touch of fresh pages, released again with MADV_DONTNEED",
    .op = "page",
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
    .layout = layout,
    .work = work,
    .check = check,
    .accepts = accepts,
};
