/*
 * storm_methods.h - the ways of storm to get memory and to give it back, one row each.
 *
 * A thread has one chunk at a time: map() makes words[CHUNK] point to `bytes` of it, release()
 * gives up words[CHUNK_BYTES]. Both are timed and do nothing else.
 */
#ifndef PS_STORM_METHODS_H
#define PS_STORM_METHODS_H

#include <stdlib.h>

#include "churn.h"

enum method { MUNMAP, DONTNEED, FREE, MREMAP, HEAP, POOL, N_METHODS };

/* ps_ctx.words: base page; releases of a pass; largest and smallest chunk; unit of the prover's. */
enum ctx_word { PAGE, N_RELEASES, LARGEST, SMALLEST, GRAIN };
/* ps_thread.words: the chunk, its length and how much of it is filled with which byte; chunks made;
 * length of a mapping that stays, and how much of it was ever touched; the anchor page; checks that
 * failed: how many, and of the first the chunk's number, offset, and eight bytes found there. */
enum thread_word {
    CHUNK,
    CHUNK_BYTES,
    FILLED,
    PATTERN,
    MADE,
    MAPPED,
    TOUCHED,
    ANCHOR,
    WRONG,
    WRONG_CHUNK,
    WRONG_AT,
    WRONG_SAW
};

/* What a chunk holds before it is filled: zeros, or the bytes of the chunk before. */
enum contents { HOLDS_ZEROS = 1, HOLDS_OLD = 2, HOLDS_ANYTHING = 4 };

typedef struct {
    const char *name;
    int (*map)(const ps_ctx *ctx, ps_thread *own, uint64_t bytes);
    int (*release)(const ps_ctx *ctx, ps_thread *own);
    int contents;
    bool keeps_tables; /* unless an unmapping takes them, which `tables` decides */
    bool keeps_pages; /* a chunk is filled in pages that the thread already has */
} storm_method;

static inline void *chunk_of(const ps_thread *own)
{
    return (void *)(uintptr_t)own->words[CHUNK];
}

static int map_new(const ps_ctx *ctx, ps_thread *own, uint64_t bytes)
{
    void *start;
    int code = ctx->policy->map(ctx->policy, own->arrays[0], bytes, &start);
    if (!code)
        own->words[CHUNK] = (uintptr_t)start;
    return code;
}

static int unmap(const ps_ctx *ctx, ps_thread *own)
{
    (void)ctx;
    return munmap(chunk_of(own), own->words[CHUNK_BYTES]) ? errno : 0;
}

/* The mapping stays, as long as the largest chunk. */
static int map_once(const ps_ctx *ctx, ps_thread *own, uint64_t bytes)
{
    (void)bytes;
    if (own->words[MAPPED])
        return 0;
    int code = map_new(ctx, own, ctx->words[LARGEST]);
    if (!code)
        own->words[MAPPED] = ctx->words[LARGEST];
    return code;
}

static int drop(const ps_ctx *ctx, ps_thread *own)
{
    (void)ctx;
    return madvise(chunk_of(own), own->words[CHUNK_BYTES], MADV_DONTNEED) ? errno : 0;
}

static int offer(const ps_ctx *ctx, ps_thread *own)
{
    (void)ctx;
    return madvise(chunk_of(own), own->words[CHUNK_BYTES], MADV_FREE) ? errno : 0;
}

static int keep(const ps_ctx *ctx, ps_thread *own)
{
    (void)ctx, (void)own;
    return 0;
}

/* In place: nothing lies behind in the thread's region. */
static int resize(ps_thread *own, uint64_t bytes)
{
    if (mremap(chunk_of(own), own->words[MAPPED], bytes, 0) == MAP_FAILED)
        return errno;
    own->words[MAPPED] = bytes;
    return 0;
}

static int grow(const ps_ctx *ctx, ps_thread *own, uint64_t bytes)
{
    if (own->words[MAPPED])
        return resize(own, bytes);
    int code = map_new(ctx, own, bytes);
    if (!code)
        own->words[MAPPED] = bytes;
    return code;
}

static int shrink(const ps_ctx *ctx, ps_thread *own)
{
    return resize(own, ps_policy_page(ctx->policy));
}

static int allocate(const ps_ctx *ctx, ps_thread *own, uint64_t bytes)
{
    (void)ctx;
    void *start = malloc(bytes);
    own->words[CHUNK] = (uintptr_t)start;
    return start ? 0 : ENOMEM;
}

static int deallocate(const ps_ctx *ctx, ps_thread *own)
{
    (void)ctx;
    free(chunk_of(own));
    return 0;
}

static const storm_method methods[N_METHODS] = {
    [MUNMAP] = {"munmap", map_new, unmap, HOLDS_ZEROS, false, false},
    [DONTNEED] = {"dontneed", map_once, drop, HOLDS_ZEROS, true, false},
    [FREE] = {"free", map_once, offer, HOLDS_ZEROS | HOLDS_OLD, true, true},
    [MREMAP] = {"mremap", grow, shrink, HOLDS_ZEROS, false, false},
    [HEAP] = {"heap", allocate, deallocate, HOLDS_ANYTHING, true, false},
    [POOL] = {"pool", map_once, keep, HOLDS_OLD, true, true},
};

static inline const storm_method *method_of(const ps_ctx *ctx, uint64_t number)
{
    return &methods[ctx->values[number].number];
}

#endif
