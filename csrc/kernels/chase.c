/*
 * Dependent loads along one random cycle over the lines of the thread's array: memory latency.
 *
 * A SLOT is a place in the array, one every `stride` bytes; it holds the offset of the slot that
 * follows on the cycle. A slot's RANK is its position on the cycle: slot = order(rank).
 */
#include "permutation.h"

enum param { LOADS, CHAINS, STRIDE, WITHIN };
enum within { WITHIN_ALL, WITHIN_PAGE };
/* ps_ctx.words: slots; loads of one chain in a step. */
enum ctx_word { SLOTS, CHAIN_LOADS, N_STEPS };
/* ps_thread.words: cursors first, one a chain; then steps made. */
enum thread_word { CURSOR, MADE = 8 };

#define MAX_CHAINS 8u
/* About 100 us when every load misses every cache. */
#define STEP_LOADS 1024u
/* What within=page stays inside, whatever backs it: the smallest page of x86-64 and the usual one
 * of arm64, so that the same order can be compared under every page policy. */
#define PAGE_BYTES 4096u

typedef struct {
    permutation slots; /* or pages of them */
    permutation lines; /* of a page */
    uint64_t seed;
    uint64_t page_lines; /* 1 where the order does not stay in pages */
} order;

static order make_order(const ps_ctx *ctx)
{
    uint64_t lines =
        ctx->values[WITHIN].number == WITHIN_PAGE ? PAGE_BYTES / ctx->values[STRIDE].number : 1;
    return (order){
        .slots = make_permutation(ps_hash(ctx->seed, 0), ctx->words[SLOTS] / lines),
        .lines = make_permutation(ps_hash(ctx->seed, 1), lines),
        .seed = ps_hash(ctx->seed, 2),
        .page_lines = lines,
    };
}

/* Pages differ in the order of their lines by this turn of it; the number of lines is a power of 2.
 */
static uint64_t turn(const order *o, uint64_t page)
{
    return ps_hash(o->seed, page) & (o->page_lines - 1);
}

static uint64_t slot_of(const order *o, uint64_t rank)
{
    if (o->page_lines == 1)
        return permute(&o->slots, rank);
    uint64_t page = permute(&o->slots, rank / o->page_lines);
    return page * o->page_lines + permute(&o->lines, rank % o->page_lines ^ turn(o, page));
}

static uint64_t rank_of(const order *o, uint64_t slot)
{
    if (o->page_lines == 1)
        return unpermute(&o->slots, slot);
    uint64_t page = slot / o->page_lines;
    uint64_t line = unpermute(&o->lines, slot % o->page_lines) ^ turn(o, page);
    return unpermute(&o->slots, page) * o->page_lines + line;
}

/* Slot 0. Arrays do not start at a page, see staggered starts; an order that stays in pages has to.
 */
static char *origin(const ps_ctx *ctx, uint32_t thread)
{
    char *start = ctx->threads[thread].arrays[0];
    if (ctx->values[WITHIN].number == WITHIN_PAGE)
        start += -(uintptr_t)start % PAGE_BYTES;
    return start;
}

static uint64_t start_rank(const ps_ctx *ctx, uint64_t chain)
{
    return (uint64_t)((unsigned __int128)ctx->words[SLOTS] * chain / ctx->values[CHAINS].number);
}

