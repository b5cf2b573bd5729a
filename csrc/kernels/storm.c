/* Map, touch, release, over and over: each thread in its own region. */
#include "storm_contents.h"
#include "storm_heap.h"

enum tables { TABLES_KEPT, TABLES_FREED };
enum phase { PHASE_MAP, PHASE_TOUCH, PHASE_RELEASE };

static const char *const method_names[N_METHODS] = {
    [MUNMAP] = "munmap", [DONTNEED] = "dontneed", [FREE] = "free",
    [MREMAP] = "mremap", [HEAP] = "heap",         [POOL] = "pool",
};
static const char *const sizes_names[] = {[SIZES_FIXED] = "fixed", [SIZES_PROVER] = "prover"};
static const char *const tables_names[] = {[TABLES_KEPT] = "kept", [TABLES_FREED] = "freed"};
static const char *const phases[] = {"map", "touch", "release"};

/* ---- hooks --------------------------------------------------------------------------------- */

static bool anchored(const ps_ctx *ctx)
{
    return ctx->values[TABLES].number == TABLES_KEPT && ctx->values[METHOD].number != HEAP;
}

/* Of a chunk, with its first touches. */
#define FILL_NS_PER_BYTE 0.4

static int layout(ps_ctx *ctx, uint64_t *bytes, char *why)
{
    uint64_t page = ctx->words[PAGE] = ps_base_page();
    if (ctx->values[TABLES].number == TABLES_FREED && method_of(ctx, METHOD)->keeps_tables)
        return ps_refuse(why, EINVAL,
                         "tables=freed belongs to method=munmap and mremap; %s has no say in it",
                         method_of(ctx, METHOD)->name);
    bool prover = ctx->values[SIZES].number == SIZES_PROVER;
    int code = prover ? size_prover(ctx, why) : size_fixed(ctx, why);
    if (code)
        return code;
    uint64_t largest = ctx->words[LARGEST];
    if (largest > ctx->size_bytes / ctx->n_threads)
        return ps_refuse(why, EINVAL, "%u threads with chunks of %llu B need at least %llu B",
                         ctx->n_threads, (unsigned long long)largest,
                         (unsigned long long)largest * ctx->n_threads);
    ctx->words[N_RELEASES] = n_releases(ctx);
    ctx->live_bytes = largest;
    ctx->effort = (ps_effort){.ops = ctx->words[N_RELEASES],
                              .op_ns = FILL_NS_PER_BYTE * (double)filled_bytes(ctx, largest)};
    /* The anchor is the last page of the last table's range, in one of its own if need be. */
    bytes[0] = anchored(ctx) ? ps_round_up(largest + page, ps_pmd_bytes()) : largest;
    if (ctx->values[METHOD].number == HEAP) {
        bytes[0] = 0;
        ctx->live_bytes += page; /* malloc's header */
    }
    return 0;
}

static int accepts(const ps_ctx *ctx, const ps_policy *policy, char *why)
{
    uint64_t method = ctx->values[METHOD].number, page = ps_policy_page(policy);
    if (method == HEAP)
        return heap_accepts(policy, ctx->words[SMALLEST], why);
    int code = churn_accepts_size(policy, "a chunk", ctx->words[SMALLEST], why);
    if (!code)
        code = churn_accepts_size(policy, "a chunk", ctx->words[LARGEST], why);
    if (code)
        return code;
    if (policy->hugetlb && (method == FREE || method == MREMAP))
        return ps_refuse(why, ENOTSUP, "Linux has no %s for hugetlb pages",
                         method == FREE ? "MADV_FREE" : "mremap that grows");
    if (policy->hugetlb && method == DONTNEED)
        return churn_accepts_advice(policy, MADV_DONTNEED, "MADV_DONTNEED", "5.18", why);
    if (method == MREMAP && ctx->words[SMALLEST] < 2 * page)
        return ps_refuse(why, ENOTSUP,
                         "method=mremap keeps one page of %s: chunks need two of %llu B",
                         policy->name, (unsigned long long)page);
    return 0;
}

static void environment(const ps_ctx *ctx, const ps_policy *policy, char *out)
{
    if (ctx->values[METHOD].number == HEAP)
        heap_environment(policy, out);
}

static void work(const ps_ctx *ctx, ps_work *work)
{
    uint64_t n = ctx->words[N_RELEASES];
    *work = (ps_work){.n_steps = n, .n_stages = 1, .stage_steps = {n}, .ops = n};
    for (uint64_t i = 0; i < n; i++)
        work->written_bytes += filled_bytes(ctx, chunk_bytes(ctx, i));
    work->chunk_bytes = ctx->words[LARGEST];
    /* Lines are read before they are written, and written back. Fresh pages are first zeroed: in
     * the cache, where the stores find the zeros and only they are written back; or all the way. */
    bool keeps = method_of(ctx, METHOD)->keeps_pages;
    work->bus_min_bytes = work->written_bytes * (keeps ? 2 : 1);
    work->bus_max_bytes = work->written_bytes * (keeps ? 2 : 4);
}

/* ---- steps --------------------------------------------------------------------------------- */

/* A page at the end of the region: while it is there, so is the page table that the end of a chunk
 * shares with it. Read-only, lest the kernel join it with a chunk in front of it. */
