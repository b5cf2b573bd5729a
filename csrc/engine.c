/* Runs a mix once: processes, stages, the window's opening, probes and results. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arena.h"
#include "control.h"
#include "internal.h"
#include "team.h"

/* A process of the mix: actors (or one thread of a split actor) that share an address space. */
typedef struct {
    uint32_t label; /* ps_actor.process; split: unused */
    int32_t split; /* actor whose one thread this is, or -1 */
    uint32_t thread; /* of the split actor */
    pid_t pid; /* 0: this process */
} ps_process;

typedef struct {
    const ps_mix *mix; /* NULL where only kept arrays are left */
    uint32_t n_actors;
    ps_control *control;
    ps_process *processes;
    uint32_t n_processes;
    ps_place *places; /* n_actors; only this process's are open */
    ps_worker *workers; /* n_threads; likewise */
    pthread_t *threads;
} ps_run_state;

static uint32_t count_threads(const ps_mix *mix)
{
    uint32_t n = 0;
    for (uint32_t a = 0; a < mix->n_actors; a++)
        n += mix->actors[a].n_threads;
    return n;
}

static void list_processes(ps_run_state *run)
{
    for (uint32_t a = 0; a < run->mix->n_actors; a++) {
        const ps_actor *actor = &run->mix->actors[a];
        if (actor->split) {
            for (uint32_t t = 0; t < actor->n_threads; t++)
                run->processes[run->n_processes++] = (ps_process){.split = (int32_t)a, .thread = t};
            continue;
        }
        bool known = false;
        for (uint32_t p = 0; p < run->n_processes; p++)
            known |= run->processes[p].split < 0 && run->processes[p].label == actor->process;
        if (!known)
            run->processes[run->n_processes++] = (ps_process){.label = actor->process, .split = -1};
    }
}

/* First thread and number of threads of actor a in this process; n is 0 where it has none. */
static void own_threads(const ps_run_state *run, const ps_process *process, uint32_t a,
                        uint32_t *first, uint32_t *n)
{
    const ps_actor *actor = &run->mix->actors[a];
    *first = 0;
    *n = 0;
    if (process->split >= 0) {
        *first = process->thread;
        *n = process->split == (int32_t)a ? 1 : 0;
    } else if (!actor->split && actor->process == process->label) {
        *n = actor->n_threads;
    }
}

/* ---- one process -------------------------------------------------------------------------- */

static int fail(ps_run_state *run, int code, const char *stage, const char *why)
{
    return ps_control_fail(run->control, code, stage, why);
}

static int map_places(ps_run_state *run, uint32_t p)
{
    char why[PS_WHY] = "";
    for (uint32_t a = 0; a < run->mix->n_actors; a++) {
        uint32_t first, n;
        own_threads(run, &run->processes[p], a, &first, &n);
        if (!n)
            continue;
        ps_place *place = &run->places[a];
        int code = ps_place_open(place, &run->mix->actors[a], first, n, why);
        if (!code)
            code = ps_place_accepts(place, why);
        if (!code)
            code = ps_place_arrays(place, true, why);
        if (code)
            return fail(run, code, "map", why);
        ps_report *report = &run->control->reports[p * run->mix->n_actors + a];
        for (uint32_t i = 0; i < place->arena.n_segments; i++) {
            report->mapped_bytes += place->arena.segments[i].mapped_bytes;
            report->used_bytes += place->arena.segments[i].used_bytes;
        }
    }
    return 0;
}

/* What a pass does, of the data filled. One process tells all: the figures are the same in each,
 * but a reader must not see them half written. */
static void publish_work(ps_run_state *run)
{
    for (uint32_t a = 0; a < run->mix->n_actors; a++) {
        const ps_place *place = &run->places[a];
        if (place->n && place->first == 0)
            place->ctx.kernel->work(&place->ctx, &run->control->works[a]);
    }
}

static int chunk_evidence(ps_place *place, ps_evidence *out, char *why)
{
    ps_work work;
    place->ctx.kernel->work(&place->ctx, &work);
    return ps_place_chunk_evidence(place, work.chunk_bytes, out, why);
}

