/*
 * pagestorm.h - the contract between kernels, page policies, the engine and Python.
 *
 * Words. A KERNEL is one memory access pattern; a VARIANT of it is an instruction set. A PASS is
 * one full execution over the data, a STEP its smallest resumable piece (20 to 200 us of work). A
 * PAGE POLICY is how memory is backed; EVIDENCE is what the operating system really gave. An ACTOR
 * is a kernel with parameters, policy, CPUs and a script; a MIX is a set of actors started together
 * and is the only thing the engine runs.
 *
 * Conventions. Functions return 0 or a positive errno value and never print or exit; `why` points
 * to PS_WHY bytes and holds a short English reason when a function refuses (empty otherwise). Sizes
 * are bytes, times nanoseconds of CLOCK_MONOTONIC_RAW. Nothing here is thread-safe unless it says
 * so. Pointers are non-NULL unless a line says "or NULL". Strings in descriptors are static.
 *
 * The lines between the two markers are also what cffi parses: declarations only, no macros.
 */
#ifndef PAGESTORM_H
#define PAGESTORM_H

#include <stdbool.h>
#include <stdint.h>

#define PS_WHY 256 /* bytes of a reason */
#define PS_ARRAYS 16 /* arrays of a kernel, at most */
#define PS_PHASES 4 /* separately timed parts of a step, at most */
#define PS_STAGES 8 /* stages of a team pass, at most */
#define PS_WORDS 16 /* private words of a kernel (per actor) and of a thread */
#define PS_BINS 640 /* step-time histogram: 16 bins an octave from 1 ns on, last bin open */
#define PS_NODES 64 /* segments of an arena, at most: NUMA nodes, and one that they share */

/* cffi: begin */

/* ---- descriptors ------------------------------------------------------------------------- */

enum ps_param_kind { PS_U64, PS_SIZE, PS_CHOICE, PS_FILE };
enum ps_role { PS_IN, PS_OUT, PS_SCRATCH };
enum ps_extent { PS_PER_THREAD, PS_PER_ACTOR };
enum ps_memory { PS_ARENA, PS_CHURN };
enum ps_sharing { PS_SLICED, PS_TEAM };

typedef struct ps_ctx ps_ctx; /* one actor in one address space, as kernels see it */
typedef struct ps_policy ps_policy;

typedef struct {
    const char *name;
    int kind; /* ps_param_kind */
    uint64_t default_value; /* PS_CHOICE: an index; PS_FILE: ignored, default is no file */
    uint64_t min, max; /* inclusive; PS_U64 and PS_SIZE */
    const char *const *choices; /* PS_CHOICE: n_choices names; else NULL */
    uint32_t n_choices;
    const char *unit; /* "" where the number has none */
    const char *help;
} ps_param;

typedef struct {
    uint64_t number; /* value; PS_SIZE: bytes; PS_CHOICE: index */
    const char *path; /* PS_FILE: a file, or NULL for none; else NULL */
    const void *data; /* PS_FILE: the file's bytes, mapped read-only by the engine */
    uint64_t data_bytes;
} ps_value;

typedef struct {
    const char *name;
    const char *element; /* numpy type string: "u8", "f8", "u1" */
    int role; /* ps_role */
    int extent; /* ps_extent */
} ps_array;

typedef struct {
    const char *name; /* "scalar", "avx2", ... */
    uint64_t needs; /* ps_isa bits; 0: runs everywhere */
    /* One step. Sliced kernels count tickets from 0 in each thread and pass, team kernels take them
     * from one counter. Returns 0 or errno, which ends the sample. Called concurrently. */
    int (*step)(ps_ctx *ctx, uint32_t thread, uint64_t ticket);
} ps_variant;

/* What one pass does. Sliced kernels: of one thread (all equal); team kernels: of the whole team.
 * Useful bytes: each byte in exactly one of read, written, updated (read and written back). */
typedef struct {
    uint64_t read_bytes, written_bytes, updated_bytes;
    uint64_t bus_min_bytes,
        bus_max_bytes; /* traffic behind the caches: exact where both are equal */
    uint64_t ops; /* what latency is quoted for (loads of a chase); 0: none */
    uint64_t n_steps;
    uint32_t n_stages; /* team: the pass joins after each stage; at least 1 */
    uint64_t stage_steps[8]; /* sum is n_steps */
    uint64_t chunk_bytes; /* churn: what one mapping holds; 0 for arena kernels */
} ps_work;

/* Roughly what a pass takes, for plans: known from parameters and sizes, before there is any data.
 * Of one thread (sliced) or of all threads together (team), as ps_work. */
typedef struct {
    uint64_t ops; /* 0: a pass streams its memory once, and no more is to be said */
    double op_ns; /* computing, on a current core at its usual clock */
    double op_waits; /* times the latency of memory: 1 where an op waits for the one before */
} ps_effort;

