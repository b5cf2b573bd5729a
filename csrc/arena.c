/* Layout, mapping, NUMA binding and evidence of an actor's arrays. */
#include "arena.h"

#include <fcntl.h>
#include <linux/mempolicy.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "internal.h"

/* Regions of churn kernels are this far apart and aligned to at least this, so that no two share a
 * page table. */
#define REGION_GAP (2ull << 20)

/* ---- inputs ------------------------------------------------------------------------------- */

static int open_input(ps_value *value, char *why)
{
    int fd = open(value->path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) < 0) {
        int code = errno;
        if (fd >= 0)
            close(fd);
        return ps_refuse(why, code, "cannot open %s: %s", value->path, strerror(code));
    }
    if (status.st_size == 0) {
        close(fd);
        return ps_refuse(why, EINVAL, "%s is empty", value->path);
    }
    void *data = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    int code = errno;
    close(fd);
    if (data == MAP_FAILED)
        return ps_refuse(why, code, "cannot map %s: %s", value->path, strerror(code));
    value->data = data;
    value->data_bytes = (uint64_t)status.st_size;
    return 0;
}

int ps_place_open(ps_place *place, const ps_actor *actor, uint32_t first, uint32_t n, char *why)
{
    const ps_kernel *kernel = actor->kernel;
    memset(place, 0, sizeof *place);
    place->actor = actor;
    place->first = first;
    place->n = n;
    place->values = calloc(kernel->n_params + 1u, sizeof *place->values);
    ps_thread *threads = aligned_alloc(64, ps_round_up(actor->n_threads * sizeof(ps_thread), 64));
    if (!place->values || !threads) {
        free(threads);
        return ps_refuse(why, ENOMEM, "no memory for the context of %s", kernel->name);
    }
    memset(threads, 0, actor->n_threads * sizeof(ps_thread));
    place->ctx = (ps_ctx){
        .kernel = kernel,
        .variant = &kernel->variants[actor->variant],
        .policy = actor->policy,
        .values = place->values,
        .size_bytes = actor->size_bytes,
        .seed = actor->seed,
        .n_threads = actor->n_threads,
        .pace_bytes_per_s = actor->pace_bytes_per_s,
        .threads = threads,
    };
    for (uint32_t i = 0; i < kernel->n_params; i++) {
        place->values[i] = actor->values[i];
        if (kernel->params[i].kind == PS_FILE && actor->values[i].path) {
            int code = open_input(&place->values[i], why);
            if (code)
                return code;
        }
    }
    return kernel->layout(&place->ctx, place->ctx.bytes, why);
}

/* ---- layout ------------------------------------------------------------------------------- */

/* Where array k of a run of arrays starts: starts differ modulo 4 KiB by 2 KiB plus an odd multiple
 * of 64 B, so that loads of one array do not alias stores to another. */
static uint64_t place_at(uint64_t offset, uint32_t k, bool aligned)
{
    uint64_t stagger = aligned ? 0 : k * (2048u + 3u * 64u) % 4096u;
    uint64_t start = offset / 4096u * 4096u + stagger;
    return start < offset ? start + 4096u : start;
}

static int32_t node_of(const ps_actor *actor, uint32_t thread)
{
    return actor->nodes ? actor->nodes[thread] : -1;
}

static ps_segment *segment_for(ps_arena *arena, int32_t node)
{
    for (uint32_t i = 0; i < arena->n_segments; i++)
        if (arena->segments[i].node == node)
            return &arena->segments[i];
    if (arena->n_segments == PS_NODES)
        return NULL;
    arena->segments[arena->n_segments] = (ps_segment){.node = node};
    return &arena->segments[arena->n_segments++];
}

static bool in_arena(const ps_kernel *kernel, uint32_t array)
{
    return kernel->memory == PS_ARENA || array > 0;
}

/* One walk serves both uses: without `map` it only counts, with it the segments are mapped and it
 * hands out pointers. */
