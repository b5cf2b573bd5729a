/* msm_curve.h - both groups on the arithmetic of ISA, as msm takes them. Included once for each. */
#include "fp2.h"

#define FIELD fp
#define GROUP g1
#include "curve.h"
#include "msm_points.h"
#define SPEND(job, bucket) ((void)0)
#include "msm_tile.h"
#undef FIELD
#undef GROUP

#define FIELD fp2
#define GROUP g2
#include "curve.h"
#include "msm_points.h"
#define SPEND(job, bucket) ((void)0)
#include "msm_tile.h"
#undef FIELD
#undef GROUP