typedef struct {
    const char *name;
    const char *summary; /* formula or one line */
    const char *op; /* unit of ps_work.ops: "load"; NULL: bandwidth only */
    const ps_param *params;
    uint32_t n_params;
    const ps_array *arrays;
    uint32_t n_arrays;
    const ps_variant *variants; /* plainest first; the last one the CPU has is the default */
    uint32_t n_variants;
    const char *const *phases; /* names of ps_thread.phase_ns, or NULL */
    uint32_t n_phases;
    int sharing; /* ps_sharing */
    int memory; /* ps_memory */
    bool paces_inside; /* calls ps_pace() every 4 KiB itself; else the engine, per step */
    /* Sizes from ctx->values, size_bytes and n_threads: bytes[i] of array i, per thread or per
     * actor by its extent. May set ctx->words and ctx->effort. All arrays, with 4 KiB of padding
     * each, fit size_bytes. EINVAL with a reason where the parameters cannot be met. */
    int (*layout)(ps_ctx *ctx, uint64_t *bytes, char *why);
    /* Thread's share of every array, written in address order; contents are a function of seed and
     * element index alone. Called by the owning thread. NULL: nothing to fill. */
    int (*fill)(ps_ctx *ctx, uint32_t thread, char *why);
    void (*work)(const ps_ctx *ctx, ps_work *work); /* pre: filled */
    /* Thread's share of the results against a closed form; EBADMSG with a reason when wrong. Knows
     * from ctx->threads[thread].steps how much was done. Team steps are idempotent: what one leaves
     * depends on the filled data and on earlier stages (of any pass) alone, so that a pass may be
     * cut off, and a process twin may take any tickets after one whole pass of its own. */
    int (*check)(ps_ctx *ctx, uint32_t thread, char *why);
    /* Whether the policy makes sense for these parameters; 0 or ENOTSUP with a reason. NULL: all.
     */
    int (*accepts)(const ps_ctx *ctx, const ps_policy *policy, char *why);
    /* What the process must have been started with for these parameters and an accepted policy: one
     * "NAME=value", PS_WHY bytes; "NAME=" where NAME must not be set, "" for nothing. Without it
     * ps_run() refuses. NULL: nothing. */
    void (*environment)(const ps_ctx *ctx, const ps_policy *policy, char *out);
} ps_kernel;

typedef struct {
    uint64_t matching_bytes; /* of known, as the policy promises */
    uint64_t known_bytes; /* of total, what the source could tell */
    uint64_t total_bytes; /* mapped for the arrays; churn: held, or touched in the window */
    /* Of memory bound to a node, from pages sampled by move_pages, scaled; 0 where none is bound.
     * On another node; on one that could not be told. */
    uint64_t wrong_node_bytes, unknown_node_bytes;
    char source[32]; /* "pagemap_scan", "smaps", "kpageflags", "minflt", "" */
} ps_evidence;

struct ps_policy {
    const char *name; /* "base", "thp", "mthp64k", "2m", "1g" */
    const char *summary;
    uint64_t page_bytes; /* 0: the system's base page; see ps_policy_page() */
    bool hugetlb; /* takes pages from a pool */
    /* Whether the host can give it at all, and the command that would enable it. 0, ENOTSUP
     * (kernel or setting) or ENOMEM (pool empty). Does not check how much is free: Python does. */
    int (*available)(const ps_policy *self, char *why);
    /* Map `bytes` (a multiple of the policy's page), read-write, private, untouched, at an address
     * aligned to the page: at `where` exactly, which must be free, or anywhere when it is NULL. */
    int (*map)(const ps_policy *self, void *where, uint64_t bytes, void **out);
    /* What [start, start + bytes) really has; pre: touched. */
    int (*evidence)(const ps_policy *self, const void *start, uint64_t bytes, ps_evidence *out);
};

/* ---- a mix -------------------------------------------------------------------------------- */

enum ps_op_kind { PS_OP_PASSES, PS_OP_REST, PS_OP_TAKE, PS_OP_PUT };
enum ps_courtesy { PS_PROCEED, PS_YIELD, PS_PAUSE };

typedef struct {
    int kind; /* ps_op_kind */
    uint32_t pool; /* TAKE, PUT: index */
    uint64_t amount; /* PASSES, TAKE, PUT: count; REST: ns */
} ps_op;

