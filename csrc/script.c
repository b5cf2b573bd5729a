/* Scripts: what an actor's threads loop over. */
#include "internal.h"
#include "team.h"

static void rest(ps_worker *worker, uint64_t ns)
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
}

static bool move_tokens(ps_worker *worker, const ps_op *op)
{
    ps_pool_state *pool = &worker->control->pools[op->pool];
    uint64_t waited = 0;
    ps_set_active(worker, false);
    bool through = op->kind == PS_OP_TAKE
                       ? ps_pool_take(worker->control, pool, (uint32_t)op->amount, &waited)
                       : ps_pool_put(worker->control, pool, (uint32_t)op->amount, &waited);
    uint64_t now = ps_clock_ns();
    if (waited)
        ps_count_idle(worker, now - waited, now, &worker->result->wait_ns);
    if (through && worker->opened)
        worker->result->acquisitions++;
    return through;
}

static bool passes(ps_worker *worker, uint64_t n)
{
    const ps_actor *actor = &worker->mix->actors[worker->actor];
    bool joins = actor->joined || actor->kernel->sharing == PS_TEAM;
    ps_set_active(worker, true);
    for (uint64_t i = 0; i < n; i++)
        if (!(joins ? ps_pass_lead(worker) : ps_pass_alone(worker)))
            return false;
    return true;
}

/* Fixed work: so many passes, whatever the script says. */
static void run_fixed(ps_worker *worker)
{
    passes(worker, worker->mix->fixed_passes);
}

void ps_script_run(ps_worker *worker)
{
    const ps_actor *actor = &worker->mix->actors[worker->actor];
    static const ps_op endless = {.kind = PS_OP_PASSES, .amount = 1};
    const ps_op *ops = actor->n_ops ? actor->script : &endless;
    uint32_t n_ops = actor->n_ops ? actor->n_ops : 1;
    if (worker->mix->fixed_passes) {
        run_fixed(worker);
        return;
    }
    for (uint32_t i = 0; !ps_control_ended(worker->control); i = (i + 1) % n_ops) {
        const ps_op *op = &ops[i];
        bool going = true;
        if (op->kind == PS_OP_PASSES)
            going = passes(worker, op->amount);
        else if (op->kind == PS_OP_REST)
            rest(worker, op->amount);
        else
            going = move_tokens(worker, op);
        if (!going)
            break;
    }
    ps_set_active(worker, false);
}
