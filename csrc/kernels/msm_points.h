/*
 * msm_points.h - multiples of the generator of GROUP in affine form, on the arithmetic of ISA.
 * Included once for each.
 */
#define F(op) PS_NAME3(FIELD, op, ISA)
#define C(op) PS_NAME3(GROUP, op, ISA)
#define POINT PS_NAME2(GROUP, point)
#define BUCKET PS_NAME2(GROUP, bucket)

/* out[j] = in[j] + step, with one inversion for all of them. pre: count <= MSM_BATCH, none of the
 * points is step or its opposite or infinity. */
static void C(add_to_all)(POINT *out, const POINT *in, uint64_t count, const POINT *step)
{
    FIELD difference[MSM_BATCH], before[MSM_BATCH], product, inverse, slope, t;
    product = PS_NAME2(FIELD, one);
    for (uint64_t j = 0; j < count; j++) {
        F(sub)(&difference[j], &step->x, &in[j].x);
        before[j] = product;
        F(mul)(&product, &product, &difference[j]);
    }
    F(inverse)(&product, &product);
    /* Now the inverse of the product of all; taking one factor off at a time leaves each alone. */
    for (uint64_t j = count; j-- > 0;) {
        F(mul)(&before[j], &before[j], &product);
        F(mul)(&product, &product, &difference[j]);
    }
    for (uint64_t j = 0; j < count; j++) {
        POINT from = in[j];
        inverse = before[j];
        F(sub)(&slope, &step->y, &from.y);
        F(mul)(&slope, &slope, &inverse);
        F(square)(&t, &slope);
        F(sub)(&t, &t, &from.x);
        F(sub)(&out[j].x, &t, &step->x);
        F(sub)(&t, &from.x, &out[j].x);
        F(mul)(&t, &t, &slope);
        F(sub)(&out[j].y, &t, &from.y);
    }
}

/* The first batch doubles in length until it is whole: h points, then those plus h steps. Every
 * later batch is the one before it plus a whole batch of steps. */
static void C(make)(const msm_data *data, void *points, uint64_t first, uint64_t last)
{
    const POINT *generator = &PS_NAME2(GROUP, generator);
    POINT *point = points, ahead;
    uint64_t multiple[FR_LIMBS], step[FR_LIMBS] = {data->step}, have = 1;
    BUCKET sum;
    if (first >= last)
        return;
    msm_multiple(data, first, multiple);
    C(multiply)(&sum, generator, multiple);
    C(to_point)(&point[first], &sum);
    C(multiply)(&sum, generator, step);
    C(to_point)(&ahead, &sum);
    for (uint64_t i = first + 1; i < last;) {
        uint64_t count = last - i < have ? last - i : have;
        C(add_to_all)(&point[i], &point[i - have], count, &ahead);
        i += count;
        if (have == MSM_BATCH)
            continue;
        have *= 2;
        C(double)(&sum);
        C(to_point)(&ahead, &sum);
    }
}

#undef F
#undef C
#undef POINT
#undef BUCKET
