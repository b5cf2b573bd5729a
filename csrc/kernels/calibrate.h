/* calibrate.h - work in registers only, and how much of it this CPU does in a given time. */
#ifndef PS_CALIBRATE_H
#define PS_CALIBRATE_H

#include <pthread.h>

#include "internal.h"

/* A linear congruential chain: each multiply and add waits for the last, no load, no store. */
#define CHAIN_MULTIPLIER 6364136223846793005u
#define CHAIN_ADDEND 1442695040888963407u

static inline uint64_t chain(uint64_t state, uint64_t links)
{
    for (uint64_t i = 0; i < links; i++) {
        state = state * CHAIN_MULTIPLIER + CHAIN_ADDEND;
        __asm__ volatile("" : "+r"(state)); /* the compiler must not know the sequence */
    }
    return state;
}

static double chain_rate; /* links a nanosecond */

/* The median of short trials: an interrupt lengthens one, a slow clock at the start the first few.
 */
static void chain_calibrate(void)
{
    enum { TRIALS = 21, LINKS = 100000 };
    double rates[TRIALS];
    uint64_t state = 1;
    for (int i = 0; i < TRIALS; i++) {
        uint64_t start = ps_clock_ns();
        state = chain(state, LINKS);
        double rate = LINKS / (double)(ps_clock_ns() - start + 1);
        int place = i;
        for (; place > 0 && rates[place - 1] > rate; place--)
            rates[place] = rates[place - 1];
        rates[place] = rate;
    }
    chain_rate = rates[TRIALS / 2];
}

/* Links that take about `ns`. Measured once a process, so that all work in it is alike. */
static uint64_t chain_links(uint64_t ns)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (ns == 0)
        return 0;
    pthread_once(&once, chain_calibrate);
    return (uint64_t)(chain_rate * (double)ns + 0.5);
}

#endif
