/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCENARIO_CHECK_H
#define SCENARIO_CHECK_H

/* Shared by check.c and check-vgpu.c. */

#include "scenario/scenario.h"

int check_vgpus(struct scenario *scenario, struct reader *reader);

#endif
