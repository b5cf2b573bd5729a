/* The threads of an actor. */
#include "team.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>

#include "hist.h"
#include "internal.h"
#include "pin.h"

/* ---- SIGBUS while touching: a pool or cgroup that gives less than was mapped --------------- */

static __thread sigjmp_buf bus_escape;
static __thread volatile sig_atomic_t bus_armed;
static struct sigaction bus_before;

static void on_bus(int signal)
{
    (void)signal;
    if (bus_armed)
        siglongjmp(bus_escape, 1);
    /* Not ours: die as usual. */
    sigaction(SIGBUS, &bus_before, NULL);
}

int ps_sigbus_catch(void)
{
    struct sigaction action = {.sa_handler = on_bus, .sa_flags = SA_NODEFER};
    sigemptyset(&action.sa_mask);
    return sigaction(SIGBUS, &action, &bus_before) < 0 ? errno : 0;
}

void ps_sigbus_release(void)
{
    sigaction(SIGBUS, &bus_before, NULL);
}

/* ---- accounting ---------------------------------------------------------------------------- */

static void read_usage(ps_worker *worker, uint64_t *faults, uint64_t *switches)
{
    struct rusage usage;
    (void)worker;
    getrusage(RUSAGE_THREAD, &usage);
    faults[0] = (uint64_t)usage.ru_minflt;
    faults[1] = (uint64_t)usage.ru_majflt;
    switches[0] = (uint64_t)usage.ru_nvcsw;
    switches[1] = (uint64_t)usage.ru_nivcsw;
}

static const ps_thread *own_thread(const ps_worker *worker)
{
    return &worker->place->ctx.threads[worker->index];
}

/* The first thing this thread finished after the window opened. */
static void note_open(ps_worker *worker, uint64_t start_ns, uint64_t open_ns)
{
    const ps_thread *thread = own_thread(worker);
    worker->opened = true;
    worker->result->cpu_before = sched_getcpu();
    worker->result->first_ns = start_ns > open_ns ? start_ns - open_ns : 0;
    read_usage(worker, worker->faults_at_open, worker->switches_at_open);
    worker->touched_at_open = thread->touched_bytes;
    memcpy(worker->phase_at_open, thread->phase_ns, sizeof worker->phase_at_open);
}

/* Share of [start, end) inside the window; 0 before it opens. */
static uint64_t inside(ps_worker *worker, uint64_t start_ns, uint64_t end_ns)
{
    ps_control *control = worker->control;
    uint64_t open = atomic_load_explicit(&control->open_ns, memory_order_acquire);
    if (!worker->counting || !open || end_ns <= open)
        return 0;
    uint64_t close = atomic_load_explicit(&control->close_ns, memory_order_acquire);
    uint64_t from = start_ns > open ? start_ns : open;
    uint64_t to = close && close < end_ns ? close : end_ns;
    if (to <= from)
        return 0;
    if (!worker->opened)
        note_open(worker, start_ns, open);
    worker->result->last_ns = to - open;
    return to - from;
}

uint64_t ps_count_idle(ps_worker *worker, uint64_t start_ns, uint64_t end_ns, uint64_t *sum)
{
    uint64_t counted = inside(worker, start_ns, end_ns);
    *sum += counted;
    return counted;
}

bool ps_in_window(const ps_worker *worker, uint64_t now_ns)
{
    ps_control *control = worker->control;
    uint64_t open = atomic_load_explicit(&control->open_ns, memory_order_acquire);
    uint64_t close = atomic_load_explicit(&control->close_ns, memory_order_acquire);
    return worker->counting && open && now_ns > open && (!close || now_ns <= close);
}

static void count_step(ps_worker *worker, uint64_t start_ns, uint64_t end_ns)
{
    uint64_t counted = inside(worker, start_ns, end_ns), length = end_ns - start_ns;
    worker->last_start_ns = start_ns;
    worker->last_end_ns = end_ns;
    worker->overshoot = 0;
    if (!counted)
        return;
    ps_thread_result *result = worker->result;
    worker->overshoot = (double)counted / (double)length;
    result->steps += worker->overshoot;
    result->step_ns += counted;
    if (counted == length) {
        result->bins[ps_bin(length)]++;
        if (length > result->max_step_ns)
            result->max_step_ns = length;
    }
}

