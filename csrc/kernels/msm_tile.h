/*
 * msm_tile.h - the three loops of a bucket pass over one kind of points, GROUP and ISA in the
 * names. Included once for each; takes GROUP_add_point_ISA and its relatives from before, and
 * SPEND(job, word) for time that an addition is to take once `word` is there.
 */
#define C(op) PS_NAME3(GROUP, op, ISA)
#define POINT PS_NAME2(GROUP, point)
#define BUCKET PS_NAME2(GROUP, bucket)

static void C(gather)(const msm_job *job, uint64_t first, uint64_t last)
{
    const POINT *points = job->points;
    BUCKET *buckets = job->buckets;
    uint32_t bit = job->tile.bit, bits = job->tile.bits;
    for (uint64_t i = first; i < last; i++) {
        uint64_t digit = msm_digit(job->scalars, i, bit, bits);
        if (job->ahead && i + job->ahead < job->tile.last) {
            uint64_t next = msm_digit(job->scalars, i + job->ahead, bit, bits);
            if (next)
                msm_prefetch((const char *)&buckets[next - 1], sizeof(BUCKET));
        }
        if (!digit)
            continue;
        C(add_point)(&buckets[digit - 1], &points[i]);
        SPEND(job, &buckets[digit - 1]);
    }
}

static void C(walk)(const msm_job *job, uint64_t first, uint64_t last, void *sums)
{
    BUCKET *running = sums, *total = running + 1, *buckets = job->buckets;
    for (uint64_t k = last; k-- > first;) {
        C(add_bucket)(running, &buckets[k]);
        C(set_infinity)(&buckets[k]);
        SPEND(job, running);
        C(add_bucket)(total, running);
        SPEND(job, total);
    }
}

static void C(fold)(const msm_grid *grid, const void *partials, void *result)
{
    const BUCKET *partial = partials;
    BUCKET sum;
    memset(&sum, 0, sizeof(sum));
    for (uint32_t row = 0; row < grid->ny; row++) {
        if (row)
            C(shift)(&sum, grid->window);
        for (uint32_t slice = 0; slice < grid->nx; slice++)
            C(add_bucket)(&sum, partial++);
    }
    *(BUCKET *)result = sum;
}

#undef C
#undef POINT
#undef BUCKET
#undef SPEND
