/*
 * curve.h - points of y^2 = x^3 + b over FIELD (fp: G1, fp2: G2), GROUP in the names, on the
 * arithmetic of ISA, which fp2.h has made ready. Included once for each pair; no formula here needs
 * b.
 *
 * A POINT is affine, all zero for the point at infinity. A BUCKET is a point whose x is x / zz and
 * whose y is y / zzz, with zz^3 = zzz^2; zz = 0 is infinity, whatever the rest holds. The formulas
 * are the "XYZZ" ones of the Explicit-Formulas Database, short Weierstrass curves with a = 0.
 */
#ifndef PS_CURVE_H
#define PS_CURVE_H

typedef struct {
    fp x, y;
} g1_point;
typedef struct {
    fp x, y, zzz, zz;
} g1_bucket;
typedef struct {
    fp2 x, y;
} g2_point;
typedef struct {
    fp2 x, y, zzz, zz;
} g2_bucket;

/* The generators that everyone uses. */
static const g1_point g1_generator = {
    .x = {{0x5cb38790fd530c16u, 0x7817fc679976fff5u, 0x154f95c7143ba1c1u, 0xf0ae6acdf3d0e747u,
           0xedce6ecc21dbf440u, 0x120177419e0bfb75u}},
    .y = {{0xbaac93d50ce72271u, 0x8c22631a7918fd8eu, 0xdd595f13570725ceu, 0x51ac582950405194u,
           0x0e1c8c3fad0059c0u, 0x0bbc3efc5008a26au}},
};
static const g2_point g2_generator = {
    .x = {.real = {{0xf5f28fa202940a10u, 0xb3f5fb2687b4961au, 0xa1a893b53e2ae580u,
                    0x9894999d1a3caee9u, 0x6f67b7631863366bu, 0x058191924350bcd7u}},
          .imaginary = {{0xa5a9c0759e23f606u, 0xaaa0c59dbccd60c3u, 0x3bb17e18e2867806u,
                         0x1b1ab6cc8541b367u, 0xc2b6ed0ef2158547u, 0x11922a097360edf3u}}},
    .y = {.real = {{0x4c730af860494c4au, 0x597cfa1f5e369c5au, 0xe7e6856caa0a635au,
                    0xbbefb5e96e0d495fu, 0x07d3a975f0ef25a2u, 0x0083fd8e7e80dae5u}},
          .imaginary = {{0xadc0fc92df64b05du, 0x18aa270a2b1461dcu, 0x86adac6a3be4eba0u,
                         0x79495c4ec93da33au, 0xe7175850a43ccaedu, 0x0b2bc2a163de1bf2u}}},
};

#endif

#define F(op) PS_NAME3(FIELD, op, ISA)
#define C(op) PS_NAME3(GROUP, op, ISA)
#define POINT PS_NAME2(GROUP, point)
#define BUCKET PS_NAME2(GROUP, bucket)
#define IS_ZERO PS_NAME2(FIELD, is_zero)
#define ONE PS_NAME2(FIELD, one)

static inline bool C(is_infinity)(const BUCKET *a)
{
    return IS_ZERO(&a->zz);
}

/* Half a bucket's bytes are enough. */
static inline void C(set_infinity)(BUCKET *a)
{
    memset(&a->zzz, 0, sizeof(a->zzz));
    memset(&a->zz, 0, sizeof(a->zz));
}

/* a = 2 a. A point of order two, which neither group has, would come out as infinity. */
static void C(double)(BUCKET *a)
{
    FIELD u, v, w, s, m, t;
    if (C(is_infinity)(a))
        return;
    F(add)(&u, &a->y, &a->y);
    F(square)(&v, &u);
    F(mul)(&w, &u, &v);
    F(mul)(&s, &a->x, &v);
    F(square)(&t, &a->x);
    F(add)(&m, &t, &t);
    F(add)(&m, &m, &t);
    F(mul)(&a->y, &w, &a->y);
    F(square)(&a->x, &m);
    F(sub)(&a->x, &a->x, &s);
    F(sub)(&a->x, &a->x, &s);
    F(sub)(&s, &s, &a->x);
    F(mul)(&t, &m, &s);
    F(sub)(&a->y, &t, &a->y);
    F(mul)(&a->zz, &v, &a->zz);
    F(mul)(&a->zzz, &w, &a->zzz);
}

