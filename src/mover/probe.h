/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOVER_PROBE_H
#define MOVER_PROBE_H

/* probe_print() - the devices that the loaded driver sees, as wire/mover.h says, on stdout. */
int probe_print(void);

#endif