static int lay_out(ps_place *place, bool point, char *why)
{
    ps_ctx *ctx = &place->ctx;
    const ps_kernel *kernel = place->actor->kernel;
    ps_arena *arena = &place->arena;
    for (uint32_t i = 0; i < arena->n_segments; i++)
        arena->segments[i].used_bytes = 0;
    uint32_t k = 0;
    for (uint32_t t = place->first; t < place->first + place->n; t++) {
        ps_segment *segment = segment_for(arena, node_of(place->actor, t));
        if (!segment)
            return ps_refuse(why, EINVAL, "more than %d NUMA nodes", PS_NODES);
        for (uint32_t a = 0; a < kernel->n_arrays; a++) {
            if (kernel->arrays[a].extent != PS_PER_THREAD || !in_arena(kernel, a) || !ctx->bytes[a])
                continue;
            uint64_t start = place_at(segment->used_bytes, k++, place->actor->aligned);
            if (point)
                ctx->threads[t].arrays[a] = segment->start + start;
            segment->used_bytes = start + ctx->bytes[a];
        }
    }
    bool several = arena->n_segments > 1;
    for (uint32_t a = 0; a < kernel->n_arrays; a++) {
        if (kernel->arrays[a].extent != PS_PER_ACTOR || !in_arena(kernel, a) || !ctx->bytes[a])
            continue;
        /* On one node shared arrays join the threads' segment: a second one would cost a whole page
         * of 1 GiB. On several they are interleaved, in a segment of their own. */
        ps_segment *segment = several ? segment_for(arena, -1) : &arena->segments[0];
        if (!segment)
            return ps_refuse(why, EINVAL, "more than %d NUMA nodes", PS_NODES);
        uint64_t start = place_at(segment->used_bytes, k++, place->actor->aligned);
        if (point)
            for (uint32_t t = 0; t < ctx->n_threads; t++)
                ctx->threads[t].arrays[a] = segment->start + start;
        segment->used_bytes = start + ctx->bytes[a];
    }
    return 0;
}

/* ---- mapping ------------------------------------------------------------------------------ */

static int bind(const ps_place *place, const ps_segment *segment)
{
    unsigned long mask[1024 / (8 * sizeof(unsigned long))] = {0};
    const unsigned bits = 8 * sizeof(unsigned long);
    if (!place->actor->nodes)
        return 0;
    for (uint32_t t = 0; t < place->actor->n_threads; t++) {
        uint32_t node = (uint32_t)place->actor->nodes[t];
        if ((segment->node < 0 || node == (uint32_t)segment->node) && node < 1024)
            mask[node / bits] |= 1ul << (node % bits);
    }
    /* One call a segment: many small ones were seen to scatter pages. */
    long rc = syscall(SYS_mbind, segment->start, segment->mapped_bytes,
                      segment->node < 0 ? MPOL_INTERLEAVE : MPOL_BIND, mask, 1024ul,
                      (unsigned long)MPOL_MF_STRICT);
    return rc < 0 ? errno : 0;
}

/* Where nobody maps by chance: far below the kernel's own choice (top down from the stack, or up
 * from a quarter or third of the address space), above AddressSanitizer's shadow. The second is for
 * address spaces of 39 bits. In the midst of other mappings the regions, while nothing is in them,
 * would be the first gap that an mmap() of anybody else in the process is given. */
static const uint64_t region_areas[] = {32ull << 40, 32ull << 30};
#define REGION_TRIES 64u

static char *reserve(uint64_t bytes)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    for (uint32_t area = 0; area < PS_COUNT(region_areas); area++)
        for (uint64_t i = 0; i < REGION_TRIES; i++) {
            char *where =
                (char *)(uintptr_t)(region_areas[area] + i * ps_round_up(bytes, 1ull << 30));
            char *got = mmap(where, bytes, PROT_NONE, flags | MAP_FIXED_NOREPLACE, -1, 0);
            if (got == where)
                return got;
            if (got != MAP_FAILED)
                munmap(got, bytes);
            else if (errno != EEXIST)
                break;
        }
    char *anywhere = mmap(NULL, bytes, PROT_NONE, flags, -1, 0);
    return anywhere == MAP_FAILED ? NULL : anywhere;
}

