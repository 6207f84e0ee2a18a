/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_STEP_H
#define GATE_STEP_H

/*
 * In a step of the closed gate, threads go on until together they have made a number of launches.
 *
 * The manager lets processes at rest take steps while others of their vGPU are not at rest, because the
 * kernels of those may wait for launches of these (src/manager/operation/rest.h).
 *
 * Ranks may also be threads of one process, each with a context of its own. Then the gate takes steps by
 * itself when it has waited for long: those threads go on whose contexts have nothing to do (drain.c).
 *
 * A step changes nothing for the stubs: the gate stays closed for them. Whoever comes to the closed gate
 * looks here, and takes the mark and one launch, or waits. So exactly as many launches are made as the
 * step allows, whichever threads make them. Calls that are no launches go through freely while launches
 * are left, for one of them may have to come first.
 */

#include <stdbool.h>
#include <stdint.h>

/*
 * step_begin() - the gate is closed; it has to be again before the next step.
 * @is_for_idle: only threads whose current context had nothing to do at idle_look() may launch
 */
void step_begin(uint32_t n_launches, bool is_for_idle);

/* step_number() - return the number of the step: a thread need not try twice in one step. */
uint32_t step_number(void);

/* step_is_over() - are all launches made? A capture that has begun has to end first. */
bool step_is_over(void);

/* step_end() - let nobody enter any more. Returns the number of launches made. */
uint32_t step_end(void);

/* step_may_take() - may a waiting thread try? Ask again after gate_closed has changed. */
bool step_may_take(void);

/*
 * step_take() - the calling thread has its mark. True: it may make the call, and the launch is counted
 * if the call is one. False: it has to take its mark back.
 */
bool step_take(uint32_t entry);

/* step_is_launch() - does the call need a launch of the step? */
bool step_is_launch(uint32_t entry);

#endif
