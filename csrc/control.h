/*
 * control.h - the control block every thread and process of a mix shares: barriers, pools, the
 * window, and the first error. It lies in one shared anonymous mapping made before any fork, so the
 * same code runs one address space or several. No function allocates or prints.
 */
#ifndef PS_CONTROL_H
#define PS_CONTROL_H

#include <stdatomic.h>

#include "pagestorm.h"

#define PS_PRIORITIES 8
/* Longest sleep of a thread that waits for another: bounds how late it notices the window's end or
 * an error. Such a thread is idle, so waking it costs the others nothing. */
#define PS_NAP_NS 5000000u

typedef struct {
    _Alignas(64) _Atomic uint32_t arrived;
    _Alignas(64) _Atomic uint32_t generation;
    uint32_t n;
} ps_barrier;

typedef struct {
    _Alignas(64) _Atomic uint32_t tokens;
    uint32_t capacity; /* 0: unbounded */
    bool fair;
    _Atomic uint32_t waiters;
    /* Fair: numbers drawn, and the number that is next, of each priority. */
    _Atomic uint32_t drawn[PS_PRIORITIES], served[PS_PRIORITIES];
    _Atomic uint64_t wait_ns, takes, puts, blocked; /* as in ps_pool_result */
    uint32_t stuck; /* of waiters, when the deadline passed */
} ps_pool_state;

/* Joined actors: what the leader tells the team, and the pass log. */
typedef struct {
    _Alignas(64) _Atomic uint64_t ticket;
    _Alignas(64) ps_barrier barrier;
    uint32_t stop;
    _Atomic uint32_t broken; /* somebody left the current pass before its end */
    uint64_t last_end_ns; /* of the newest pass; the start of the run before the first */
    uint64_t base_ns; /* end of the pass before the first counted one */
    uint64_t counted_end_ns;
    uint64_t counted; /* passes that ended in the window */
    uint64_t active_ns; /* first ticket to join, of the counted ones */
} ps_team;

/* What one process adds about one actor. */
typedef struct {
    uint64_t mapped_bytes, used_bytes;
    ps_evidence before, after;
} ps_report;

typedef struct {
    /* First error of any thread; 0: none. Whoever stored its process in `claimed` writes why and
     * stage, then code: they are whole once code is seen. */
    _Atomic uint32_t code;
    _Atomic uint32_t claimed;
    char why[PS_WHY];
    char stage[16];

    _Alignas(64) _Atomic uint64_t open_ns; /* 0: the window has not opened */
    _Atomic uint64_t close_ns; /* 0: not closed */
    _Atomic uint32_t ended; /* futex word: 1 once closed or failed */
    _Atomic uint32_t unsatisfied; /* measured units that still owe passes */
    _Atomic uint32_t cold; /* that still owe passes before the window opens */
    uint64_t window_ns;
    bool fixed;

    bool any_courtesy;
    _Alignas(64) _Atomic uint32_t active[PS_PRIORITIES];

    ps_barrier sync; /* every thread and every process's main thread */
    uint32_t n_actors, n_pools, n_threads, n_processes;
    ps_team *teams; /* n_actors */
    ps_pool_state *pools; /* n_pools */
    ps_report *reports; /* n_processes x n_actors */
    ps_work *works; /* n_actors; set once filled */
    ps_thread_result *threads; /* n_threads */
    uint64_t *touch_ns, *fill_ns; /* n_threads */
    uint64_t log_room; /* events of each script; 0: no log */
    uint64_t *logged; /* by script; more than log_room: the rest is lost */
    ps_event *events; /* log_room for each script */
    uint64_t bytes; /* of the mapping */
} ps_control;

/* Whether the threads of an actor run one script together. */
static inline bool ps_joins(const ps_actor *actor)
{
    return actor->joined || actor->kernel->sharing == PS_TEAM;
}
/* Scripts of the actors before this one: the number of an actor's first script. Of all actors:
 * scripts of the mix. */
static inline uint32_t ps_first_script(const ps_mix *mix, uint32_t actor)
{
    uint32_t n = 0;
    for (uint32_t a = 0; a < actor; a++)
        n += ps_joins(&mix->actors[a]) ? 1 : mix->actors[a].n_threads;
    return n;
}

ps_control *ps_control_make(const ps_mix *mix, uint32_t n_threads, uint32_t n_processes);
void ps_control_free(ps_control *control);

/* Record the first error and wake everyone. Returns code. */
int ps_control_fail(ps_control *control, int code, const char *stage, const char *why);
/* A process that died cannot finish what it was recording: another error may take its place. */
void ps_control_disown(ps_control *control, int process);
static inline int ps_control_code(ps_control *control)
{
    return (int)atomic_load_explicit(&control->code, memory_order_acquire);
}
static inline bool ps_control_ended(ps_control *control)
{
    return atomic_load_explicit(&control->ended, memory_order_acquire) != 0;
}

/* Close the window at `now` if nobody has; wakes everyone. */
void ps_control_close(ps_control *control, uint64_t now);
/* Close it if its time is over and every measured actor has made its passes. */
void ps_control_try_close(ps_control *control, uint64_t now);

/* Wait for all n parties. ECANCELED where the run failed meanwhile. */
int ps_barrier_wait(ps_control *control, ps_barrier *barrier);
/* The same, calling idle(argument) now and then while asleep. */
int ps_barrier_wait_idle(ps_control *control, ps_barrier *barrier, void (*idle)(void *),
                         void *argument);

/* Sleep until the run ends, at most `ns`. */
void ps_control_nap(ps_control *control, uint64_t ns);

/* Take or put tokens; waits. false where the run ended first. *waits_since: when the wait began,
 * unchanged where it went through at once. Counts nothing. */
bool ps_pool_take(ps_control *control, ps_pool_state *pool, uint32_t n, uint32_t priority,
                  uint64_t *waits_since);
bool ps_pool_put(ps_control *control, ps_pool_state *pool, uint32_t n, uint64_t *waits_since);

#endif
