/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_MANAGER_PID_H
#define BASE_MANAGER_PID_H

/* In the run directory: the number of the manager's process, which holds a lock on it (daemon/run-lock.h). */
#define MANAGER_PID_FILE "vgpud.pid"

#endif