typedef struct {
    const ps_kernel *kernel;
    uint32_t variant;
    const ps_policy *policy;
    const ps_value *values; /* n_params, in descriptor order */
    uint64_t size_bytes;
    uint64_t seed;
    uint32_t n_threads;
    const int32_t *cpus; /* n_threads; -1: not pinned */
    const int32_t *nodes; /* n_threads, node of each CPU; NULL: one node, no binding */
    uint32_t process; /* equal number: one address space */
    bool split; /* process twin: every thread a process of its own */
    bool measured; /* false: background */
    bool joined; /* threads join after every pass (team kernels always do) */
    bool aligned; /* array starts are not staggered: the aliasing control */
    uint32_t priority; /* 0 to 7; larger goes first */
    int courtesy; /* ps_courtesy towards active actors of higher priority */
    double pace_bytes_per_s; /* useful bytes of one thread; 0: as fast as possible */
    const ps_op *script; /* looped; per thread, or by the team where it joins */
    uint32_t n_ops; /* 0: pass after pass */
} ps_actor;

typedef struct {
    uint32_t tokens; /* at the start */
    uint32_t capacity; /* a put waits while full; 0: unbounded */
    /* Takes go by priority and then in the order they came; else whoever comes at the right moment
     * wins, as with a mutex. */
    bool fair;
} ps_pool;

typedef struct {
    const ps_actor *actors;
    uint32_t n_actors;
    const ps_pool *pools;
    uint32_t n_pools;
    uint64_t window_ns;
    uint64_t warm_ns; /* run under full load before the window opens */
    /* It does not open either before every measured actor has made so many; where that takes longer
     * than deadline_ns the run fails. */
    uint32_t warm_passes;
    /* Every measured actor makes so many in the window: steps of so many, or, where threads join,
     * ends of so many, of which the first may have begun before. */
    uint32_t min_passes;
    uint32_t fixed_passes; /* not 0: no window; exactly so many passes each, then stop */
    uint64_t deadline_ns; /* from the opening of the window */
    bool keep; /* leave arrays mapped until ps_release(): for tests */
    bool check; /* run the kernels' checks after the window */
    const char *const *probe_paths; /* files read just before and after the window, or NULL */
    uint32_t n_probes;
    char *probe_text; /* 2 x n_probes buffers of probe_cap bytes, before then after */
    uint64_t probe_cap;
    uint64_t *probe_bytes; /* 2 x n_probes lengths */
    uint64_t log_events; /* room in ps_result.events, in equal parts for all scripts; 0: no log */
} ps_mix;

/* One operation of a script that came to its end, from the start of the scripts on: also while
 * warming up. */
typedef struct {
    uint64_t start_ns, end_ns; /* absolute; of take and put the wait */
    uint32_t actor, thread; /* where threads join: 0 */
    uint32_t op; /* position in the script */
    uint32_t cycle; /* how often this script had been through before */
} ps_event;

typedef struct {
    uint32_t actor, thread;
    int32_t cpu_before, cpu_after; /* where it ran at the edges of the window */
    double steps; /* in the window, straddling steps pro rata */
    uint64_t passes; /* begun and ended in the window; where threads join, thread 0 counts them */
    uint64_t first_ns, last_ns; /* first and last activity in the window, from its opening */
    uint64_t step_ns; /* time inside steps, in the window */
    uint64_t rest_ns, wait_ns, courtesy_ns;
    uint64_t acquisitions; /* pool operations that went through in the window */
    uint64_t minor_faults, major_faults, switches, forced_switches;
    uint64_t touched_bytes; /* churn: bytes first touched in the window */
    uint64_t phase_ns[4];
    uint32_t bins[640]; /* step times that began and ended in the window */
    uint64_t max_step_ns;
} ps_thread_result;

typedef struct {
    double seconds_per_pass; /* the value; 0 where no progress was made */
    double passes; /* behind the value */
    double active_seconds_per_pass; /* team: first ticket to join; sliced: time in steps */
    ps_work work;
    uint64_t mapped_bytes, used_bytes;
    uint64_t touch_ns, fill_ns; /* longest thread */
    ps_evidence before, after;
    uint32_t first_thread; /* index of its n_threads rows in ps_result.threads */
} ps_actor_result;

/* Of the window: time waited in it by all threads; takes and puts that went through in it; waits
 * that lay in it, wholly or in part. */
typedef struct {
    uint64_t wait_ns, takes, puts, blocked;
    uint32_t stuck; /* scripts that waited for it when the deadline passed */
} ps_pool_result;

typedef struct {
    int code; /* 0 or errno */
    char why[256];
    char stage[16]; /* "fork", "map", "touch", "fill", "warm", "window", "check" */
    uint64_t window_ns, open_ns; /* open_ns: absolute */
    uint64_t probe_ns; /* between the two probe readings */
    bool deadline_hit;
    ps_actor_result *actors; /* the caller's, n_actors */
    ps_thread_result *threads; /* the caller's, one a thread, actor by actor */
    ps_pool_result *pools; /* the caller's, n_pools, or NULL */
    ps_event *events; /* the caller's, mix->log_events, or NULL where that is 0 */
    uint64_t n_events; /* script after script, each in the order of time */
    uint64_t lost_events; /* that there was no room for: the last ones of their scripts */
    void *kept; /* for ps_release(); NULL unless keep */
} ps_result;

