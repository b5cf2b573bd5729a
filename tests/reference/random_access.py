"""Which elements gather visits, access by access, from the words of its description.

A lane is a 64-bit linear congruence whose upper bits choose an element; a step starts its lanes at
random bits of the seed, the thread and the number of steps made before.
"""

import numpy as np
from sweeps import splitmix

MASK = 2**64 - 1
MULTIPLIER, ADDEND = 0x5851F42D4C957F2D, 0x14057B7EF767814F
MOST_LANES = 32


def random_bits(seed, counter):
    return int(splitmix(seed, np.uint64(counter)))


def visits(seed, thread, step, lanes, rounds, n_elements):
    """Elements of one step, in no particular order."""
    own = random_bits(seed + 2, thread)
    for lane in range(lanes):
        state = random_bits(own, MOST_LANES * step + lane)
        for _ in range(rounds):
            yield state * n_elements >> 64
            state = (state * MULTIPLIER + ADDEND) & MASK
