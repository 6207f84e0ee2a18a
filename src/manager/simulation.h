/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_SIMULATION_H
#define MANAGER_SIMULATION_H

/* vgpud --simulate: the simulated host below the run directory, and the driver that shows it. */

#include "daemon/failure.h"

struct manager;
struct options;

/* simulation_start() - make the host, or go on with the one of a former manager. */
int simulation_start(struct manager *manager, struct failure *failure);

/* simulation_play() - the same with the devices of --scenario, which is read. */
int simulation_play(struct manager *manager, struct failure *failure);

/* simulation_check() - how many devices would --simulate or --scenario make? 0: neither. InvalidParameter. */
int simulation_check(const struct options *options, struct failure *failure);

/* simulation_end() - forget the scenario, with its devices: it begins anew each time. */
void simulation_end(struct manager *manager);

#endif