static int read_evidence(ps_run_state *run, uint32_t p, bool before)
{
    char why[PS_WHY] = "";
    for (uint32_t a = 0; a < run->mix->n_actors; a++) {
        ps_place *place = &run->places[a];
        if (!place->n)
            continue;
        ps_report *report = &run->control->reports[p * run->mix->n_actors + a];
        ps_evidence *out = before ? &report->before : &report->after;
        int code = 0;
        if (place->ctx.kernel->memory == PS_ARENA) {
            code = ps_place_evidence(place, out, why);
        } else {
            code = before ? ps_place_free_regions(place, why) : 0;
            if (!code)
                code = ps_place_live_evidence(place, out, why);
            if (!code && before && !out->total_bytes)
                code = chunk_evidence(place, out, why);
        }
        if (code)
            return fail(run, code, "evidence", why);
    }
    return 0;
}

static int start_threads(ps_run_state *run, uint32_t *n_started)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 256u << 10);
    int code = 0;
    uint32_t row = 0;
    for (uint32_t a = 0; a < run->mix->n_actors && !code; a++) {
        const ps_place *place = &run->places[a];
        for (uint32_t i = 0; i < place->n && !code; i++) {
            uint32_t index = place->first + i;
            ps_worker *worker = &run->workers[*n_started];
            *worker = (ps_worker){.mix = run->mix,
                                  .control = run->control,
                                  .place = &run->places[a],
                                  .actor = a,
                                  .index = index,
                                  .row = row + index};
            code = pthread_create(&run->threads[*n_started], &attributes, ps_worker_main, worker);
            if (!code)
                (*n_started)++;
        }
        row += run->mix->actors[a].n_threads;
    }
    pthread_attr_destroy(&attributes);
    if (code) {
        char why[PS_WHY];
        ps_refuse(why, code, "cannot start a thread: %s", strerror(code));
        fail(run, code, "start", why);
    }
    return code;
}

/* A process of the mix that died takes its threads along: the others would wait for ever. */
static void look_after(void *argument)
{
    ps_run_state *run = argument;
    for (uint32_t p = 0; p < run->n_processes; p++) {
        int status;
        if (run->processes[p].pid <= 0 || waitpid(run->processes[p].pid, &status, WNOHANG) <= 0)
            continue;
        ps_control_disown(run->control, run->processes[p].pid);
        run->processes[p].pid = -1;
        if (WIFSIGNALED(status)) {
            char why[PS_WHY];
            ps_refuse(why, ECHILD, "a process of the mix was killed by signal %d",
                      WTERMSIG(status));
            fail(run, ECHILD, "process", why);
        }
    }
}

/* What the main thread of the coordinating process does while the threads run. */
static void conduct(ps_run_state *run, ps_result *result);

static int sync_all(ps_run_state *run, bool coordinates)
{
    return ps_barrier_wait_idle(run->control, &run->control->sync, coordinates ? look_after : NULL,
                                run);
}

/* Everything one process does. The coordinator passes result; other processes NULL. */
static void run_process(ps_run_state *run, uint32_t p, bool hosts, ps_result *result)
{
    uint32_t n_started = 0;
    int code = hosts ? map_places(run, p) : 0;
    if (!code)
        code = hosts ? start_threads(run, &n_started) : 0;
    bool going = !code && !sync_all(run, result != NULL); /* filled */
    if (going && hosts) {
        publish_work(run);
        going = !read_evidence(run, p, true);
    }
    going = going && !sync_all(run, result != NULL); /* evidence read */
    going = going && !sync_all(run, result != NULL); /* warmed up */
    if (going && result)
        conduct(run, result);
    going = going && !sync_all(run, result != NULL); /* window over */
    if (going && hosts)
        going = !read_evidence(run, p, false);
    if (going)
        sync_all(run, result != NULL); /* checks may start */
    for (uint32_t i = 0; i < n_started; i++)
        pthread_join(run->threads[i], NULL);
}

static void close_places(ps_run_state *run)
{
    for (uint32_t a = 0; a < run->n_actors; a++)
        if (run->places[a].n)
            ps_place_close(&run->places[a]);
}

/* ---- conducting ---------------------------------------------------------------------------- */

static void read_probes(const ps_mix *mix, uint32_t which)
{
    for (uint32_t i = 0; i < mix->n_probes; i++) {
        uint64_t slot = (uint64_t)which * mix->n_probes + i, used = 0;
        int fd = open(mix->probe_paths[i], O_RDONLY | O_CLOEXEC);
        while (fd >= 0 && used < mix->probe_cap) {
            ssize_t n =
                read(fd, mix->probe_text + slot * mix->probe_cap + used, mix->probe_cap - used);
            if (n <= 0)
                break;
            used += (uint64_t)n;
        }
        if (fd >= 0)
            close(fd);
        mix->probe_bytes[slot] = used;
    }
}

