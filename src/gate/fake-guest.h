/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_FAKE_GUEST_H
#define GATE_FAKE_GUEST_H

/*
 * For the gate's tests: a guest of the fake manager with memory in many pieces, large and small, each
 * filled with its own number. What does not succeed ends the test.
 */

#include "gate/fake-manager.h"

#define FAKE_GUEST_TIMEOUT_MS 10000

/* fake_guest_start() - on a device of its own, with a context. */
struct instance_page *fake_guest_start(uint64_t quota);

/* fake_guest_used() - what it has on the device, movable or not. */
uint64_t fake_guest_used(const struct instance_page *page);

void fake_guest_fill(void);
void fake_guest_check(void); /* all is as fake_guest_fill() wrote it */
void fake_guest_free(void);

/* What a manager does with it. */
void fake_guest_close(void);
void fake_guest_command(enum gate_message command);
void fake_guest_move(void); /* away and back */

#endif
