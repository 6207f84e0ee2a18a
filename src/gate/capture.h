/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_CAPTURE_H
#define GATE_CAPTURE_H

/*
 * Stream captures in progress. The gate does not close while there is one: waiting for the device
 * would ruin it, and the application is about to end it anyway.
 */

#include <stdbool.h>

bool capture_is_active(void);

/* capture_forget() - in the child of a fork. */
void capture_forget(void);

#endif
