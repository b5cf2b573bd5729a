/* Scripts: what an actor's threads loop over. */
#include "internal.h"
#include "team.h"

/* false where the run ended first. */
static bool rest(ps_worker *worker, uint64_t ns)
{
    uint64_t start = ps_clock_ns(), now = start;
    ps_set_active(worker, false);
    while (now < start + ns && !ps_control_ended(worker->control)) {
        uint64_t left = start + ns - now;
        ps_control_nap(worker->control, left < PS_NAP_NS ? left : PS_NAP_NS);
        now = ps_clock_ns();
        ps_control_try_close(worker->control, now);
    }
    ps_count_idle(worker, start, now, &worker->result->rest_ns);
    return now >= start + ns;
}

static bool move_tokens(ps_worker *worker, const ps_op *op)
{
    ps_pool_state *pool = &worker->control->pools[op->pool];
    bool takes = op->kind == PS_OP_TAKE;
    uint64_t waits_since = 0;
    ps_set_active(worker, false);
    uint32_t priority = worker->mix->actors[worker->actor].priority;
    bool through =
        takes ? ps_pool_take(worker->control, pool, (uint32_t)op->amount, priority, &waits_since)
              : ps_pool_put(worker->control, pool, (uint32_t)op->amount, &waits_since);
    uint64_t now = ps_clock_ns(), waited = 0;
    if (waits_since)
        waited = ps_count_idle(worker, waits_since, now, &worker->result->wait_ns);
    if (waited) {
        atomic_fetch_add_explicit(&pool->blocked, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&pool->wait_ns, waited, memory_order_relaxed);
    }
    if (through && ps_in_window(worker, now)) {
        worker->result->acquisitions++;
        atomic_fetch_add_explicit(takes ? &pool->takes : &pool->puts, 1, memory_order_relaxed);
    }
    return through;
}

/* false where the run ended; *done: after the last of them nevertheless. */
static bool passes(ps_worker *worker, uint64_t n, bool *done)
{
    const ps_actor *actor = &worker->mix->actors[worker->actor];
    bool joins = ps_joins(actor);
    ps_set_active(worker, true);
    *done = true;
    for (uint64_t i = 0; i < n; i++)
        if (!(joins ? ps_pass_lead(worker) : ps_pass_alone(worker))) {
            *done = worker->whole && i + 1 == n;
            return false;
        }
    return true;
}

/* Written by whoever runs the script, into memory that was touched before: costs two looks at the
 * clock and one line of cache. */
static void note(ps_worker *worker, uint64_t start_ns, uint32_t op, uint32_t cycle)
{
    ps_control *control = worker->control;
    uint64_t n = control->logged[worker->script]++;
    if (n < control->log_room)
        control->events[worker->script * control->log_room + n] =
            (ps_event){.start_ns = start_ns,
                       .end_ns = ps_clock_ns(),
                       .actor = worker->actor,
                       .thread = worker->index,
                       .op = op,
                       .cycle = cycle};
}

static void loop(ps_worker *worker)
{
    const ps_actor *actor = &worker->mix->actors[worker->actor];
    static const ps_op endless = {.kind = PS_OP_PASSES, .amount = 1};
    const ps_op *ops = actor->n_ops ? actor->script : &endless;
    uint32_t n_ops = actor->n_ops ? actor->n_ops : 1;
    bool logs = worker->control->log_room > 0;
    uint32_t cycle = 0;
    for (uint32_t i = 0; !ps_control_ended(worker->control); i = (i + 1) % n_ops) {
        const ps_op *op = &ops[i];
        bool going = true, done;
        uint64_t start = logs ? ps_clock_ns() : 0;
        if (op->kind == PS_OP_PASSES) {
            going = passes(worker, op->amount, &done);
        } else if (op->kind == PS_OP_REST) {
            done = rest(worker, op->amount);
        } else {
            going = move_tokens(worker, op);
            done = going;
        }
        if (logs && done)
            note(worker, start, i, cycle);
        if (!going)
            break;
        cycle += i + 1 == n_ops;
    }
}

void ps_script_run(ps_worker *worker)
{
    /* Fixed work: so many passes, whatever the script says. */
    bool done;
    if (worker->mix->fixed_passes)
        passes(worker, worker->mix->fixed_passes, &done);
    else
        loop(worker);
    ps_set_active(worker, false);
}
