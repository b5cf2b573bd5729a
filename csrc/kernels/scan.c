/* Sequential sweeps: each thread reads, writes, copies or combines its own slice of every array. */
#include "scan_values.h"

static const char *const op_names[N_OPS] = {
    [OP_READ] = "read",   [OP_WRITE] = "write",         [OP_COPY] = "copy",
    [OP_TRIAD] = "triad", [OP_VTRIAD] = "vtriad",       [OP_UPDATE] = "update",
    [OP_DAXPY] = "daxpy", [OP_LIBC_COPY] = "libc_copy", [OP_LIBC_SET] = "libc_set",
};
static const char *const store_names[] = {[STORE_PLAIN] = "plain", [STORE_NT] = "nt"};

/* One understates a core on many machines, see the parameter. */
#define STREAMS_DEFAULT 4u

/* Useful bytes an element; the arrays the op has; whether it stores without reading the line first,
 * which is where a non-temporal store makes sense. */
static const struct {
    uint32_t arrays, read, written, updated;
    bool pure_store, libc;
} ops[N_OPS] = {
    [OP_READ] = {.arrays = 1u << U, .read = 8},
    [OP_WRITE] = {.arrays = 1u << A, .written = 8, .pure_store = true},
    [OP_COPY] = {.arrays = 1u << A | 1u << B, .read = 8, .written = 8, .pure_store = true},
    [OP_TRIAD] = {.arrays = 1u << A | 1u << B | 1u << C,
                  .read = 16,
                  .written = 8,
                  .pure_store = true},
    [OP_VTRIAD] = {.arrays = 1u << A | 1u << B | 1u << C | 1u << D,
                   .read = 24,
                   .written = 8,
                   .pure_store = true},
    [OP_UPDATE] = {.arrays = 1u << A, .updated = 8},
    [OP_DAXPY] = {.arrays = 1u << A | 1u << B, .read = 8, .updated = 8},
    [OP_LIBC_COPY] = {.arrays = 1u << A | 1u << B, .read = 8, .written = 8, .libc = true},
    [OP_LIBC_SET] = {.arrays = 1u << A, .written = 8, .libc = true},
};

/* Elements that every vector body can take in one turn: 8 vectors of 64 bytes. */
#define GRANULE 64u
/* Stream starts: neither equal modulo 4 KiB, where they would compete for the same sets of the
 * first-level cache, nor near each other. Applied to streams long enough to feel it. */
#define STAGGER_BYTES (2048u + 3u * 64u)
#define STAGGER_FROM_BYTES 65536u

/* ---- hooks --------------------------------------------------------------------------------- */

static uint32_t n_streams(const ps_ctx *ctx)
{
    return ctx->values[OP].number == OP_READ ? (uint32_t)ctx->values[STREAMS].number : 1;
}

static uint32_t element_bytes(uint64_t op)
{
    return ops[op].read + ops[op].written + ops[op].updated;
}

static const scan_bodies *bodies_of(const ps_ctx *ctx)
{
    return scan_variant_bodies[ctx->variant - scan_variants];
}

/* Why the parameters do not go together, or NULL. */
static const char *contradiction(const ps_ctx *ctx)
{
    uint64_t op = ctx->values[OP].number, streams = ctx->values[STREAMS].number;
    if (streams != 1 && streams != 2 && streams != 4 && streams != 8)
        return "streams is 1, 2, 4 or 8";
    if (op != OP_READ && streams != STREAMS_DEFAULT)
        return "streams belongs to op=read; the other ops have one in each array";
    if (ctx->values[STORE].number == STORE_PLAIN || bodies_of(ctx)->nt[op])
        return NULL;
    if (op == OP_READ)
        return "store=nt: op=read stores nothing";
    if (ops[op].libc)
        return "store=nt: libc chooses its own stores";
    return ops[op].pure_store ? "store=nt: this variant has no non-temporal stores"
                              : "store=nt: the op reads the line that it writes";
}