static int reserve_regions(ps_place *place, char *why)
{
    ps_ctx *ctx = &place->ctx;
    uint64_t align = ps_policy_page(ctx->policy);
    align = align > REGION_GAP ? align : REGION_GAP;
    uint64_t each = ps_round_up(ctx->bytes[0], align) + align; /* a gap after each */
    place->arena.regions_bytes = each * place->n + 2 * align;
    place->arena.regions = reserve(place->arena.regions_bytes);
    if (!place->arena.regions)
        return ps_refuse(why, errno, "cannot reserve %llu bytes of address space",
                         (unsigned long long)place->arena.regions_bytes);
    char *start = (char *)ps_round_up((uint64_t)place->arena.regions + align, align);
    for (uint32_t i = 0; i < place->n; i++)
        ctx->threads[place->first + i].arrays[0] = start + i * each;
    return 0;
}

int ps_place_arrays(ps_place *place, bool map, char *why)
{
    ps_ctx *ctx = &place->ctx;
    ps_arena *arena = &place->arena;
    uint64_t page = ps_policy_page(ctx->policy);
    int code = lay_out(place, false, why);
    if (code)
        return code;
    for (uint32_t i = 0; i < arena->n_segments; i++)
        arena->segments[i].mapped_bytes = ps_round_up(arena->segments[i].used_bytes, page);
    if (!map)
        return 0;
    for (uint32_t i = 0; i < arena->n_segments; i++) {
        ps_segment *segment = &arena->segments[i];
        void *start = NULL;
        if (!segment->mapped_bytes)
            continue;
        code = ctx->policy->map(ctx->policy, NULL, segment->mapped_bytes, &start);
        if (code)
            return ps_refuse(why, code, "cannot map %llu bytes with page policy %s: %s",
                             (unsigned long long)segment->mapped_bytes, ctx->policy->name,
                             strerror(code));
        segment->start = start;
        code = bind(place, segment);
        if (code)
            return ps_refuse(
                why, code, "cannot bind memory to node %d: %s%s", segment->node, strerror(code),
                code == EPERM ? "; containers forbid it: docker run --cap-add SYS_NICE" : "");
    }
    code = ctx->kernel->memory == PS_CHURN ? reserve_regions(place, why) : 0;
    if (!code)
        code = lay_out(place, true, why);
    if (!code && place->n < ctx->n_threads) {
        /* A split actor fills shares of other threads too: they alias its own arrays. */
        const ps_thread *own = &ctx->threads[place->first];
        for (uint32_t t = 0; t < ctx->n_threads; t++)
            if (t != place->first)
                memcpy(ctx->threads[t].arrays, own->arrays, sizeof own->arrays);
    }
    return code;
}

/* ---- touching and evidence ---------------------------------------------------------------- */

/* Leaves contents as they are: a thread that was quicker may already have filled its share of a
 * shared array, and shares need not end where pages do. */
static void touch_range(char *start, uint64_t bytes)
{
    uint64_t page = ps_base_page();
    if (!bytes)
        return;
    for (char *at = start; at < start + bytes; at += page)
        __atomic_fetch_add(at, 0, __ATOMIC_RELAXED);
    __atomic_fetch_add(start + bytes - 1, 0, __ATOMIC_RELAXED);
}

void ps_place_touch(ps_place *place, uint32_t thread)
{
    ps_ctx *ctx = &place->ctx;
    bool split = place->n < ctx->n_threads;
    for (uint32_t a = 0; a < ctx->kernel->n_arrays; a++) {
        if (!in_arena(ctx->kernel, a) || !ctx->bytes[a])
            continue;
        char *start = ctx->threads[thread].arrays[a];
        if (ctx->kernel->arrays[a].extent == PS_PER_THREAD || split) {
            touch_range(start, ctx->bytes[a]);
            continue;
        }
        uint64_t first, last;
        ps_share(ctx, thread, ctx->bytes[a], ps_base_page(), &first, &last);
        touch_range(start + first, last - first);
    }
}

/* Bytes on another node than bound to, and bytes of which that cannot be told (move_pages is
 * forbidden, as in containers, or a page is not present), from a sample of the segment's pages. */
