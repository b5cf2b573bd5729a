/*
 * msm_lanes.h - what a bucket pass does to memory without the curve: points and buckets of the same
 * sizes, read and written at the same places, added 64-bit lane by lane. GROUP names the kind,
 * PAIRS is the number of 16-byte pairs of lanes in a point. Included once for each.
 *
 * The halves that hold zzz and zz on a curve hold counts here: zero in an empty bucket, so that a
 * first use is told from later ones as it is there.
 */
#define C(op) PS_NAME3(GROUP, op, ISA)
#define POINT PS_NAME2(GROUP, point)
#define BUCKET PS_NAME2(GROUP, bucket)

typedef struct {
    lane_pair xy[PAIRS];
} POINT;
typedef struct {
    lane_pair xy[PAIRS];
    lane_pair counts[PAIRS];
} BUCKET;

static inline bool C(is_infinity)(const BUCKET *a)
{
    lane_pair any = {0, 0};
    for (int k = PAIRS / 2; k < PAIRS; k++)
        any |= a->counts[k];
    return (any[0] | any[1]) == 0;
}

static inline void C(set_infinity)(BUCKET *a)
{
    memset(a->counts, 0, sizeof(a->counts));
}

static inline void C(add_point)(BUCKET *a, const POINT *b)
{
    const lane_pair one = {1, 1};
    if (C(is_infinity)(a)) {
        for (int k = 0; k < PAIRS; k++)
            a->xy[k] = b->xy[k];
        for (int k = 0; k < PAIRS; k++)
            a->counts[k] = one;
        return;
    }
    for (int k = 0; k < PAIRS; k++)
        a->xy[k] += b->xy[k];
    for (int k = 0; k < PAIRS; k++)
        a->counts[k] += one;
}

static inline void C(add_lanes)(BUCKET *a, const BUCKET *b)
{
    for (int k = 0; k < PAIRS; k++)
        a->xy[k] += b->xy[k];
    for (int k = 0; k < PAIRS; k++)
        a->counts[k] += b->counts[k];
}

static inline void C(add_bucket)(BUCKET *a, const BUCKET *b)
{
    if (!C(is_infinity)(b))
        C(add_lanes)(a, b);
}

/* a = (2^bits + 1) a: doublings as on a curve, and one addition more, without which the upper
 * windows would be shifted out of the lanes and go unchecked. */
static void C(shift)(BUCKET *a, uint32_t bits)
{
    BUCKET before = *a;
    for (uint32_t i = 0; i < bits; i++)
        C(add_lanes)(a, a);
    C(add_lanes)(a, &before);
}

static void C(make)(const msm_data *data, void *points, uint64_t first, uint64_t last)
{
    POINT *point = points;
    for (uint64_t i = first; i < last; i++)
        for (uint64_t k = 0; k < PAIRS; k++)
            point[i].xy[k] = (lane_pair){msm_lane(data, i, 2 * PAIRS, 2 * k),
                                         msm_lane(data, i, 2 * PAIRS, 2 * k + 1)};
}

/* A point ends up in the result as often as its digits say, each weighted by its row's shifts. */
static bool C(holds)(const msm_data *data, const msm_grid *grid, uint64_t n, const void *result)
{
    const BUCKET *have = result;
    uint64_t want[2 * PAIRS] = {0}, counts = 0, scalar[FR_LIMBS];
    for (uint64_t i = 0; i < n; i++) {
        uint64_t weight = 0;
        msm_scalar(data, i, scalar);
        msm_plain(scalar, scalar);
        for (uint64_t ticket = 0; ticket < (uint64_t)grid->nx * grid->ny; ticket += grid->nx) {
            msm_tile tile = msm_tile_of(grid, n, ticket);
            weight = weight * ((1ull << grid->window) + 1);
            weight += msm_digit(scalar, 0, tile.bit, tile.bits);
        }
        for (uint64_t k = 0; k < 2 * PAIRS; k++)
            want[k] += weight * msm_lane(data, i, 2 * PAIRS, k);
        counts += weight;
    }
    bool good = true;
    for (uint64_t k = 0; k < 2 * PAIRS; k++)
        good &= have->xy[k / 2][k % 2] == want[k] && have->counts[k / 2][k % 2] == counts;
    return good;
}

#undef C
#undef POINT
#undef BUCKET