static int layout(ps_ctx *ctx, uint64_t *bytes, char *why)
{
    uint64_t op = ctx->values[OP].number;
    const char *reason = contradiction(ctx);
    if (reason)
        return ps_refuse(why, EINVAL, "%s", reason);

    uint32_t streams = n_streams(ctx), arrays = (uint32_t)__builtin_popcount(ops[op].arrays);
    uint64_t slice = ps_slice_bytes(ctx, arrays, 8) / 8;
    bool staggered = streams > 1 && slice * 8 / streams >= STAGGER_FROM_BYTES;
    if (staggered)
        slice -= (streams - 1) * 512u; /* at most 4 KiB between two streams */
    uint64_t n_steps = slice * element_bytes(op) / ctx->values[STEP].number;
    n_steps += n_steps == 0;
    uint64_t chunk = slice / n_steps / streams / GRANULE * GRANULE;
    if (chunk == 0)
        return ps_refuse(why, EINVAL,
                         "%u threads with %u arrays and %u streams need at least %llu B",
                         ctx->n_threads, arrays, streams,
                         (unsigned long long)ctx->n_threads *
                             (arrays * 4096u + arrays * streams * GRANULE * 8 + 8));

    uint64_t length = chunk * n_steps;
    uint64_t gap = staggered ? (STAGGER_BYTES / 8 - length) % 512 : 0;
    ctx->words[CHUNK] = chunk;
    ctx->words[N_STEPS] = n_steps;
    ctx->words[DIST] = length + gap;
    ctx->words[ELEMENTS] = (streams - 1) * (length + gap) + length;
    for (uint32_t i = 0; i < N_ARRAYS; i++)
        bytes[i] = ops[op].arrays >> i & 1 ? ctx->words[ELEMENTS] * 8 : 0;
    return 0;
}

static int fill(ps_ctx *ctx, uint32_t thread, char *why)
{
    ps_thread *own = &ctx->threads[thread];
    uint64_t *u = own->arrays[U];
    double *a = own->arrays[A];
    (void)why;
    for (uint64_t i = 0; i < ctx->bytes[U] / 8; i++)
        u[i] = series(ctx, thread, i);
    for (uint64_t i = 0; i < ctx->bytes[A] / 8; i++)
        a[i] = initial(ctx, thread, i);
    for (uint32_t array = B; array <= D; array++) {
        double *x = own->arrays[array];
        for (uint64_t i = 0; i < ctx->bytes[array] / 8; i++)
            x[i] = element(ctx, thread, array, i);
    }
    return 0;
}

static void work(const ps_ctx *ctx, ps_work *work)
{
    uint64_t op = ctx->values[OP].number;
    uint64_t n_steps = ctx->words[N_STEPS], n = ctx->words[CHUNK] * n_steps * n_streams(ctx);
    *work = (ps_work){.n_steps = n_steps, .n_stages = 1, .stage_steps = {n_steps}};
    work->read_bytes = n * ops[op].read;
    work->written_bytes = n * ops[op].written;
    work->updated_bytes = n * ops[op].updated;
    /* A plain store reads the line before it is written back (write-allocate); a non-temporal one
     * does not, and libc uses either. */
    work->bus_min_bytes = work->read_bytes + work->written_bytes + 2 * work->updated_bytes;
    work->bus_max_bytes = work->bus_min_bytes + work->written_bytes;
    if (ctx->values[STORE].number == STORE_NT)
        work->bus_max_bytes = work->bus_min_bytes;
    else if (!ops[op].libc)
        work->bus_min_bytes = work->bus_max_bytes;
}

static scan_body *body_of(const ps_ctx *ctx)
{
    const scan_bodies *bodies = bodies_of(ctx);
    uint64_t op = ctx->values[OP].number;
    if (op == OP_READ)
        return bodies->read[__builtin_ctz((uint32_t)ctx->values[STREAMS].number)];
    return ctx->values[STORE].number == STORE_NT ? bodies->nt[op] : bodies->plain[op];
}

static int scan_step(ps_ctx *ctx, uint32_t thread, uint64_t ticket)
{
    ps_thread *own = &ctx->threads[thread];
    uint64_t op = ctx->values[OP].number, chunk = ctx->words[CHUNK];
    scan_body *body = body_of(ctx);
    const scan_job job = {
        .u = own->arrays[U],
        .a = own->arrays[A],
        .b = own->arrays[B],
        .c = own->arrays[C],
        .d = own->arrays[D],
        .dist = ctx->words[DIST],
        .scale = scale_of(op, own->words[MADE] / ctx->words[N_STEPS]),
    };
    uint64_t first = ticket * chunk, last = first + chunk;
    if (ctx->pace_bytes_per_s > 0) {
        uint64_t bytes = (uint64_t)element_bytes(op) * n_streams(ctx);
        uint64_t block = 4096 / bytes / GRANULE * GRANULE;
        for (; last - first > block; first += block) {
            ps_pace(ctx, own, block * bytes);
            own->words[SUM] += body(&job, first, first + block);
        }
        ps_pace(ctx, own, (last - first) * bytes);
    }
    own->words[SUM] += body(&job, first, last);
    own->words[MADE]++;
    own->sink = own->words[SUM];
    return 0;
}