/* What both additions end with: a + b, where p is the difference of the two x and r that of the two
 * y, brought to one denominator, and a's x and y are at that denominator. pre: p is not zero. */
static inline __attribute__((always_inline)) void C(finish)(BUCKET *a, const FIELD *p,
                                                            const FIELD *r)
{
    FIELD pp, ppp, q, t;
    F(square)(&pp, p);
    F(mul)(&ppp, p, &pp);
    F(mul)(&q, &a->x, &pp);
    F(mul)(&a->zz, &a->zz, &pp);
    F(mul)(&a->zzz, &a->zzz, &ppp);
    F(square)(&t, r);
    F(sub)(&t, &t, &ppp);
    F(sub)(&t, &t, &q);
    F(sub)(&a->x, &t, &q);
    F(sub)(&q, &q, &a->x);
    F(mul)(&q, &q, r);
    F(mul)(&t, &a->y, &ppp);
    F(sub)(&a->y, &q, &t);
}

/* a = a + b: 8 multiplications and 2 squarings. */
static void C(add_point)(BUCKET *a, const POINT *b)
{
    FIELD p, r;
    if (IS_ZERO(&b->x) && IS_ZERO(&b->y))
        return;
    if (C(is_infinity)(a)) {
        *a = (BUCKET){.x = b->x, .y = b->y, .zzz = ONE, .zz = ONE};
        return;
    }
    F(mul)(&p, &b->x, &a->zz);
    F(sub)(&p, &p, &a->x);
    F(mul)(&r, &b->y, &a->zzz);
    F(sub)(&r, &r, &a->y);
    if (!IS_ZERO(&p))
        C(finish)(a, &p, &r);
    else if (IS_ZERO(&r))
        C(double)(a);
    else
        C(set_infinity)(a);
}

/* a = a + b: 12 multiplications and 2 squarings. */
static void C(add_bucket)(BUCKET *a, const BUCKET *b)
{
    FIELD p, r, x, y;
    if (C(is_infinity)(b))
        return;
    if (C(is_infinity)(a)) {
        *a = *b;
        return;
    }
    F(mul)(&x, &a->x, &b->zz);
    F(mul)(&p, &b->x, &a->zz);
    F(sub)(&p, &p, &x);
    F(mul)(&y, &a->y, &b->zzz);
    F(mul)(&r, &b->y, &a->zzz);
    F(sub)(&r, &r, &y);
    if (IS_ZERO(&p)) {
        if (IS_ZERO(&r))
            C(double)(a);
        else
            C(set_infinity)(a);
        return;
    }
    a->x = x;
    a->y = y;
    F(mul)(&a->zz, &a->zz, &b->zz);
    F(mul)(&a->zzz, &a->zzz, &b->zzz);
    C(finish)(a, &p, &r);
}

/* a = 2^bits a. */
static void C(shift)(BUCKET *a, uint32_t bits)
{
    for (uint32_t i = 0; i < bits; i++)
        C(double)(a);
}

/* The affine form; pre: not infinity. */
static void C(to_point)(POINT *r, const BUCKET *a)
{
    FIELD inverse;
    F(mul)(&inverse, &a->zz, &a->zzz);
    F(inverse)(&inverse, &inverse);
    F(mul)(&r->y, &inverse, &a->zz);
    F(mul)(&r->y, &r->y, &a->y);
    F(mul)(&r->x, &inverse, &a->zzz);
    F(mul)(&r->x, &r->x, &a->x);
}

/* r = scalar * a for a scalar of 256 bits, lowest limb first. */
static void C(multiply)(BUCKET *r, const POINT *a, const uint64_t *scalar)
{
    memset(r, 0, sizeof(*r));
    for (int bit = 255; bit >= 0; bit--) {
        C(double)(r);
        if (scalar[bit / 64] >> (bit % 64) & 1)
            C(add_point)(r, a);
    }
}

#undef F
#undef C
#undef POINT
#undef BUCKET
#undef IS_ZERO
#undef ONE