/* The window may have closed during the newest step without this thread seeing it in time. */
static void settle(ps_worker *worker)
{
    uint64_t close = atomic_load(&worker->control->close_ns);
    ps_thread_result *result = worker->result;
    if (close && worker->overshoot > 0 && worker->last_end_ns > close) {
        uint64_t from = worker->last_start_ns > close ? worker->last_start_ns : close;
        uint64_t excess = worker->last_end_ns - from;
        double share = (double)excess / (double)(worker->last_end_ns - worker->last_start_ns);
        share = share < worker->overshoot ? share : worker->overshoot;
        result->steps -= share;
        result->step_ns -= excess < result->step_ns ? excess : result->step_ns;
        result->last_ns = close - atomic_load(&worker->control->open_ns);
    }
    if (!worker->opened)
        return;
    const ps_thread *thread = own_thread(worker);
    uint64_t faults[2], switches[2];
    read_usage(worker, faults, switches);
    result->cpu_after = sched_getcpu();
    result->minor_faults = faults[0] - worker->faults_at_open[0];
    result->major_faults = faults[1] - worker->faults_at_open[1];
    result->switches = switches[0] - worker->switches_at_open[0];
    result->forced_switches = switches[1] - worker->switches_at_open[1];
    result->touched_bytes = thread->touched_bytes - worker->touched_at_open;
    for (uint32_t i = 0; i < PS_PHASES; i++)
        result->phase_ns[i] = thread->phase_ns[i] - worker->phase_at_open[i];
}

static void satisfy(ps_worker *worker)
{
    if (worker->satisfied || worker->control->fixed || !worker->mix->actors[worker->actor].measured)
        return;
    worker->satisfied = true;
    atomic_fetch_sub_explicit(&worker->control->unsatisfied, 1, memory_order_relaxed);
}

/* ---- giving way ---------------------------------------------------------------------------- */

void ps_set_active(ps_worker *worker, bool active)
{
    ps_control *control = worker->control;
    if (!control->any_courtesy || worker->active == active)
        return;
    worker->active = active;
    _Atomic uint32_t *count = &control->active[worker->mix->actors[worker->actor].priority];
    if (active)
        atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
    else
        atomic_fetch_sub_explicit(count, 1, memory_order_relaxed);
}

static bool higher_active(const ps_worker *worker)
{
    uint32_t own = worker->mix->actors[worker->actor].priority;
    for (uint32_t p = own + 1; p < PS_PRIORITIES; p++)
        if (atomic_load_explicit(&worker->control->active[p], memory_order_relaxed))
            return true;
    return false;
}

static void give_way(ps_worker *worker)
{
    int courtesy = worker->mix->actors[worker->actor].courtesy;
    if (courtesy == PS_PROCEED || !higher_active(worker))
        return;
    uint64_t start = ps_clock_ns(), now;
    bool was_active = worker->active;
    if (courtesy == PS_YIELD) {
        sched_yield();
        now = ps_clock_ns();
    } else {
        ps_set_active(worker, false);
        do {
            /* Short: a pause that overstays costs the throughput it is meant to save. */
            ps_control_nap(worker->control, 50000);
            now = ps_clock_ns();
            ps_control_try_close(worker->control, now);
        } while (!ps_control_ended(worker->control) && higher_active(worker));
        /* Not so for those that follow a leader, nor while warming up. */
        ps_set_active(worker, was_active);
    }
    ps_count_idle(worker, start, now, &worker->result->courtesy_ns);
}

/* ---- steps and passes ---------------------------------------------------------------------- */

static const ps_work *work_of(const ps_worker *worker)
{
    return &worker->control->works[worker->actor];
}

/* false where the run ended or failed. */
static bool step(ps_worker *worker, uint64_t ticket)
{
    ps_ctx *ctx = &worker->place->ctx;
    ps_thread *thread = &ctx->threads[worker->index];
    give_way(worker);
    uint64_t start = ps_clock_ns();
    int code = ctx->variant->step(ctx, worker->index, ticket);
    uint64_t end = ps_clock_ns();
    if (code) {
        char why[PS_WHY];
        ps_refuse(why, code, "%s: %s", ctx->kernel->name, strerror(code));
        ps_control_fail(worker->control, code, "window", why);
        return false;
    }
    thread->steps++;
    count_step(worker, start, end);
    ps_control_try_close(worker->control, end);
    if (!ctx->kernel->paces_inside && ctx->pace_bytes_per_s > 0) {
        const ps_work *work = work_of(worker);
        uint64_t bytes = work->read_bytes + work->written_bytes + work->updated_bytes;
        ps_pace(ctx, thread, bytes / work->n_steps);
    }
    return !ps_control_ended(worker->control);
}

/* The thread's own steps of one pass; false where the run ended before the last of them. */
static bool sweep(ps_worker *worker)
{
    uint64_t n = work_of(worker)->n_steps;
    for (uint64_t ticket = 0; ticket < n; ticket++)
        if (!step(worker, ticket) && ticket + 1 < n)
            return false;
    return true;
}

