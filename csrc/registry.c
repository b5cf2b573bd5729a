/* The registries, as the builder listed them from the folders. */
#include <stdarg.h>
#include <unistd.h>

#include "internal.h"

extern const ps_kernel *const ps_kernels[];
extern const uint32_t ps_kernels_count;
extern const ps_policy_list *const ps_policy_lists[];
extern const uint32_t ps_policy_lists_count;

uint32_t ps_n_kernels(void)
{
    return ps_kernels_count;
}

const ps_kernel *ps_kernel_at(uint32_t index)
{
    return index < ps_kernels_count ? ps_kernels[index] : NULL;
}

uint32_t ps_n_policies(void)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < ps_policy_lists_count; i++)
        n += ps_policy_lists[i]->n_rows;
    return n;
}

const ps_policy *ps_policy_at(uint32_t index)
{
    for (uint32_t i = 0; i < ps_policy_lists_count; i++) {
        if (index < ps_policy_lists[i]->n_rows)
            return &ps_policy_lists[i]->rows[index];
        index -= ps_policy_lists[i]->n_rows;
    }
    return NULL;
}

uint64_t ps_policy_page(const ps_policy *policy)
{
    return policy->page_bytes ? policy->page_bytes : (uint64_t)sysconf(_SC_PAGESIZE);
}

int ps_policy_available(const ps_policy *policy, char *why)
{
    why[0] = '\0';
    return policy->available(policy, why);
}

int ps_refuse(char *why, int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, PS_WHY, format, arguments);
    va_end(arguments);
    return code;
}
