/* team.h - one thread of an actor: touch, fill, warm up, run its script, account for the window. */
#ifndef PS_TEAM_H
#define PS_TEAM_H

#include <setjmp.h>

#include "arena.h"
#include "control.h"

typedef struct {
    const ps_mix *mix;
    ps_control *control;
    ps_place *place;
    uint32_t actor; /* position in the mix */
    uint32_t index; /* of the thread in its actor */
    uint32_t row; /* of the thread in the mix */

    /* set while running */
    ps_thread_result *result;
    double overshoot; /* share of the newest step that the window could still lose */
    uint64_t last_start_ns, last_end_ns;
    bool counting; /* not while warming up */
    bool opened, satisfied, active;
    bool whole; /* the newest pass came to its end */
    uint32_t warmed; /* passes made before the window opened, as far as they are asked for */
    uint32_t script; /* number of its script in the mix */
    uint64_t faults_at_open[2], switches_at_open[2];
    uint64_t touched_at_open, phase_at_open[PS_PHASES];
} ps_worker;

/* pthread body; argument is a ps_worker. */
void *ps_worker_main(void *argument);

/* Install or remove the handler that turns SIGBUS while touching into an error. */
int ps_sigbus_catch(void);
void ps_sigbus_release(void);

/* ---- between team.c and script.c ----------------------------------------------------------- */

/* Run the actor's script until the run ends: per thread, or by the team's leader where it joins. */
void ps_script_run(ps_worker *worker);
/* One pass by this thread alone; false where the run ended inside it. */
bool ps_pass_alone(ps_worker *worker);
/* The leader's pass: releases the team, takes part and joins. */
bool ps_pass_lead(ps_worker *worker);
/* Count an interval that was not a step (rest, wait, courtesy) into *sum, clipped to the window.
 * Returns what it added. */
uint64_t ps_count_idle(ps_worker *worker, uint64_t start_ns, uint64_t end_ns, uint64_t *sum);
/* Whether something of this thread that ended at now_ns ended in the window. */
bool ps_in_window(const ps_worker *worker, uint64_t now_ns);
/* Declare the actor busy or idle to those that give way to it. Of threads that join, the leader
 * stands for all: it is in every pass from before its start to after its end. */
void ps_set_active(ps_worker *worker, bool active);

#endif