static int check_read(const ps_ctx *ctx, uint32_t thread, char *why)
{
    const ps_thread *own = &ctx->threads[thread];
    uint64_t passes = own->steps / ctx->words[N_STEPS], rest = own->steps % ctx->words[N_STEPS];
    uint64_t expected = 0;
    for (uint32_t s = 0; s < n_streams(ctx); s++) {
        uint64_t start = s * ctx->words[DIST], chunk = ctx->words[CHUNK];
        expected += passes * series_sum(ctx, thread, start, chunk * ctx->words[N_STEPS]);
        expected += series_sum(ctx, thread, start, chunk * rest);
    }
    if (own->words[SUM] != expected)
        return ps_refuse(why, EBADMSG, "thread %u read a sum of %#llx, not %#llx", thread,
                         (unsigned long long)own->words[SUM], (unsigned long long)expected);
    return 0;
}

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static int check_range(const ps_ctx *ctx, uint32_t thread, uint64_t first, uint64_t last,
                       uint64_t done, char *why)
{
    const double *a = ctx->threads[thread].arrays[A];
    for (uint64_t i = first; i < last; i++) {
        double want = expected(ctx, thread, i, done);
        if (bits_of(a[i]) != bits_of(want)) /* libc_set stores what need not be a number */
            return ps_refuse(why, EBADMSG,
                             "a[%llu] of thread %u is %.17g after pass %llu, not %.17g",
                             (unsigned long long)i, thread, a[i], (unsigned long long)done, want);
    }
    return 0;
}

static int check(ps_ctx *ctx, uint32_t thread, char *why)
{
    const ps_thread *own = &ctx->threads[thread];
    if (own->words[MADE] != own->steps)
        return ps_refuse(why, EBADMSG, "thread %u made %llu steps of %llu", thread,
                         (unsigned long long)own->words[MADE], (unsigned long long)own->steps);
    if (ctx->values[OP].number == OP_READ)
        return check_read(ctx, thread, why);
    uint64_t passes = own->steps / ctx->words[N_STEPS], rest = own->steps % ctx->words[N_STEPS];
    uint64_t border = rest * ctx->words[CHUNK];
    int code = check_range(ctx, thread, 0, border, passes + 1, why);
    return code ? code : check_range(ctx, thread, border, ctx->words[ELEMENTS], passes, why);
}

static const ps_param params[] = {
    {.name = "op",
     .kind = PS_CHOICE,
     .choices = op_names,
     .n_choices = N_OPS,
     .unit = "",
     .help =
         "read: sum of u; write: a = s; copy: a = b; triad: a = b + s c; vtriad: a = b + c d; "
         "update: a = s a; daxpy: a = a + s b; libc_copy, libc_set: memcpy, memset once a step"},
    {.name = "store",
     .kind = PS_CHOICE,
     .choices = store_names,
     .n_choices = PS_COUNT(store_names),
     .unit = "",
     .help = "nt: non-temporal, past the caches; of write, copy, triad and vtriad"},
    {.name = "streams",
     .kind = PS_U64,
     .default_value = STREAMS_DEFAULT,
     .min = 1,
     .max = 8,
     .unit = "",
     .help = "of op=read, 1, 2, 4 or 8: places read in turn; one understates many cores, whose "
             "prefetchers stop at every 4 KiB"},
    {.name = "step",
     .kind = PS_SIZE,
     .default_value = 1u << 20,
     .min = 4096,
     .max = 1u << 30,
     .unit = "B",
     .help = "useful bytes of one step; of libc_copy and libc_set also of one call"},
};

static const ps_array array_rows[N_ARRAYS] = {
    [U] = {"u", "u8", PS_IN, PS_PER_THREAD}, [A] = {"a", "f8", PS_OUT, PS_PER_THREAD},
    [B] = {"b", "f8", PS_IN, PS_PER_THREAD}, [C] = {"c", "f8", PS_IN, PS_PER_THREAD},
    [D] = {"d", "f8", PS_IN, PS_PER_THREAD},
};

const ps_kernel ps_kernel_scan = {
    .name = "scan",
    .summary =
        "sequential read, write, copy, a = b + s c and relatives, each thread in its own slice",
    .params = params,
    .n_params = PS_COUNT(params),
    .arrays = array_rows,
    .n_arrays = N_ARRAYS,
    .variants = scan_variants,
    .n_variants = PS_COUNT(scan_variants),
    .sharing = PS_SLICED,
    .memory = PS_ARENA,
    .paces_inside = true,
    .layout = layout,
    .fill = fill,
    .work = work,
    .check = check,
};
