/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_ENDING_H
#define GATE_ENDING_H

/*
 * The end of the process: exit() runs the program's handlers and destructors, which call the driver to free what they
 * have. Behind a closed gate they would wait for a resume that may never come, and a process that was told to end (SIGTERM)
 * would have to be killed. So they wait for a moment only, and are then told what a driver says that has ended.
 *
 * Handlers run in the reverse order of their registration, and ours is to be the first: it is registered anew each time
 * that the gate closes, and before a process joins. One that the program registers after that runs before it, and waits.
 */

/* ending_watch() - the gate closes, or the process joins. */
void ending_watch(void);

#endif