static void check_nodes(const ps_segment *segment, ps_evidence *out)
{
    enum { SAMPLES = 256 };
    void *pages[SAMPLES];
    int status[SAMPLES];
    uint64_t page = ps_base_page(), n_pages = ps_round_up(segment->used_bytes, page) / page;
    unsigned long n = n_pages < SAMPLES ? n_pages : SAMPLES, wrong = 0, unknown = 0;
    if (segment->node < 0 || !n)
        return;
    for (unsigned long i = 0; i < n; i++)
        pages[i] = segment->start + i * (n_pages / n) * page;
    bool told = syscall(SYS_move_pages, 0, n, pages, NULL, status, 0) >= 0;
    for (unsigned long i = 0; i < n; i++) {
        unknown += !told || status[i] < 0;
        wrong += told && status[i] >= 0 && status[i] != segment->node;
    }
    out->wrong_node_bytes = segment->mapped_bytes / n * wrong;
    /* All of them exactly: no verdict is made of what is wholly unknown. */
    out->unknown_node_bytes =
        unknown == n ? segment->mapped_bytes : segment->mapped_bytes / n * unknown;
}

static int refuse_evidence(const ps_policy *policy, int code, char *why)
{
    return ps_refuse(why, code, "cannot read the evidence for page policy %s: %s", policy->name,
                     strerror(code));
}

void ps_evidence_add(ps_evidence *sum, const ps_evidence *one)
{
    sum->matching_bytes += one->matching_bytes;
    sum->known_bytes += one->known_bytes;
    sum->total_bytes += one->total_bytes;
    sum->wrong_node_bytes += one->wrong_node_bytes;
    sum->unknown_node_bytes += one->unknown_node_bytes;
    if (one->source[0])
        memcpy(sum->source, one->source, sizeof sum->source);
}

int ps_place_evidence(ps_place *place, ps_evidence *out, char *why)
{
    const ps_policy *policy = place->ctx.policy;
    memset(out, 0, sizeof *out);
    for (uint32_t i = 0; i < place->arena.n_segments; i++) {
        const ps_segment *segment = &place->arena.segments[i];
        ps_evidence one = {0};
        if (!segment->start)
            continue;
        int code = policy->evidence(policy, segment->start, segment->mapped_bytes, &one);
        if (code)
            return refuse_evidence(policy, code, why);
        check_nodes(segment, &one);
        ps_evidence_add(out, &one);
    }
    return 0;
}

int ps_place_free_regions(ps_place *place, char *why)
{
    for (uint32_t i = 0; i < place->n && place->ctx.bytes[0]; i++)
        if (munmap(place->ctx.threads[place->first + i].arrays[0],
                   ps_round_up(place->ctx.bytes[0], ps_base_page())) < 0)
            return ps_refuse(why, errno, "cannot free a reserved region: %s", strerror(errno));
    return 0;
}

int ps_place_live_evidence(ps_place *place, ps_evidence *out, char *why)
{
    const ps_policy *policy = place->ctx.policy;
    memset(out, 0, sizeof *out);
    for (uint32_t i = 0; i < place->n; i++) {
        const ps_thread *thread = &place->ctx.threads[place->first + i];
        ps_evidence one = {0};
        if (!thread->live)
            continue;
        int code = policy->evidence(policy, thread->live, thread->live_bytes, &one);
        if (code)
            return refuse_evidence(policy, code, why);
        ps_evidence_add(out, &one);
    }
    return 0;
}

int ps_place_chunk_evidence(ps_place *place, uint64_t chunk_bytes, ps_evidence *out, char *why)
{
    const ps_policy *policy = place->ctx.policy;
    uint64_t bytes = ps_round_up(chunk_bytes, ps_policy_page(policy));
    void *chunk = NULL;
    memset(out, 0, sizeof *out);
    int code = policy->map(policy, place->ctx.threads[place->first].arrays[0], bytes, &chunk);
    if (code)
        return ps_refuse(why, code, "cannot map a chunk of %llu bytes with page policy %s: %s",
                         (unsigned long long)bytes, policy->name, strerror(code));
    touch_range(chunk, bytes);
    code = policy->evidence(policy, chunk, bytes, out);
    munmap(chunk, bytes);
    return code ? refuse_evidence(policy, code, why) : 0;
}

void ps_fault_evidence(const ps_policy *policy, uint64_t touched_bytes, uint64_t faults,
                       ps_evidence *out)
{
    /* faults = f T/page + (1 - f) T/other; other is what the bytes would have come by instead. */
    double page = (double)ps_policy_page(policy), base = (double)ps_base_page();
    double other = page > base ? base : (double)(2u << 20);
    double touched = (double)touched_bytes;
    memset(out, 0, sizeof *out);
    if (!touched_bytes)
        return;
    double share = ((double)faults / touched - 1 / other) / (1 / page - 1 / other);
    share = share < 0 ? 0 : share > 1 ? 1 : share;
    out->total_bytes = out->known_bytes = touched_bytes;
    out->matching_bytes = (uint64_t)(share * touched);
    snprintf(out->source, sizeof out->source, "minflt");
}