static bool nap_until(ps_run_state *run, uint64_t until)
{
    /* Children are looked after now and then; a single process sleeps in one piece. */
    uint64_t piece = run->n_processes > 1 ? 50000000u : UINT64_MAX;
    for (uint64_t now = ps_clock_ns(); now < until && !ps_control_ended(run->control);
         now = ps_clock_ns()) {
        uint64_t left = until - now;
        ps_control_nap(run->control, left < piece ? left : piece);
        look_after(run);
    }
    return ps_control_ended(run->control);
}

/* Before they are told that it is over. */
static void note_stuck(ps_control *control)
{
    for (uint32_t i = 0; i < control->n_pools; i++)
        control->pools[i].stuck = atomic_load(&control->pools[i].waiters);
}

/* Until every measured actor has made its passes of the warm-up. */
static void nap_while_cold(ps_run_state *run)
{
    uint64_t until = ps_clock_ns() + run->mix->deadline_ns;
    while (atomic_load(&run->control->cold) && !ps_control_ended(run->control)) {
        if (ps_clock_ns() > until) {
            note_stuck(run->control);
            fail(run, ETIMEDOUT, "warm",
                 "the deadline passed before every measured actor had made its passes of the "
                 "warm-up");
            return;
        }
        ps_control_nap(run->control, PS_NAP_NS);
        look_after(run);
    }
}

static void conduct(ps_run_state *run, ps_result *result)
{
    ps_control *control = run->control;
    const ps_mix *mix = run->mix;
    if (!mix->fixed_passes) {
        nap_until(run, ps_clock_ns() + mix->warm_ns);
        nap_while_cold(run);
    }
    uint64_t probed = ps_clock_ns();
    if (!mix->fixed_passes) {
        read_probes(mix, 0);
        atomic_store(&control->open_ns, ps_clock_ns());
    }
    if (!nap_until(run, ps_clock_ns() + mix->deadline_ns)) {
        if (mix->fixed_passes) {
            fail(run, ETIMEDOUT, "window", "the deadline passed before the passes were done");
        } else {
            result->deadline_hit = true;
            note_stuck(control);
            ps_control_close(control, ps_clock_ns());
        }
    }
    if (!mix->fixed_passes)
        read_probes(mix, 1);
    result->probe_ns = ps_clock_ns() - probed;
}

/* ---- results ------------------------------------------------------------------------------- */

/* Chunks that came and went cannot be looked at afterwards: the faults of the window tell. */
static void add_fault_evidence(const ps_actor *actor, const ps_thread_result *rows,
                               ps_evidence *after)
{
    uint64_t touched = 0, faults = 0;
    for (uint32_t i = 0; i < actor->n_threads; i++) {
        touched += rows[i].touched_bytes;
        faults += rows[i].minor_faults;
    }
    ps_evidence window;
    ps_fault_evidence(actor->policy, touched, faults, &window);
    ps_evidence_add(after, &window);
}

static void value_of_joined(const ps_team *team, ps_actor_result *out)
{
    out->passes = (double)team->counted;
    if (!team->counted)
        return;
    out->seconds_per_pass =
        (double)(team->counted_end_ns - team->base_ns) * 1e-9 / (double)team->counted;
    out->active_seconds_per_pass = (double)team->active_ns * 1e-9 / (double)team->counted;
}

static void value_of_sliced(const ps_run_state *run, uint32_t a, uint64_t window_ns,
                            const ps_thread_result *rows, ps_actor_result *out)
{
    uint32_t n = run->mix->actors[a].n_threads;
    double steps = 0, step_ns = 0;
    uint64_t first = UINT64_MAX, last = 0;
    for (uint32_t i = 0; i < n; i++) {
        steps += rows[i].steps;
        step_ns += (double)rows[i].step_ns;
        first = rows[i].first_ns < first ? rows[i].first_ns : first;
        last = rows[i].last_ns > last ? rows[i].last_ns : last;
    }
    out->passes = steps / ((double)n * (double)out->work.n_steps);
    if (out->passes <= 0)
        return;
    /* Fixed work: from the first thread's start to the last one's end. */
    double span = run->mix->fixed_passes ? (double)(last - first) : (double)window_ns;
    out->seconds_per_pass = span * 1e-9 / out->passes;
    out->active_seconds_per_pass = step_ns * 1e-9 / (double)n / out->passes;
}

