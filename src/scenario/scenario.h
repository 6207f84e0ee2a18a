/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCENARIO_SCENARIO_H
#define SCENARIO_SCENARIO_H

/*
 * A scenario: a host with devices and vGPUs as a JSON file describes them (docs/scenarios.md), and
 * their changes over time. Nothing runs in its vGPUs: only NVML shows them.
 *
 * Reading a file finds everything that is wrong with it. Texts and entries belong to the scenario,
 * which never changes after it was read.
 */

#include "base/cleanup.h"
#include "scenario/parts.h"

/* What NVML's clients are shown as the driver of a simulated host: three numbers, as they expect. */
#define SCENARIO_DRIVER_VERSION "580.00.00"

#define SCENARIO_PROBLEM_MAX 1024

/*
 * scenario_load() - read and check a file
 * @problem:  of SCENARIO_PROBLEM_MAX bytes: on an error, "PLACE: what; allowed: ...", one line
 *
 * Errors: -EINVAL, or that of opening the file.
 */
int scenario_load(struct scenario **ret_scenario, const char *path, char *problem);
struct scenario *scenario_free(struct scenario *scenario);
DEFINE_CLEANUP(struct scenario *, scenario_free);

/* scenario_format_devices() - as the simulated host wants them: "H200,L4:8G"; -ENAMETOOLONG. */
int scenario_format_devices(const struct scenario *scenario, char *text, size_t size);

/* scenario_list_types() - the types that the device offers, into @types of STATE_OFFERS_MAX. */
uint32_t scenario_list_types(const struct scenario_device *device, struct catalog_type *types);

/* scenario_lives() - is it there at @seconds? */
static inline bool scenario_lives(const struct scenario_life *life, double seconds)
{
        return seconds >= life->from && (life->until <= 0 || seconds < life->until);
}

#endif
