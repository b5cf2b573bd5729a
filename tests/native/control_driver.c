/*
 * The first error of a run, as those see it who did not record it. Arguments: REPEATS. Prints how
 * often a reader saw an error without the whole of its reason, then what became of the error of a
 * process that died while it recorded one.
 */
#include <pthread.h>
#include <stdlib.h>

#include "control.h"
#include "internal.h"

static char reason[PS_WHY];

static void *fail(void *argument)
{
    ps_control_fail(argument, EIO, "window", reason);
    return NULL;
}

static bool torn(const ps_mix *mix)
{
    pthread_t thread;
    ps_control *control = ps_control_make(mix, 1, 1);
    if (!control || pthread_create(&thread, NULL, fail, control))
        exit(2);
    while (!ps_control_code(control))
        ;
    char seen[PS_WHY], stage[16];
    memcpy(stage, control->stage, sizeof stage);
    memcpy(seen, control->why, sizeof seen);
    pthread_join(thread, NULL);
    ps_control_free(control);
    return strcmp(seen, reason) != 0 || strcmp(stage, "window") != 0;
}

int main(int argc, char **argv)
{
    const ps_actor actor = {.n_threads = 1};
    const ps_mix mix = {.actors = &actor, .n_actors = 1};
    long repeats = argc > 1 ? strtol(argv[1], NULL, 10) : 1, n = 0;
    memset(reason, 'x', sizeof reason - 1);
    for (long i = 0; i < repeats; i++)
        n += torn(&mix);
    printf("torn %ld\n", n);

    ps_control *control = ps_control_make(&mix, 1, 2);
    if (!control)
        return 2;
    const int died = 4711, other = 4712;
    atomic_store(&control->claimed, died);
    ps_control_fail(control, EIO, "window", "while another records");
    printf("claimed %d %s\n", ps_control_code(control), control->why);
    ps_control_disown(control, other);
    ps_control_fail(control, EIO, "window", "while another records");
    printf("other died %d %s\n", ps_control_code(control), control->why);
    ps_control_disown(control, died);
    ps_control_fail(control, ECHILD, "process", "died");
    printf("died %d %s %s\n", ps_control_code(control) == ECHILD, control->stage, control->why);
    ps_control_disown(control, died);
    ps_control_fail(control, EIO, "check", "late");
    printf("late %d %s\n", ps_control_code(control) == ECHILD, control->why);
    return 0;
}
