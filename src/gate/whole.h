/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_WHOLE_H
#define GATE_WHOLE_H

/*
 * Whole restores. The driver's restore of a checkpoint makes the channels of each context again, but leaves out what
 * lets the device interrupt their kernels: the trap handler and some registers (method.h), the exception mask,
 * the preemption mode and the time slice (object.h). A kernel of such a context keeps all other processes off
 * the device, and if they wait for 4.4 s the driver ends it. So the gate keeps what the driver's library
 * sends when it makes a context, and sends it again after a restore, behind the closed gate, before the program goes on.
 *
 * A context is known by the handles of its channel group and of the group's device, which a restore keeps; that it was
 * restored shows in that the group was made again. A context that the program makes anew under old handles is told
 * from a restored one by whole_learn(), which comes right behind each call that makes one.
 *
 * Where a word or a register is not as expected nothing is written, and the process is told to be unwhole.
 */

/* whole_learn() - a context may have been made: keep what its library has sent. The gate is open. */
void whole_learn(void);

/*
 * whole_mend() - a restore may have been: make all contexts whole again. The gate is closed.
 *
 * What has come of it is in the instance page (enum instance_page_whole) and in the gate's log.
 */
void whole_mend(void);

#endif