static int drop_anchor(const ps_ctx *ctx, ps_thread *own)
{
    uint64_t page = ctx->words[PAGE];
    char *where = (char *)own->arrays[0] + ctx->bytes[0] - page;
    void *anchor;
    int code = ps_map_aligned(where, page, page, 0, &anchor);
    if (code)
        return code;
    own->words[ANCHOR] = (uintptr_t)anchor;
    *(volatile char *)anchor = 1;
    return mprotect(anchor, page, PROT_READ) ? errno : 0;
}

/* Releases the chunk before, which was left for evidence and for the check; makes the next. */
static int storm_step(ps_ctx *ctx, uint32_t thread, uint64_t ticket)
{
    ps_thread *own = &ctx->threads[thread];
    const storm_method *method = method_of(ctx, METHOD);
    int code = 0;
    if (anchored(ctx) && !own->words[ANCHOR])
        code = drop_anchor(ctx, own);
    if (own->words[MADE]) {
        uint64_t at = ps_hash(ctx->seed, ~own->words[MADE]) % (own->words[FILLED] / 8) * 8;
        uint64_t saw = *(const uint64_t *)(void *)((char *)chunk_of(own) + at);
        if (saw != repeated(own->words[PATTERN]))
            note_wrong(own, at, saw);
    }
    uint64_t start = ps_clock_ns();
    if (!code && own->words[MADE])
        code = method->release(ctx, own);
    uint64_t released = ps_clock_ns(), bytes = chunk_bytes(ctx, ticket);
    churn_hold(own, NULL, 0);
    if (!code)
        code = method->map(ctx, own, bytes);
    uint64_t mapped = ps_clock_ns();
    if (code)
        return code;
    fill_chunk(ctx, own, bytes);
    own->phase_ns[PHASE_TOUCH] += ps_clock_ns() - mapped;
    own->phase_ns[PHASE_MAP] += mapped - released;
    own->phase_ns[PHASE_RELEASE] += released - start;
    account(ctx, own);
    own->words[MADE]++;
    return 0;
}

/* The heap's first chunk is there before the window's evidence is read: only malloc knows what
 * pages it uses. */
static int fill(ps_ctx *ctx, uint32_t thread, char *why)
{
    ps_thread *own = &ctx->threads[thread];
    if (ctx->values[METHOD].number != HEAP)
        return 0;
    uint64_t bytes = chunk_bytes(ctx, 0);
    int code = allocate(ctx, own, bytes);
    if (code)
        return ps_refuse(why, code, "malloc has no %llu B", (unsigned long long)bytes);
    fill_chunk(ctx, own, bytes);
    account(ctx, own);
    own->words[MADE] = 1;
    return 0;
}

static int check(ps_ctx *ctx, uint32_t thread, char *why)
{
    ps_thread *own = &ctx->threads[thread];
    int code = check_held(ctx, own, thread, why);
    churn_hold(own, NULL, 0);
    if (own->words[MADE]) {
        int failed = method_of(ctx, METHOD)->release(ctx, own);
        if (!code && failed)
            code = ps_refuse(why, EBADMSG, "the last release of thread %u failed: %s", thread,
                             strerror(failed));
        if (!code)
            code = check_released(ctx, own, thread, why);
    }
    if (own->words[MAPPED])
        munmap(chunk_of(own), own->words[MAPPED]);
    if (own->words[ANCHOR])
        munmap((void *)(uintptr_t)own->words[ANCHOR], ctx->words[PAGE]);
    return code ? code : churn_check_empty(ctx, thread, why);
}

static const ps_param params[] = {
    {.name = "method",
     .kind = PS_CHOICE,
     .choices = method_names,
     .n_choices = N_METHODS,
     .unit = "",
     .help =
         "munmap; dontneed, free: MADV_DONTNEED, MADV_FREE, the mapping stays; mremap: shrunk to "
         "one page, grown again; heap: malloc and free; pool: nothing, the memory is kept"},
    {.name = "chunk",
     .kind = PS_SIZE,
     .default_value = CHUNK_DEFAULT,
     .min = 4096,
     .max = 1ull << 40,
     .unit = "B",
     .help = "of sizes=fixed, a multiple of the policy's page: what one release gives back"},
    {.name = "sizes",
     .kind = PS_CHOICE,
     .choices = sizes_names,
     .n_choices = PS_COUNT(sizes_names),
     .unit = "",
     .help = "prover: the 22 sizes that one partition of a Groth16 prover frees, the largest as "
             "large as a thread's share of the size allows"},
    {.name = "touched",
     .kind = PS_U64,
     .default_value = 100,
     .min = 1,
     .max = 100,
     .unit = "%",
     .help = "how much of a chunk is written, from its start"},
    {.name = "tables",
     .kind = PS_CHOICE,
     .choices = tables_names,
     .n_choices = PS_COUNT(tables_names),
     .unit = "",
     .help =
         "kept: an anchor page behind the chunk keeps the page tables that they share, as other "
         "mappings nearby do in a program; freed: the chunk has its tables to itself"},
    {.name = "releases",
     .kind = PS_U64,
     .default_value = 0,
     .min = 0,
     .max = 1u << 20,
     .unit = "",
     .help = "in a pass; 0: as many as make 8 MiB, 1 to 256, or the prover's 22"},
};

static const ps_array arrays[] = {{"region", "u1", PS_SCRATCH, PS_PER_THREAD}};
static const ps_variant variants[] = {{.name = "scalar", .step = storm_step}};

const ps_kernel ps_kernel_storm = {
    .name = "storm",
    .summary = "chunks of memory mapped, written and released, one after the other",
    .op = "release",
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
    .fill = fill,
    .work = work,
    .check = check,
    .accepts = accepts,
    .environment = environment,
};
