/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_SIMULATED_H
#define GATE_SIMULATED_H

#include <stdbool.h>

#include "state/instance-page.h"

/*
 * simulated_mend() - have the simulated driver make its contexts whole again, which has no rings to do it by
 *
 * False: no context was restored, or this is a real driver.
 */
bool simulated_mend(enum instance_page_whole *ret_whole);

#endif
