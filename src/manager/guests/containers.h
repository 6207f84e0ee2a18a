/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_CONTAINERS_H
#define MANAGER_CONTAINERS_H

/*
 * vGPUs in containers: the CDI file of --cdi (cdi/specification.h), and for each vGPU a door.
 *
 * A door is a folder that a container engine mounts into a container: a gate socket where this vGPU can be
 * joined and no other, by whatever user the container has, and the state page. Who gets a door is for whoever
 * starts the container to say, who is root or we: the folder that the doors are in is closed to others.
 *
 * A folder, because a container keeps the file that it was given: the socket and the state page of the next
 * manager are new files in the same folder. So the doors outlive us, the CDI file does not.
 */

#include "daemon/failure.h"

struct containers;
struct manager;

/* containers_new() - *@ret_containers is NULL without --cdi. */
int containers_new(struct containers **ret_containers, struct manager *manager,
                   struct failure *failure);

/* containers_free() - before the manager is freed. Returns NULL. */
struct containers *containers_free(struct containers *containers);

#endif
