/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_DESCRIPTORS_H
#define BASE_DESCRIPTORS_H

/*
 * descriptors_make_room() - make room for tens of thousands of descriptors of device memory
 *
 * Call it before the process has threads. The kernel doubles a process' table of descriptors as
 * they come. With threads, it waits each time until all CPUs have noticed: tens of milliseconds in
 * which an event loop serves nobody. The soft limit is raised to the hard limit.
 */
void descriptors_make_room(void);

#endif
