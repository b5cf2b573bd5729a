/* Barriers, pools and the window on a shared mapping: spin briefly, then futex. */
#include "control.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "internal.h"

/* About a microsecond or two: longer than a line takes between two cores, far shorter than a futex
 * round trip. Where threads outnumber CPUs the spin is wasted once and then they sleep. */
#define SPINS 200

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void futex_wait(_Atomic uint32_t *word, uint32_t seen, uint64_t ns)
{
    struct timespec timeout = {.tv_sec = (time_t)(ns / 1000000000u),
                               .tv_nsec = (long)(ns % 1000000000u)};
    /* Not FUTEX_PRIVATE: the word may be shared between processes. */
    syscall(SYS_futex, word, FUTEX_WAIT, seen, &timeout, NULL, 0);
}

static void futex_wake_all(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

ps_control *ps_control_make(const ps_mix *mix, uint32_t n_threads, uint32_t n_processes)
{
    uint64_t teams = ps_round_up(sizeof(ps_control), 64);
    uint64_t pools = teams + mix->n_actors * sizeof(ps_team);
    uint64_t reports = pools + mix->n_pools * sizeof(ps_pool_state);
    uint64_t works = reports + (uint64_t)n_processes * mix->n_actors * sizeof(ps_report);
    uint64_t threads = works + mix->n_actors * sizeof(ps_work);
    uint64_t times = threads + n_threads * sizeof(ps_thread_result);
    uint64_t logged = times + 2 * n_threads * sizeof(uint64_t);
    uint32_t n_scripts = mix->log_events ? ps_first_script(mix, mix->n_actors) : 0;
    uint64_t room = n_scripts ? mix->log_events / n_scripts : 0;
    uint64_t events = ps_round_up(logged + n_scripts * sizeof(uint64_t), 64);
    uint64_t bytes = ps_round_up(events + n_scripts * room * sizeof(ps_event), 4096);
    char *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return NULL;
    ps_control *control = (ps_control *)base;
    control->bytes = bytes;
    control->teams = (ps_team *)(base + teams);
    control->pools = (ps_pool_state *)(base + pools);
    control->reports = (ps_report *)(base + reports);
    control->works = (ps_work *)(base + works);
    control->threads = (ps_thread_result *)(base + threads);
    control->touch_ns = (uint64_t *)(base + times);
    control->fill_ns = control->touch_ns + n_threads;
    control->log_room = room;
    control->logged = (uint64_t *)(base + logged);
    control->events = (ps_event *)(base + events);
    control->n_actors = mix->n_actors;
    control->n_pools = mix->n_pools;
    control->n_threads = n_threads;
    control->n_processes = n_processes;
    control->window_ns = mix->window_ns;
    control->fixed = mix->fixed_passes > 0;
    control->sync.n = n_threads + n_processes;
    for (uint32_t i = 0; i < mix->n_pools; i++) {
        atomic_init(&control->pools[i].tokens, mix->pools[i].tokens);
        control->pools[i].capacity = mix->pools[i].capacity;
        control->pools[i].fair = mix->pools[i].fair;
    }
    return control;
}

void ps_control_free(ps_control *control)
{
    munmap(control, control->bytes);
}

static void end(ps_control *control)
{
    atomic_store_explicit(&control->ended, 1, memory_order_release);
    futex_wake_all(&control->ended);
    for (uint32_t i = 0; i < control->n_pools; i++)
        futex_wake_all(&control->pools[i].tokens);
}

int ps_control_fail(ps_control *control, int code, const char *stage, const char *why)
{
    uint32_t nobody = 0;
    if (!atomic_compare_exchange_strong(&control->claimed, &nobody, (uint32_t)getpid()))
        return code; /* the first to fail wakes everyone once its reason can be read */
    snprintf(control->stage, sizeof control->stage, "%s", stage);
    snprintf(control->why, sizeof control->why, "%s", why);
    atomic_store_explicit(&control->code, (uint32_t)code, memory_order_release);
    end(control);
    futex_wake_all(&control->sync.generation);
    for (uint32_t i = 0; i < control->n_actors; i++)
        futex_wake_all(&control->teams[i].barrier.generation);
    return code;
}

void ps_control_disown(ps_control *control, int process)
{
    uint32_t claimant = (uint32_t)process;
    if (!ps_control_code(control))
        atomic_compare_exchange_strong(&control->claimed, &claimant, 0);
}

void ps_control_close(ps_control *control, uint64_t now)
{
    uint64_t open = 0;
    if (atomic_compare_exchange_strong(&control->close_ns, &open, now))
        end(control);
}

void ps_control_try_close(ps_control *control, uint64_t now)
{
    uint64_t open = atomic_load_explicit(&control->open_ns, memory_order_acquire);
    if (open && !control->fixed && now >= open + control->window_ns &&
        atomic_load_explicit(&control->unsatisfied, memory_order_relaxed) == 0)
        ps_control_close(control, now);
}

int ps_barrier_wait(ps_control *control, ps_barrier *barrier)
{
    return ps_barrier_wait_idle(control, barrier, NULL, NULL);
}

int ps_barrier_wait_idle(ps_control *control, ps_barrier *barrier, void (*idle)(void *),
                         void *argument)
{
    uint32_t generation = atomic_load_explicit(&barrier->generation, memory_order_acquire);
    if (atomic_fetch_add_explicit(&barrier->arrived, 1, memory_order_acq_rel) + 1 == barrier->n) {
        atomic_store_explicit(&barrier->arrived, 0, memory_order_relaxed);
        atomic_fetch_add_explicit(&barrier->generation, 1, memory_order_release);
        futex_wake_all(&barrier->generation);
        return ps_control_code(control) ? ECANCELED : 0;
    }
    for (uint32_t spins = 0;; spins++) {
        if (atomic_load_explicit(&barrier->generation, memory_order_acquire) != generation)
            return ps_control_code(control) ? ECANCELED : 0;
        if (ps_control_code(control))
            return ECANCELED;
        if (spins < SPINS) {
            relax();
            continue;
        }
        futex_wait(&barrier->generation, generation, 100000000u);
        if (idle)
            idle(argument);
    }
}

void ps_control_nap(ps_control *control, uint64_t ns)
{
    if (!ps_control_ended(control))
        futex_wait(&control->ended, 0, ns);
}

/* One attempt to add (put) or remove (take) n tokens. */
static bool pool_move(ps_pool_state *pool, uint32_t n, bool put)
{
    uint32_t tokens = atomic_load_explicit(&pool->tokens, memory_order_acquire);
    for (;;) {
        if (put ? pool->capacity && tokens + n > pool->capacity : tokens < n)
            return false;
        /* Sequentially consistent: who moves tokens and then sees no waiters was seen by them. */
        if (atomic_compare_exchange_weak(&pool->tokens, &tokens, put ? tokens + n : tokens - n))
            return true;
    }
}

/* Who comes when at a fair pool. */
typedef struct {
    ps_pool_state *pool;
    uint32_t priority, number;
} turn;

static bool is_next(const turn *own)
{
    ps_pool_state *pool = own->pool;
    for (uint32_t p = own->priority + 1; p < PS_PRIORITIES; p++)
        if (atomic_load(&pool->served[p]) != atomic_load(&pool->drawn[p]))
            return false;
    return atomic_load(&pool->served[own->priority]) == own->number;
}

/* One attempt; own: NULL where nobody has to wait for his turn. */
static bool pool_try(ps_pool_state *pool, uint32_t n, const turn *own, bool put)
{
    if (!own)
        return pool_move(pool, n, put);
    if (!is_next(own) || !pool_move(pool, n, put))
        return false;
    atomic_fetch_add(&pool->served[own->priority], 1);
    return true;
}

static bool pool_wait(ps_control *control, ps_pool_state *pool, uint32_t n, const turn *own,
                      bool put, uint64_t *waits_since)
{
    bool through = pool_try(pool, n, own, put);
    if (!through) {
        *waits_since = ps_clock_ns();
        atomic_fetch_add(&pool->waiters, 1);
        for (uint32_t spins = 0; !ps_control_ended(control); spins++) {
            uint32_t seen = atomic_load(&pool->tokens);
            through = pool_try(pool, n, own, put);
            if (through)
                break;
            if (spins < SPINS) {
                relax();
                continue;
            }
            futex_wait(&pool->tokens, seen, PS_NAP_NS);
            ps_control_try_close(control, ps_clock_ns());
        }
        atomic_fetch_sub(&pool->waiters, 1);
    }
    if (through && atomic_load(&pool->waiters))
        futex_wake_all(&pool->tokens);
    return through;
}

bool ps_pool_take(ps_control *control, ps_pool_state *pool, uint32_t n, uint32_t priority,
                  uint64_t *waits_since)
{
    turn own = {.pool = pool, .priority = priority};
    if (!pool->fair)
        return pool_wait(control, pool, n, NULL, false, waits_since);
    own.number = atomic_fetch_add(&pool->drawn[priority], 1);
    return pool_wait(control, pool, n, &own, false, waits_since);
}

bool ps_pool_put(ps_control *control, ps_pool_state *pool, uint32_t n, uint64_t *waits_since)
{
    return pool_wait(control, pool, n, NULL, true, waits_since);
}