static void collect_log(const ps_run_state *run, ps_result *result)
{
    const ps_control *control = run->control;
    uint32_t n_scripts = ps_first_script(run->mix, run->mix->n_actors);
    result->n_events = result->lost_events = 0;
    for (uint32_t s = 0; control->log_room && s < n_scripts; s++) {
        uint64_t n = control->logged[s], room = control->log_room;
        result->lost_events += n > room ? n - room : 0;
        n = n < room ? n : room;
        memcpy(&result->events[result->n_events], &control->events[s * room],
               n * sizeof *result->events);
        result->n_events += n;
    }
}

static void collect(const ps_run_state *run, ps_result *result)
{
    const ps_mix *mix = run->mix;
    ps_control *control = run->control;
    uint64_t open = atomic_load(&control->open_ns), close = atomic_load(&control->close_ns);
    result->open_ns = open;
    result->window_ns = close - open;
    collect_log(run, result);
    memcpy(result->threads, control->threads, control->n_threads * sizeof *result->threads);
    uint32_t row = 0;
    for (uint32_t a = 0; a < mix->n_actors; a++) {
        const ps_actor *actor = &mix->actors[a];
        ps_actor_result *out = &result->actors[a];
        memset(out, 0, sizeof *out);
        out->first_thread = row;
        out->work = control->works[a];
        for (uint32_t p = 0; p < run->n_processes; p++) {
            const ps_report *report = &control->reports[p * mix->n_actors + a];
            out->mapped_bytes += report->mapped_bytes;
            out->used_bytes += report->used_bytes;
            ps_evidence_add(&out->before, &report->before);
            ps_evidence_add(&out->after, &report->after);
        }
        for (uint32_t i = row; i < row + actor->n_threads; i++) {
            if (control->touch_ns[i] > out->touch_ns)
                out->touch_ns = control->touch_ns[i];
            if (control->fill_ns[i] > out->fill_ns)
                out->fill_ns = control->fill_ns[i];
        }
        if (actor->kernel->memory == PS_CHURN)
            add_fault_evidence(actor, &result->threads[row], &out->after);
        if (ps_joins(actor))
            value_of_joined(&control->teams[a], out);
        else
            value_of_sliced(run, a, result->window_ns, &result->threads[row], out);
        row += actor->n_threads;
    }
}

static void collect_pools(const ps_control *control, const ps_mix *mix, ps_result *result)
{
    for (uint32_t i = 0; result->pools && i < mix->n_pools; i++)
        result->pools[i] = (ps_pool_result){
            .wait_ns = atomic_load(&control->pools[i].wait_ns),
            .takes = atomic_load(&control->pools[i].takes),
            .puts = atomic_load(&control->pools[i].puts),
            .blocked = atomic_load(&control->pools[i].blocked),
            .stuck = control->pools[i].stuck,
        };
}

/* ---- ps_run -------------------------------------------------------------------------------- */

static int fork_processes(ps_run_state *run)
{
    for (uint32_t p = 0; p < run->n_processes; p++) {
        pid_t parent = getpid();
        pid_t pid = fork();
        if (pid < 0) {
            char why[PS_WHY];
            ps_refuse(why, errno, "cannot fork: %s", strerror(errno));
            return fail(run, errno, "fork", why);
        }
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() == parent)
                run_process(run, p, true, NULL);
            _exit(0); /* the mappings go with the process */
        }
        run->processes[p].pid = pid;
    }
    return 0;
}

/* Processes end by themselves, or after an error by force: its reason is whole by then. */
static void reap(ps_run_state *run)
{
    const struct timespec pause = {.tv_nsec = 200000};
    for (;;) {
        look_after(run);
        bool failed = ps_control_code(run->control) != 0, any = false;
        for (uint32_t p = 0; p < run->n_processes; p++) {
            if (run->processes[p].pid <= 0)
                continue;
            any = true;
            if (failed)
                kill(run->processes[p].pid, SIGKILL);
        }
        if (!any)
            return;
        nanosleep(&pause, NULL);
    }
}

static void set_up_control(const ps_run_state *run)
{
    const ps_mix *mix = run->mix;
    uint32_t unsatisfied = 0;
    for (uint32_t a = 0; a < mix->n_actors; a++) {
        const ps_actor *actor = &mix->actors[a];
        bool joins = ps_joins(actor);
        run->control->teams[a].barrier.n = actor->n_threads;
        run->control->any_courtesy |= actor->courtesy != PS_PROCEED;
        if (actor->measured && !mix->fixed_passes)
            unsatisfied += joins ? 1 : actor->n_threads;
    }
    atomic_init(&run->control->unsatisfied,
                mix->fixed_passes ? run->control->n_threads : unsatisfied);
    atomic_init(&run->control->cold, mix->warm_passes ? unsatisfied : 0);
    /* Fixed work has no window to open: everything counts. */
    if (mix->fixed_passes)
        atomic_init(&run->control->open_ns, ps_clock_ns());
}