/* A pass of this thread that came to its end. */
static void count_pass(ps_worker *worker, uint64_t start_ns, uint64_t end_ns)
{
    uint64_t open = atomic_load_explicit(&worker->control->open_ns, memory_order_acquire);
    if (!open && worker->counting && worker->mix->actors[worker->actor].measured &&
        worker->warmed < worker->mix->warm_passes && ++worker->warmed == worker->mix->warm_passes)
        atomic_fetch_sub_explicit(&worker->control->cold, 1, memory_order_relaxed);
    if (start_ns >= open && ps_in_window(worker, end_ns))
        worker->result->passes++;
}

bool ps_pass_alone(ps_worker *worker)
{
    uint64_t start = ps_clock_ns();
    bool whole = worker->whole = sweep(worker);
    if (whole)
        count_pass(worker, start, worker->last_end_ns);
    if (whole && worker->opened) {
        if (worker->result->steps >=
            (double)worker->mix->min_passes * (double)work_of(worker)->n_steps)
            satisfy(worker);
    }
    return whole && !ps_control_ended(worker->control);
}

/* This thread's part of a joined pass: its own sweep, or tickets stage by stage. */
static bool take_part(ps_worker *worker)
{
    ps_team *team = &worker->control->teams[worker->actor];
    const ps_work *work = work_of(worker);
    if (worker->place->ctx.kernel->sharing == PS_SLICED) {
        if (!sweep(worker))
            atomic_store(&team->broken, 1);
        return !ps_barrier_wait(worker->control, &team->barrier);
    }
    uint64_t stage_end = 0;
    for (uint32_t s = 0; s < work->n_stages; s++) {
        stage_end += work->stage_steps[s];
        while (!ps_control_ended(worker->control)) {
            uint64_t ticket = atomic_load_explicit(&team->ticket, memory_order_relaxed);
            /* Not a plain fetch-and-add: tickets of the next stage must stay where they are. */
            if (ticket >= stage_end)
                break;
            if (!atomic_compare_exchange_weak_explicit(&team->ticket, &ticket, ticket + 1,
                                                       memory_order_relaxed, memory_order_relaxed))
                continue;
            if (!step(worker, ticket))
                break;
        }
        if (atomic_load_explicit(&team->ticket, memory_order_relaxed) < stage_end)
            atomic_store(&team->broken, 1);
        if (ps_barrier_wait(worker->control, &team->barrier))
            return false;
    }
    return true;
}

static void log_pass(ps_worker *worker, uint64_t start_ns, uint64_t end_ns)
{
    ps_control *control = worker->control;
    ps_team *team = &control->teams[worker->actor];
    count_pass(worker, start_ns, end_ns);
    if (ps_in_window(worker, end_ns)) {
        if (!team->counted)
            /* Fixed work starts with its first pass; a window with the pass that straddles it. */
            team->base_ns = control->fixed ? start_ns : team->last_end_ns;
        team->counted++;
        team->counted_end_ns = end_ns;
        team->active_ns += end_ns - start_ns;
        if (team->counted >= worker->mix->min_passes)
            satisfy(worker);
    }
    team->last_end_ns = end_ns;
}

bool ps_pass_lead(ps_worker *worker)
{
    ps_control *control = worker->control;
    ps_team *team = &control->teams[worker->actor];
    worker->whole = false;
    atomic_store_explicit(&team->ticket, 0, memory_order_relaxed);
    atomic_store_explicit(&team->broken, 0, memory_order_relaxed);
    if (ps_barrier_wait(control, &team->barrier))
        return false;
    uint64_t start = ps_clock_ns();
    bool joined = take_part(worker);
    uint64_t end = ps_clock_ns();
    if (!joined || atomic_load(&team->broken))
        return false;
    worker->whole = true;
    log_pass(worker, start, end);
    ps_control_try_close(control, end);
    return !ps_control_ended(control);
}

/* The other threads of a joined actor: wait for the leader's word, take part. */
static void follow(ps_worker *worker)
{
    ps_team *team = &worker->control->teams[worker->actor];
    for (;;) {
        if (ps_barrier_wait(worker->control, &team->barrier) || team->stop)
            return;
        if (!take_part(worker))
            return;
    }
}

/* ---- life of a thread ---------------------------------------------------------------------- */

static int fail(ps_worker *worker, int code, const char *stage, const char *why)
{
    return ps_control_fail(worker->control, code, stage, why);
}

/* Whether this process holds the whole of a team's data for one thread. */
static bool split_team(const ps_worker *worker)
{
    const ps_ctx *ctx = &worker->place->ctx;
    return worker->place->n < ctx->n_threads && ctx->kernel->sharing == PS_TEAM;
}

