/* arena.h - where an actor's arrays lie: one segment a NUMA node, arrays of a thread together. */
#ifndef PS_ARENA_H
#define PS_ARENA_H

#include "pagestorm.h"

typedef struct {
    char *start;
    uint64_t used_bytes, mapped_bytes;
    int32_t node; /* -1: interleaved over the actor's nodes, or not bound */
} ps_segment;

typedef struct {
    ps_segment segments[PS_NODES];
    uint32_t n_segments;
    char *regions; /* churn: reserved address space of all threads, or NULL */
    uint64_t regions_bytes;
} ps_arena;

/* Context of an actor: values with their files mapped, sizes laid out, nothing mapped for arrays.
 * `first` and `n` pick the threads of this address space (all, or one of a split actor). */
typedef struct {
    ps_ctx ctx;
    const ps_actor *actor; /* NULL where only kept arrays are left */
    uint32_t first, n;
    ps_arena arena;
    ps_value *values; /* ctx.values */
} ps_place;

/* pre: *place is zero or was closed. */
int ps_place_open(ps_place *place, const ps_actor *actor, uint32_t first, uint32_t n, char *why);
/* Whether the kernel accepts the policy, and this process was started with what it needs then. */
int ps_place_accepts(const ps_place *place, char *why);
/* Sizes of the segments; with `map`, also maps and binds them and sets the threads' pointers. */
int ps_place_arrays(ps_place *place, bool map, char *why);
/* Store once into every base page of the thread's arrays and of its share of per-actor arrays.
 * Raises SIGBUS where the pool or the cgroup cannot give what was mapped. */
void ps_place_touch(ps_place *place, uint32_t thread);
/* Sum of the policy's evidence over all segments. */
int ps_place_evidence(ps_place *place, ps_evidence *out, char *why);
/* Churn kernels: give the reserved address ranges free, once every thread has its stack. Then the
 * evidence of what the threads hold (total_bytes 0 where that is nothing), and of one chunk that is
 * mapped, touched and unmapped again. */
int ps_place_free_regions(ps_place *place, char *why);
int ps_place_live_evidence(ps_place *place, ps_evidence *out, char *why);
int ps_place_chunk_evidence(ps_place *place, uint64_t chunk_bytes, ps_evidence *out, char *why);
/* Evidence of a window's faults: how many bytes came by pages of the policy's size, from bytes
 * touched and minor faults. */
void ps_fault_evidence(const ps_policy *policy, uint64_t touched_bytes, uint64_t faults,
                       ps_evidence *out);
void ps_evidence_add(ps_evidence *sum, const ps_evidence *one);
void ps_place_close(ps_place *place);

#endif