static int check_mix(const ps_mix *mix, ps_result *result)
{
    if (!mix->n_actors)
        return ps_refuse(result->why, EINVAL, "a mix needs an actor");
    for (uint32_t a = 0; a < mix->n_actors; a++) {
        const ps_actor *actor = &mix->actors[a];
        if (!actor->n_threads || actor->variant >= actor->kernel->n_variants ||
            actor->priority >= PS_PRIORITIES)
            return ps_refuse(result->why, EINVAL, "actor %u: threads, variant or priority", a);
        if (!ps_isa_has(actor->kernel->variants[actor->variant].needs))
            return ps_refuse(result->why, ENOTSUP, "this CPU lacks what %s/%s needs",
                             actor->kernel->name, actor->kernel->variants[actor->variant].name);
        for (uint32_t i = 0; i < actor->n_ops; i++)
            if (actor->script[i].kind >= PS_OP_TAKE && actor->script[i].pool >= mix->n_pools)
                return ps_refuse(result->why, EINVAL, "actor %u: no such pool", a);
        if (actor->split && mix->keep)
            return ps_refuse(result->why, EINVAL, "arrays of another process cannot be kept");
    }
    return 0;
}

static void free_run(ps_run_state *run)
{
    free(run->processes);
    free(run->places);
    free(run->workers);
    free(run->threads);
    free(run);
}

int ps_run(const ps_mix *mix, ps_result *result)
{
    uint32_t n_threads = count_threads(mix);
    result->code = 0;
    result->why[0] = result->stage[0] = '\0';
    result->deadline_hit = false;
    result->kept = NULL;
    result->code = check_mix(mix, result);
    if (result->code)
        return result->code;
    ps_run_state *run = calloc(1, sizeof *run);
    if (!run)
        return result->code = ENOMEM;
    run->mix = mix;
    run->n_actors = mix->n_actors;
    run->processes = calloc(n_threads + mix->n_actors, sizeof *run->processes);
    run->places = calloc(mix->n_actors, sizeof *run->places);
    run->workers = aligned_alloc(64, ((n_threads + 1) * sizeof *run->workers + 63) / 64 * 64);
    run->threads = calloc(n_threads, sizeof *run->threads);
    if (run->processes && run->places && run->workers && run->threads) {
        list_processes(run);
        /* With several processes this one only conducts, so that all of them are alike. */
        uint32_t parties = run->n_processes > 1 ? run->n_processes + 1 : 1;
        run->control = ps_control_make(mix, n_threads, parties);
    }
    if (!run->control) {
        free_run(run);
        return result->code = ps_refuse(result->why, ENOMEM, "no memory for the control block");
    }
    set_up_control(run);
    ps_sigbus_catch();
    bool several = run->n_processes > 1;
    if (!several || !fork_processes(run))
        run_process(run, 0, !several, result);
    if (several)
        reap(run);
    ps_sigbus_release();
    result->code = ps_control_code(run->control);
    memcpy(result->why, run->control->why, sizeof result->why);
    memcpy(result->stage, run->control->stage, sizeof result->stage);
    collect_pools(run->control, mix, result);
    if (!result->code)
        collect(run, result);
    ps_control_free(run->control);
    run->control = NULL;
    if (mix->keep && !result->code) {
        run->mix = NULL; /* the caller's: may be gone by the time of ps_release() */
        for (uint32_t a = 0; a < run->n_actors; a++)
            run->places[a].actor = NULL;
        result->kept = run; /* and the places with it */
        return 0;
    }
    close_places(run);
    free_run(run);
    return result->code;
}

int ps_kept_array(const void *kept, uint32_t actor, uint32_t thread, uint32_t array, void **start,
                  uint64_t *bytes)
{
    const ps_run_state *run = kept;
    const ps_place *place = &run->places[actor];
    if (!place->n || thread >= place->ctx.n_threads || array >= place->ctx.kernel->n_arrays)
        return EINVAL;
    const ps_thread *own = &place->ctx.threads[thread];
    bool region = place->ctx.kernel->memory == PS_CHURN && array == 0;
    *start = region ? own->live : own->arrays[array];
    *bytes = !*start ? 0 : region ? own->live_bytes : place->ctx.bytes[array];
    return 0;
}

void ps_release(void *kept)
{
    close_places(kept);
    free_run(kept);
}
