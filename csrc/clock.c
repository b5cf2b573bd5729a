/* CLOCK_MONOTONIC_RAW through the vDSO: not slewed, and cheap. */
#include "internal.h"

uint64_t ps_now_ns(void)
{
    return ps_clock_ns();
}

uint64_t ps_clock_resolution_ns(void)
{
    /* clock_getres() says 1 ns whatever the counter; the smallest step seen is what counts. */
    uint64_t smallest = UINT64_MAX;
    for (int i = 0; i < 200; i++) {
        uint64_t start = ps_clock_ns(), now = start;
        while (now == start)
            now = ps_clock_ns();
        if (now - start < smallest)
            smallest = now - start;
    }
    return smallest;
}
