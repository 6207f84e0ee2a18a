/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_ENTRANCE_H
#define GATE_ENTRANCE_H

/*
 * The entrance: the jump stubs (stub-x86_64.S) come here with each call that is not a plain one. This is
 * the first call of a thread, a call while the gate is closed, and a call that is watched.
 */

#include <stdint.h>

/* entrance_enter() - for the stubs: returns where the call @entry shall go. */
void *entrance_enter(uint32_t entry);

#endif
