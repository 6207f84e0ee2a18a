/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_HOST_H
#define SIM_HOST_H

/*
 * The simulated host is a directory that stands for a machine with GPUs.
 *
 * Whoever wants such a machine creates the directory and starts programs with
 * OPENVGPU_SIM set to it and the simulated libcuda.so.1 as their driver. The
 * processes share the devices' memory and time through the directory; nothing
 * runs in between, so nothing has to be started or stopped.
 */

#include "base/paths.h"

/* This variable names the directory to the simulated driver. */
#define SIM_HOST_VARIABLE "OPENVGPU_SIM"

/*
 * A host has room for some 2000 processes. Whoever runs it sets this for programs of his own (the movers),
 * and they find room also when the others have taken all of theirs.
 */
#define SIM_HOST_OWN_VARIABLE "OPENVGPU_SIM_OWN"

/*
 * sim_host_create() - make @directory a host with the devices of @specification
 *
 * A specification is a list of COUNTxKIND:MEMORY, of which only the kind must be given: "2xH200",
 * "2xH200:2G", "H200,L4". Kinds are listed by sim_host_kinds(). A host that is there already with
 * the same specification is kept as it is, with its processes.
 *
 * Errors: -EINVAL (not a specification), -EBUSY (another host with live processes is there),
 * -EOPNOTSUPP (no file system for device memory found: a tmpfs, such as /dev/shm, is needed).
 */
int sim_host_create(const char *directory, const char *specification);

/* sim_host_check() - how many devices does the specification have? Errors: -EINVAL, -ENOMEM. */
int sim_host_check(const char *specification);

/*
 * sim_host_remove() - remove the host in @directory and its devices' memory. Without it nothing
 * lasts but a few files, and memory that was shared by processes that were killed: who creates the next host sweeps that up.
 * Errors: -EBUSY (a process uses it), -ENOENT.
 */
int sim_host_remove(const char *directory);

/*
 * sim_host_sweep() - remove what the host in @directory, and others of this user, have of memory that no process holds
 * any more
 */
void sim_host_sweep(const char *directory);

/* sim_host_kinds() - list the names of all kinds of devices, separated by ", ". */
const char *sim_host_kinds(void);

#endif