static int layout(ps_ctx *ctx, uint64_t *bytes, char *why)
{
    uint64_t stride = ctx->values[STRIDE].number, chains = ctx->values[CHAINS].number;
    bool in_pages = ctx->values[WITHIN].number == WITHIN_PAGE;
    if (stride % PS_LINE != 0)
        return ps_refuse(why, EINVAL, "stride is a multiple of %u B, not %llu", PS_LINE,
                         (unsigned long long)stride);
    if (in_pages && (stride > PAGE_BYTES / 2 || PAGE_BYTES % stride != 0))
        return ps_refuse(why, EINVAL, "within=page needs 2 or more lines in %u B: stride %llu",
                         PAGE_BYTES, (unsigned long long)stride);
    uint64_t room = ps_slice_bytes(ctx, 1, PS_LINE), slots;
    if (in_pages)
        slots = room < PAGE_BYTES ? 0 : (room - PAGE_BYTES) / PAGE_BYTES * (PAGE_BYTES / stride);
    else /* the last slot needs its line only */
        slots = room < PS_LINE ? 0 : (room - PS_LINE) / stride + 1;
    if (slots < 2 * chains)
        return ps_refuse(why, EINVAL,
                         "%llu B for %u threads hold %llu lines, too few for %llu chains",
                         (unsigned long long)ctx->size_bytes, ctx->n_threads,
                         (unsigned long long)slots, (unsigned long long)chains);

    uint64_t n_steps = (ctx->values[LOADS].number + STEP_LOADS / 2) / STEP_LOADS;
    ctx->words[N_STEPS] = n_steps ? n_steps : 1;
    uint64_t each = ctx->values[LOADS].number / chains / ctx->words[N_STEPS];
    ctx->words[CHAIN_LOADS] = each ? each : 1;
    ctx->words[SLOTS] = slots;
    ctx->effort = (ps_effort){.ops = ctx->words[N_STEPS] * ctx->words[CHAIN_LOADS] * chains,
                              .op_waits = 1 / (double)chains};
    bytes[0] = (slots - 1) * stride + PS_LINE + (in_pages ? PAGE_BYTES : 0);
    return 0;
}

static int fill(ps_ctx *ctx, uint32_t thread, char *why)
{
    order o = make_order(ctx);
    char *base = origin(ctx, thread);
    uint64_t n = ctx->words[SLOTS], stride = ctx->values[STRIDE].number;
    (void)why;
    for (uint64_t slot = 0; slot < n; slot++) {
        uint64_t rank = rank_of(&o, slot) + 1;
        uint64_t next = slot_of(&o, rank < n ? rank : 0) * stride;
        memcpy(base + slot * stride, &next, sizeof(next));
    }
    for (uint64_t chain = 0; chain < ctx->values[CHAINS].number; chain++)
        ctx->threads[thread].words[CURSOR + chain] = slot_of(&o, start_rank(ctx, chain)) * stride;
    return 0;
}

static void work(const ps_ctx *ctx, ps_work *work)
{
    uint64_t n = ctx->words[N_STEPS];
    *work = (ps_work){.n_steps = n, .n_stages = 1, .stage_steps = {n}};
    work->ops = n * ctx->words[CHAIN_LOADS] * ctx->values[CHAINS].number;
    work->read_bytes = 8 * work->ops;
    /* A line comes back only after all others: it is fetched every time, or never once a cache
     * holds them all. Which of the two is the host's to say. */
    work->bus_min_bytes = 0;
    work->bus_max_bytes = PS_LINE * work->ops;
}

/* The number of chains is a constant of each caller, so that the cursors live in registers. */
static inline __attribute__((always_inline)) void walk(const char *base, uint64_t *cursors,
                                                       uint64_t loads, const uint32_t chains)
{
    uint64_t at[MAX_CHAINS];
#pragma GCC unroll 8
    for (uint32_t c = 0; c < chains; c++)
        at[c] = cursors[c];
    for (uint64_t i = 0; i < loads; i++)
#pragma GCC unroll 8
        for (uint32_t c = 0; c < chains; c++)
            at[c] = *(const uint64_t *)(base + at[c]);
#pragma GCC unroll 8
    for (uint32_t c = 0; c < chains; c++)
        cursors[c] = at[c];
}

static void walk_chains(const char *base, uint64_t *cursors, uint64_t loads, uint64_t chains)
{
    switch (chains) {
    case 1:
        walk(base, cursors, loads, 1);
        break;
    case 2:
        walk(base, cursors, loads, 2);
        break;
    case 3:
        walk(base, cursors, loads, 3);
        break;
    case 4:
        walk(base, cursors, loads, 4);
        break;
    case 5:
        walk(base, cursors, loads, 5);
        break;
    case 6:
        walk(base, cursors, loads, 6);
        break;
    case 7:
        walk(base, cursors, loads, 7);
        break;
    default:
        walk(base, cursors, loads, 8);
        break;
    }
}

