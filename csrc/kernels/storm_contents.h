/* storm_contents.h - what storm writes into a chunk, and what it must find there. */
#ifndef PS_STORM_CONTENTS_H
#define PS_STORM_CONTENTS_H

#include "storm_sizes.h"

static inline uint64_t repeated(uint64_t byte)
{
    return byte * 0x0101010101010101u;
}

static inline void note_wrong(ps_thread *own, uint64_t at, uint64_t saw)
{
    if (own->words[WRONG]++)
        return;
    own->words[WRONG_CHUNK] = own->words[MADE];
    own->words[WRONG_AT] = at;
    own->words[WRONG_SAW] = saw;
}

/* What the method promises of one word of a page that has just come, or come back. The store next
 * to it brings the page in: a load would map the shared page of zeros, and the fill fault again. */
static inline void look_at_fresh(const ps_ctx *ctx, ps_thread *own, uint64_t page_at,
                                 uint64_t random)
{
    volatile uint64_t *words = (uint64_t *)(void *)((char *)chunk_of(own) + page_at);
    uint64_t k = random % (ctx->words[PAGE] / 8);
    int contents = method_of(ctx, METHOD)->contents;
    if (!own->words[MADE] && contents != HOLDS_ANYTHING)
        contents = HOLDS_ZEROS;
    else if (ctx->values[METHOD].number == MREMAP && page_at < ps_policy_page(ctx->policy))
        contents = HOLDS_OLD; /* the page that is kept */
    words[k ^ 1] = random;
    uint64_t saw = words[k];
    bool right = (contents & HOLDS_ANYTHING) || ((contents & HOLDS_ZEROS) && !saw) ||
                 ((contents & HOLDS_OLD) && saw == repeated(own->words[PATTERN]));
    if (!right)
        note_wrong(own, page_at + 8 * k, saw);
}

static inline void fill_chunk(const ps_ctx *ctx, ps_thread *own, uint64_t bytes)
{
    uint64_t page = ctx->words[PAGE], filled = filled_bytes(ctx, bytes);
    uint64_t random = ps_hash(ctx->seed, own->words[MADE]);
    /* A page that the chunk before has filled, so that it is known what it held. */
    uint64_t both = own->words[MADE] && own->words[FILLED] < filled ? own->words[FILLED] : filled;
    uint64_t sample = random % (both / page) * page;
    unsigned char pattern = (unsigned char)(own->words[MADE] % 251 + 1);
    for (uint64_t at = 0; at < filled; at += page) {
        if (at == sample)
            look_at_fresh(ctx, own, at, random >> 32);
        memset((char *)chunk_of(own) + at, pattern, page);
    }
    own->words[CHUNK_BYTES] = bytes;
    own->words[FILLED] = filled;
    own->words[PATTERN] = pattern;
}

/* Keeps the engine's evidence: bytes that came by faults, and what is held until the next step. */
static inline void account(const ps_ctx *ctx, ps_thread *own)
{
    uint64_t page = ps_policy_page(ctx->policy), method = ctx->values[METHOD].number;
    uint64_t in_pages = ps_round_up(own->words[FILLED], page);
    if (method == HEAP) { /* whole pages inside; which of them are fresh, malloc does not say */
        uint64_t start = ps_round_up(own->words[CHUNK], page);
        uint64_t end = (own->words[CHUNK] + own->words[FILLED]) / page * page;
        churn_hold(own, (void *)(uintptr_t)start, end > start ? end - start : 0);
        return;
    }
    if (method_of(ctx, METHOD)->keeps_pages) {
        if (in_pages > own->words[TOUCHED]) {
            own->touched_bytes += in_pages - own->words[TOUCHED];
            own->words[TOUCHED] = in_pages;
        }
    } else {
        own->touched_bytes += in_pages - (method == MREMAP && own->words[MADE] ? page : 0);
    }
    churn_hold(own, chunk_of(own), in_pages);
}

static inline int check_held(const ps_ctx *ctx, const ps_thread *own, uint32_t thread, char *why)
{
    uint64_t want = own->steps + (ctx->values[METHOD].number == HEAP);
    if (own->words[MADE] != want)
        return ps_refuse(why, EBADMSG, "thread %u made %llu chunks, not %llu", thread,
                         (unsigned long long)own->words[MADE], (unsigned long long)want);
    if (own->words[WRONG])
        return ps_refuse(why, EBADMSG,
                         "%llu chunks of thread %u held what method=%s does not promise: number "
                         "%llu had %#llx at %llu",
                         (unsigned long long)own->words[WRONG], thread,
                         method_of(ctx, METHOD)->name, (unsigned long long)own->words[WRONG_CHUNK],
                         (unsigned long long)own->words[WRONG_SAW],
                         (unsigned long long)own->words[WRONG_AT]);
    if (!own->words[MADE])
        return 0;
    uint64_t at =
        churn_first_other(chunk_of(own), own->words[FILLED], (unsigned char)own->words[PATTERN]);
    if (at < own->words[FILLED])
        return ps_refuse(why, EBADMSG, "byte %llu of the last chunk of thread %u is not %llu",
                         (unsigned long long)at, thread, (unsigned long long)own->words[PATTERN]);
    return 0;
}

/* What is left once the last chunk was released, where the method says. */
static inline int check_released(const ps_ctx *ctx, const ps_thread *own, uint32_t thread,
                                 char *why)
{
    uint64_t method = ctx->values[METHOD].number;
    if (method != DONTNEED && method != POOL)
        return 0;
    unsigned char want = method == POOL ? (unsigned char)own->words[PATTERN] : 0;
    uint64_t at = churn_first_other(chunk_of(own), own->words[FILLED], want);
    if (at < own->words[FILLED])
        return ps_refuse(why, EBADMSG, "byte %llu of thread %u is not %u after method=%s",
                         (unsigned long long)at, thread, want, method_of(ctx, METHOD)->name);
    return 0;
}

#endif
