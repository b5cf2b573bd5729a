/* msm_arithmetic.h - all that a point addition can be: curve points on each instruction set, lanes,
 * lanes that take as long as told. */
#ifndef PS_MSM_ARITHMETIC_H
#define PS_MSM_ARITHMETIC_H

#include "calibrate.h"
#include "msm_job.h"

/* Points that share one inversion while they are made. */
#define MSM_BATCH 256u

#define ISA scalar
#include "msm_curve.h"
#undef ISA
#if defined(__x86_64__)
#define ISA adx
#include "msm_curve.h"
#undef ISA
#endif

#define FIELD fp
#define GROUP g1
#include "msm_check.h"
#undef FIELD
#undef GROUP
#define FIELD fp2
#define GROUP g2
#include "msm_check.h"
#undef FIELD
#undef GROUP

/* ---- lanes --------------------------------------------------------------------------------- */

typedef uint64_t lane_pair __attribute__((vector_size(16), may_alias));

#define ISA plain
#define GROUP lanes1
#define PAIRS 6
#include "msm_lanes.h"
/* Waits for the bucket that it changes, as curve arithmetic does. */
#define SPEND(job, bucket) chain((bucket)->xy[0][0], (job)->spins)
#include "msm_tile.h"
#undef GROUP
#undef PAIRS
#define GROUP lanes2
#define PAIRS 12
#include "msm_lanes.h"
#define SPEND(job, bucket) chain((bucket)->xy[0][0], (job)->spins)
#include "msm_tile.h"
#undef GROUP
#undef PAIRS
#undef ISA

/* ---- the table ----------------------------------------------------------------------------- */

enum msm_group { GROUP_G1, GROUP_G2, N_GROUPS };
enum msm_isa { ISA_SCALAR, ISA_ADX, N_ISAS };

#define MSM_CURVE(group, isa, points, buckets)                                                     \
    {.point_bytes = points,                                                                        \
     .bucket_bytes = buckets,                                                                      \
     .make = group##_make_##isa,                                                                   \
     .gather = group##_gather_##isa,                                                               \
     .walk = group##_walk_##isa,                                                                   \
     .fold = group##_fold_##isa,                                                                   \
     .holds = group##_holds_scalar}
static const msm_arithmetic msm_real[N_ISAS][N_GROUPS] = {
    [ISA_SCALAR] = {MSM_CURVE(g1, scalar, 96, 192), MSM_CURVE(g2, scalar, 192, 384)},
#if defined(__x86_64__)
    [ISA_ADX] = {MSM_CURVE(g1, adx, 96, 192), MSM_CURVE(g2, adx, 192, 384)},
#endif
};
#define MSM_LANES(group, points, buckets)                                                          \
    {.point_bytes = points,                                                                        \
     .bucket_bytes = buckets,                                                                      \
     .make = group##_make_plain,                                                                   \
     .gather = group##_gather_plain,                                                               \
     .walk = group##_walk_plain,                                                                   \
     .fold = group##_fold_plain,                                                                   \
     .holds = group##_holds_plain}
static const msm_arithmetic msm_lanes[N_GROUPS] = {
    MSM_LANES(lanes1, 96, 192),
    MSM_LANES(lanes2, 192, 384),
};

#endif
