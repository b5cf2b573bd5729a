/* Log-bucket histogram of step times: fixed memory, 16 bins an octave (6.25 % at most). */
#ifndef PS_HIST_H
#define PS_HIST_H

#include "pagestorm.h"

static inline uint32_t ps_bin(uint64_t ns)
{
    if (ns < 16)
        return (uint32_t)ns;
    uint32_t octave = 63u - (uint32_t)__builtin_clzll(ns); /* at least 4 */
    uint32_t bin = (octave - 3u) * 16u + (uint32_t)((ns >> (octave - 4u)) & 15u);
    return bin < PS_BINS ? bin : PS_BINS - 1;
}

#endif
