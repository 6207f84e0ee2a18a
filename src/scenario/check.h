/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCENARIO_CHECK_H
#define SCENARIO_CHECK_H

/* Shared by check.c and check-vgpu.c. */

#include <errno.h>
#include <stdarg.h>

#include "scenario/scenario.h"

/* check_at() - the place that the next failure is about. */
__attribute__((format(printf, 2, 3))) void check_at(struct reader *reader, const char *format, ...);

int check_vgpus(struct scenario *scenario, struct reader *reader);

#endif