static int step_scalar(ps_ctx *ctx, uint32_t thread, uint64_t ticket)
{
    ps_thread *own = &ctx->threads[thread];
    const char *base = origin(ctx, thread);
    uint64_t chains = ctx->values[CHAINS].number, left = ctx->words[CHAIN_LOADS];
    (void)ticket; /* steps are alike: the cursors go on from pass to pass */
    if (ctx->pace_bytes_per_s > 0) {
        uint64_t block = 4096 / 8 / chains;
        for (; left > block; left -= block) {
            ps_pace(ctx, own, block * chains * 8);
            walk_chains(base, &own->words[CURSOR], block, chains);
        }
        ps_pace(ctx, own, left * chains * 8);
    }
    walk_chains(base, &own->words[CURSOR], left, chains);
    own->words[MADE]++;
    own->sink = own->words[CURSOR];
    return 0;
}

static int check(ps_ctx *ctx, uint32_t thread, char *why)
{
    const ps_thread *own = &ctx->threads[thread];
    uint64_t n = ctx->words[SLOTS], stride = ctx->values[STRIDE].number;
    order o = make_order(ctx);
    if (own->words[MADE] != own->steps)
        return ps_refuse(why, EBADMSG, "thread %u made %llu steps of %llu", thread,
                         (unsigned long long)own->words[MADE], (unsigned long long)own->steps);
    uint64_t walked = own->steps % n * (ctx->words[CHAIN_LOADS] % n) % n;
    for (uint64_t chain = 0; chain < ctx->values[CHAINS].number; chain++) {
        uint64_t want = slot_of(&o, (start_rank(ctx, chain) + walked) % n) * stride;
        if (own->words[CURSOR + chain] != want)
            return ps_refuse(why, EBADMSG, "chain %llu of thread %u is at offset %llu, not %llu",
                             (unsigned long long)chain, thread,
                             (unsigned long long)own->words[CURSOR + chain],
                             (unsigned long long)want);
    }
    return 0;
}

static const char *const within_names[] = {[WITHIN_ALL] = "all", [WITHIN_PAGE] = "page"};

static const ps_param params[] = {
    {.name = "loads",
     .kind = PS_U64,
     .default_value = 262144,
     .min = 1,
     .max = 1ull << 40,
     .unit = "loads",
     .help = "of all chains of a thread in a pass; rounded to whole steps"},
    {.name = "chains",
     .kind = PS_U64,
     .default_value = 1,
     .min = 1,
     .max = MAX_CHAINS,
     .unit = "",
     .help = "independent walkers on the cycle; 1 measures latency, more how far it can be hidden"},
    {.name = "stride",
     .kind = PS_SIZE,
     .default_value = PS_LINE,
     .min = PS_LINE,
     .max = 1u << 30,
     .unit = "B",
     .help = "from slot to slot, a multiple of 64; 4160 visits one line of every 4 KiB page and "
             "spreads them over all cache sets"},
    {.name = "within",
     .kind = PS_CHOICE,
     .choices = within_names,
     .n_choices = PS_COUNT(within_names),
     .unit = "",
     .help = "page: all lines of one 4 KiB page before the next page, both in random order"},
};

static const ps_array arrays[] = {{"next", "u8", PS_IN, PS_PER_THREAD}};
static const ps_variant variants[] = {{.name = "scalar", .step = step_scalar}};

const ps_kernel ps_kernel_chase = {
    .name = "chase",
    .summary = "dependent loads along one random cycle over all lines, each thread its own",
    .op = "load",
    .params = params,
    .n_params = PS_COUNT(params),
    .arrays = arrays,
    .n_arrays = PS_COUNT(arrays),
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