void ps_place_close(ps_place *place)
{
    for (uint32_t i = 0; i < place->arena.n_segments; i++)
        if (place->arena.segments[i].start)
            munmap(place->arena.segments[i].start, place->arena.segments[i].mapped_bytes);
    if (place->arena.regions)
        munmap(place->arena.regions, place->arena.regions_bytes);
    /* Not by way of the actor, which may be gone; no kernel: nothing was opened. */
    const ps_kernel *kernel = place->ctx.kernel;
    if (place->values)
        for (uint32_t i = 0; kernel && i < kernel->n_params; i++)
            if (place->values[i].data)
                munmap((void *)(uintptr_t)place->values[i].data, place->values[i].data_bytes);
    free(place->values);
    free(place->ctx.threads);
    memset(place, 0, sizeof *place);
}

static int accepts(const ps_place *place, char *why)
{
    const ps_kernel *kernel = place->ctx.kernel;
    return kernel->accepts ? kernel->accepts(&place->ctx, place->ctx.policy, why) : 0;
}

int ps_place_accepts(const ps_place *place, char *why)
{
    char needed[PS_WHY] = "";
    int code = accepts(place, why);
    if (code || !place->ctx.kernel->environment)
        return code;
    place->ctx.kernel->environment(&place->ctx, place->ctx.policy, needed);
    char *value = strchr(needed, '=');
    if (!value)
        return 0;
    *value++ = '\0';
    const char *found = getenv(needed);
    if (!strcmp(found ? found : "", value))
        return 0;
    return ps_refuse(why, ENOTSUP, "%s with page policy %s needs a process started with %s=%s",
                     place->ctx.kernel->name, place->ctx.policy->name, needed, value);
}

int ps_accepts(const ps_actor *actor, char *why)
{
    ps_place place = {0};
    why[0] = '\0';
    int code = ps_place_open(&place, actor, 0, actor->n_threads, why);
    if (!code)
        code = accepts(&place, why);
    ps_place_close(&place);
    return code;
}

int ps_plan_effort(const ps_actor *actor, ps_effort *effort, char *why)
{
    ps_place place = {0};
    why[0] = '\0';
    int code = ps_place_open(&place, actor, 0, actor->n_threads, why);
    *effort = code ? (ps_effort){0} : place.ctx.effort;
    ps_place_close(&place);
    return code;
}

int ps_environment(const ps_actor *actor, char *out, char *why)
{
    ps_place place = {0};
    why[0] = out[0] = '\0';
    int code = ps_place_open(&place, actor, 0, actor->n_threads, why);
    if (!code && actor->kernel->environment)
        actor->kernel->environment(&place.ctx, actor->policy, out);
    ps_place_close(&place);
    return code;
}

int ps_plan_actor(const ps_actor *actor, uint64_t *used, uint64_t *mapped, uint32_t *n_nodes,
                  char *why)
{
    ps_place place = {0};
    why[0] = '\0';
    *n_nodes = 0;
    int code = ps_place_open(&place, actor, 0, actor->n_threads, why);
    if (!code)
        code = ps_place_arrays(&place, false, why);
    if (!code)
        for (uint32_t i = 0; i < place.arena.n_segments; i++) {
            used[i] = place.arena.segments[i].used_bytes;
            mapped[i] = place.arena.segments[i].mapped_bytes;
        }
    if (!code)
        *n_nodes = place.arena.n_segments;
    if (!code && actor->kernel->memory == PS_CHURN) {
        uint64_t page = ps_policy_page(actor->policy);
        uint64_t live = place.ctx.live_bytes ? place.ctx.live_bytes : place.ctx.bytes[0];
        used[0] += live * actor->n_threads;
        mapped[0] += ps_round_up(live, page) * actor->n_threads;
        *n_nodes = *n_nodes ? *n_nodes : 1;
    }
    ps_place_close(&place);
    return code;
}
