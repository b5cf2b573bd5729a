/* Instruction sets of the CPU we run on, asked once. */
#include "internal.h"

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

static uint64_t detect(void)
{
    uint64_t bits = 0;
#if defined(__x86_64__)
    /* These also check that the operating system saves the registers. */
    bits |= PS_ISA_X86;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        bits |= PS_ISA_AVX2;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        bits |= PS_ISA_AVX512;
    if (__builtin_cpu_supports("avx512vpopcntdq"))
        bits |= PS_ISA_VPOPCNT;
    /* GCC 12 knows no "adx" here: CPUID leaf 7, EBX bit 19. */
    unsigned int a, b, c, d;
    __asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(7), "c"(0));
    if (__builtin_cpu_supports("bmi2") && (b & (1u << 19)))
        bits |= PS_ISA_BMI2_ADX;
#elif defined(__aarch64__)
    if (getauxval(AT_HWCAP) & HWCAP_ASIMD)
        bits |= PS_ISA_NEON;
#endif
    return bits;
}

bool ps_isa_has(uint64_t needs)
{
    static _Atomic uint64_t known; /* 0: not asked yet; the top bit keeps "none" apart from it */
    uint64_t bits = known;
    if (!bits) {
        bits = detect() | 1ull << 63;
        known = bits;
    }
    return (needs & ~bits) == 0;
}

void ps_isa_names(uint64_t bits, char *out)
{
    static const struct {
        uint64_t bit;
        const char *name;
    } rows[] = {
        {PS_ISA_X86, "x86-64"},        {PS_ISA_AVX2, "avx2"}, {PS_ISA_AVX512, "avx512"},
        {PS_ISA_BMI2_ADX, "bmi2+adx"}, {PS_ISA_NEON, "neon"}, {PS_ISA_VPOPCNT, "vpopcntdq"},
    };
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < PS_COUNT(rows); i++)
        if (bits & rows[i].bit)
            used +=
                (size_t)snprintf(out + used, PS_WHY - used, "%s%s", used ? "," : "", rows[i].name);
}
