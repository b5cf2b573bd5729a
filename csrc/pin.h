/* pin.h - keep the calling thread on one CPU. */
#ifndef PS_PIN_H
#define PS_PIN_H

#include <pthread.h>
#include <sched.h>

#include "internal.h"

/* pre: cpu >= 0. 0 or errno; EINVAL beyond 8,192 CPUs too. */
static inline int ps_pin(int32_t cpu)
{
    size_t bytes = CPU_ALLOC_SIZE((size_t)cpu + 1);
    _Alignas(cpu_set_t) char storage[1024] = {0};
    if (bytes > sizeof storage)
        return EINVAL;
    cpu_set_t *set = (cpu_set_t *)(void *)storage;
    CPU_SET_S((size_t)cpu, bytes, set);
    return pthread_setaffinity_np(pthread_self(), bytes, set);
}

#endif
