/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_DESCRIPTORS_H
#define BASE_DESCRIPTORS_H

/*
 * descriptors_make_room() - for tens of thousands, each a piece of somebody's device memory
 *
 * To be called before the process has threads, or it takes some time: the kernel doubles its table of a
 * process's descriptors as they come, and with threads waits each time until all CPUs have noticed, which is
 * tens of milliseconds in which a loop serves nobody. The soft limit becomes the hard one.
 */
void descriptors_make_room(void);

#endif
