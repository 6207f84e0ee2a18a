/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_CHANNEL_H
#define GATE_CHANNEL_H

/*
 * The driver's library submits work to the graphics engine through channels (object.h). The gate lists them in the
 * instance page, so that the manager can hold the process off the device and let it on.
 *
 * Only channels on the graphics engine are listed, because kernels run there; copies and video
 * continue at any time.
 */

/* channel_publish() - write all channels into the instance page: it is new, or they have changed. */
void channel_publish(void);

#endif