/* ---- functions ---------------------------------------------------------------------------- */

/* Run a mix once. One call a sample; the caller holds no lock (cffi releases the GIL). The process
 * should be fresh: with several address spaces it forks before anything is mapped. */
int ps_run(const ps_mix *mix, ps_result *result);

/* Array `array` of `thread` after a run with `keep` (per-actor arrays: any thread). The region of a
 * churn kernel: what lives in it, nothing where that is gone. */
int ps_kept_array(const void *kept, uint32_t actor, uint32_t thread, uint32_t array, void **start,
                  uint64_t *bytes);
void ps_release(void *kept);

/* What a run of this actor would map: bytes used and mapped on each node of actor->nodes, in the
 * order the nodes first appear there (at most 64); one process. Also the generated data's size. */
int ps_plan_actor(const ps_actor *actor, uint64_t *used, uint64_t *mapped, uint32_t *n_nodes,
                  char *why);
int ps_accepts(const ps_actor *actor, char *why);
/* What a pass of this actor would take, as the kernel estimates it; all 0: as long as streaming. */
int ps_plan_effort(const ps_actor *actor, ps_effort *effort, char *why);
/* What the process that runs this actor must be started with, as ps_kernel.environment says it. */
int ps_environment(const ps_actor *actor, char *out, char *why);

uint32_t ps_n_kernels(void);
const ps_kernel *ps_kernel_at(uint32_t index);
uint32_t ps_n_policies(void);
const ps_policy *ps_policy_at(uint32_t index);
uint64_t ps_policy_page(const ps_policy *policy); /* the base page where page_bytes is 0 */
int ps_policy_available(const ps_policy *policy, char *why);

bool ps_isa_has(uint64_t needs);
void ps_isa_names(uint64_t bits, char *out); /* comma-separated, PS_WHY bytes */

uint64_t ps_now_ns(void);
uint64_t ps_clock_resolution_ns(void); /* smallest step seen, measured */
/* Lower edge in ns of histogram bin i, 0 <= i <= 640. */
double ps_bin_edge_ns(uint32_t bin);

/* Cache-line round trip between two CPUs, ns, median of batches. */
int ps_pingpong(int32_t cpu_a, int32_t cpu_b, uint32_t rounds, double *ns);
/* Independent 64-bit adds a nanosecond on one CPU for about `ns`: shows a busy SMT sibling. */
int ps_add_rate(int32_t cpu, uint64_t ns, double *adds_per_ns);
/* One-page munmap, ns, median of `rounds`: alone, and with another thread of this process running
 * on cpu_b. The difference is the cost of one shootdown. */
int ps_shootdown_cost(int32_t cpu_a, int32_t cpu_b, uint32_t rounds, double *alone_ns,
                      double *beside_ns);

/* cffi: end */

/* ---- what kernels see ---------------------------------------------------------------------- */

typedef struct {
    void *arrays[PS_ARRAYS]; /* per-actor arrays: the same pointer in every thread.
                                Churn: arrays[0] is the thread's address range, between
                                reserved guards: nothing is mapped there, and from the
                                warm-up pass on (not yet in fill) the kernel may map in it */
    uint64_t steps; /* steps done since fill, warm-up included */
    uint64_t words[PS_WORDS]; /* the thread's own between steps; zero before fill */
    uint64_t sink; /* store results here so that loads are not optimised away */
    uint64_t touched_bytes; /* churn kernels add the pages' bytes they touch first */
    void *live; /* churn: what fill or a step leaves mapped and touched, whole pages of the
                   policy, for evidence; NULL: nothing. Need not lie in arrays[0] */
    uint64_t live_bytes;
    uint64_t phase_ns[PS_PHASES];
    uint64_t pace_next_ns; /* ps_pace()'s schedule */
    char pad[64]; /* neighbours in the array do not share a line */
} ps_thread;

struct ps_ctx {
    const ps_kernel *kernel;
    const ps_variant *variant;
    const ps_policy *policy;
    const ps_value *values;
    uint64_t size_bytes;
    uint64_t seed;
    uint32_t n_threads;
    uint64_t bytes[PS_ARRAYS]; /* as laid out */
    uint64_t live_bytes; /* churn: what a thread holds at most at once, set by layout(); 0: all of
                            arrays[0], which may be longer: addresses cost nothing */
    ps_effort effort; /* set by layout(); all 0: a pass takes as long as streaming the memory */
    uint64_t words[PS_WORDS]; /* the kernel's own, set by layout() or fill() of thread 0 */
    double pace_bytes_per_s;
    ps_thread *threads; /* n_threads; in a split actor the others alias one's own */
};

#endif