static int touch_and_fill(ps_worker *worker)
{
    ps_ctx *ctx = &worker->place->ctx;
    const ps_kernel *kernel = ctx->kernel;
    char why[PS_WHY] = "";
    volatile bool filling = false;
    if (sigsetjmp(bus_escape, 1)) {
        bus_armed = 0;
        ps_refuse(why, ENOMEM, "page policy %s: memory that was mapped could not be had (SIGBUS)",
                  ctx->policy->name);
        return fail(worker, ENOMEM, filling ? "fill" : "touch", why);
    }
    bus_armed = 1;
    uint64_t start = ps_clock_ns();
    ps_place_touch(worker->place, worker->index);
    uint64_t touched = ps_clock_ns();
    filling = true;
    int code = 0;
    /* A split actor has its per-actor arrays to itself and fills everybody's share, its own last:
     * per-thread arrays of the others alias its own. */
    for (uint32_t t = 0; kernel->fill && split_team(worker) && t < ctx->n_threads && !code; t++)
        if (t != worker->index)
            code = kernel->fill(ctx, t, why);
    if (kernel->fill && !code)
        code = kernel->fill(ctx, worker->index, why);
    bus_armed = 0;
    worker->control->touch_ns[worker->row] = touched - start;
    worker->control->fill_ns[worker->row] = ps_clock_ns() - touched;
    return code ? fail(worker, code, "fill", why) : 0;
}

/* One whole pass outside the script, so that nobody waits for a token before the first. In a split
 * team every process does all of it: from then on each has all results. */
static int warm_up(ps_worker *worker)
{
    bool alone = worker->place->ctx.kernel->sharing == PS_SLICED || split_team(worker);
    if (worker->mix->fixed_passes && worker->mix->keep)
        return 0; /* tests count passes */
    if (alone) {
        uint64_t n = work_of(worker)->n_steps;
        for (uint64_t ticket = 0; ticket < n; ticket++)
            if (!step(worker, ticket))
                return ECANCELED;
        return 0;
    }
    return take_part(worker) ? 0 : ECANCELED;
}

static void check(ps_worker *worker)
{
    ps_ctx *ctx = &worker->place->ctx;
    char why[PS_WHY] = "";
    int code = 0;
    for (uint32_t t = 0; split_team(worker) && t < ctx->n_threads && !code; t++)
        if (t != worker->index)
            code = ctx->kernel->check(ctx, t, why);
    if (!code)
        code = ctx->kernel->check(ctx, worker->index, why);
    if (code)
        fail(worker, code, "check", why);
}

static int pin(const ps_worker *worker)
{
    int32_t cpu = worker->mix->actors[worker->actor].cpus[worker->index];
    return cpu < 0 ? 0 : ps_pin(cpu);
}

/* Main threads read the evidence between two of them; nothing runs meanwhile. */
static int pass_syncs(ps_control *control, int n)
{
    int code = 0;
    while (!code && n-- > 0)
        code = ps_barrier_wait(control, &control->sync);
    return code;
}

void *ps_worker_main(void *argument)
{
    ps_worker *worker = argument;
    ps_control *control = worker->control;
    const ps_actor *actor = &worker->mix->actors[worker->actor];
    worker->result = &control->threads[worker->row];
    worker->result->actor = worker->actor;
    worker->result->thread = worker->index;
    worker->result->cpu_before = worker->result->cpu_after = -1;
    int code = pin(worker);
    if (code) {
        char why[PS_WHY];
        ps_refuse(why, code, "cannot pin a thread to CPU %d: %s", actor->cpus[worker->index],
                  strerror(code));
        fail(worker, code, "pin", why);
    } else {
        code = touch_and_fill(worker);
    }
    /* Its part of the log is touched before anything is timed. */
    if (control->log_room && (worker->index == 0 || !ps_joins(actor))) {
        worker->script = ps_first_script(worker->mix, worker->actor) + worker->index;
        memset(&control->events[worker->script * control->log_room], 0,
               control->log_room * sizeof *control->events);
    }
    if (code || pass_syncs(control, 2) || warm_up(worker) || pass_syncs(control, 1))
        return NULL;
    bool joins = ps_joins(actor);
    ps_team *team = &control->teams[worker->actor];
    worker->counting = true;
    if (!joins || worker->index == 0) {
        if (joins)
            team->last_end_ns = ps_clock_ns();
        ps_script_run(worker);
        if (joins) {
            /* Followers wait for a pass that will not come. */
            team->stop = 1;
            ps_barrier_wait(control, &team->barrier);
        }
    } else {
        follow(worker);
    }
    if (control->fixed && atomic_fetch_sub(&control->unsatisfied, 1) == 1)
        ps_control_close(control, ps_clock_ns());
    settle(worker);
    if (pass_syncs(control, 2))
        return NULL;
    if (worker->mix->check && actor->kernel->check)
        check(worker);
    return NULL;
}
