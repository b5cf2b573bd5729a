/* Edges of the step-time histogram, for readers. */
#include "hist.h"

double ps_bin_edge_ns(uint32_t bin)
{
    if (bin < 16)
        return bin;
    uint32_t octave = bin / 16 + 3;
    return (double)(16u + bin % 16) * (double)(1ull << (octave - 4));
}
