/*
 * msm_check.h - whether a bucket pass gave the right point, found by another way: one multiple of
 * the generator by the schoolbook rules for affine points, on the portable arithmetic. Included
 * once for each GROUP.
 */
#define F(op) PS_NAME3(FIELD, op, scalar)
#define C(op) PS_NAME3(GROUP, op, scalar)
#define POINT PS_NAME2(GROUP, point)
#define BUCKET PS_NAME2(GROUP, bucket)
#define IS_ZERO PS_NAME2(FIELD, is_zero)

/* a = a + b with chords and tangents; zero for infinity. */
static void C(add_schoolbook)(POINT *a, const POINT *b)
{
    FIELD slope, over, t;
    bool a_infinite = IS_ZERO(&a->x) && IS_ZERO(&a->y);
    if (a_infinite || (IS_ZERO(&b->x) && IS_ZERO(&b->y))) {
        *a = a_infinite ? *b : *a;
        return;
    }
    F(sub)(&over, &b->x, &a->x);
    F(sub)(&slope, &b->y, &a->y);
    if (IS_ZERO(&over)) {
        F(add)(&over, &a->y, &b->y);
        if (IS_ZERO(&over)) {
            memset(a, 0, sizeof(*a));
            return;
        }
        F(square)(&t, &a->x);
        F(add)(&slope, &t, &t);
        F(add)(&slope, &slope, &t);
    }
    F(inverse)(&over, &over);
    F(mul)(&slope, &slope, &over);
    F(square)(&t, &slope);
    F(sub)(&t, &t, &a->x);
    F(sub)(&t, &t, &b->x);
    F(sub)(&over, &a->x, &t);
    a->x = t;
    F(mul)(&t, &over, &slope);
    F(sub)(&a->y, &t, &a->y);
}

static bool C(holds)(const msm_data *data, const msm_grid *grid, uint64_t n, const void *result)
{
    const BUCKET *have = result;
    POINT want;
    FIELD left, right;
    uint64_t scalar[FR_LIMBS];
    (void)grid;
    memset(&want, 0, sizeof(want));
    msm_closed_form(data, n, scalar);
    for (int bit = 64 * FR_LIMBS - 1; bit >= 0; bit--) {
        POINT same = want;
        C(add_schoolbook)(&want, &same);
        if (scalar[bit / 64] >> (bit % 64) & 1)
            C(add_schoolbook)(&want, &PS_NAME2(GROUP, generator));
    }
    if (IS_ZERO(&want.x) && IS_ZERO(&want.y))
        return IS_ZERO(&have->zz);
    F(square)(&left, &have->zz);
    F(mul)(&left, &left, &have->zz);
    F(square)(&right, &have->zzz);
    bool good = !IS_ZERO(&have->zz) && memcmp(&left, &right, sizeof(left)) == 0;
    F(mul)(&want.x, &want.x, &have->zz);
    F(mul)(&want.y, &want.y, &have->zzz);
    return good && memcmp(&want.x, &have->x, sizeof(want.x)) == 0 &&
           memcmp(&want.y, &have->y, sizeof(want.y)) == 0;
}

#undef F
#undef C
#undef POINT
#undef BUCKET
#undef IS_ZERO
