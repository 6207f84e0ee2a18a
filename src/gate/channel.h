/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_CHANNEL_H
#define GATE_CHANNEL_H

/*
 * The driver's library submits work to the graphics engine through channels. It makes them by ioctl on
 * the device nodes of its kernel module. The gate watches these ioctls and
 * lists the channels in the instance page, so that the manager can hold the process off the device
 * and let it on.
 *
 * Only channels on the graphics engine are listed, because kernels run there; copies and video
 * continue at any time.
 */

/* channel_note() - note that the ioctl @request on @fd with @argument has succeeded. */
void channel_note(int fd, unsigned long request, const void *argument);

/* channel_publish() - write all channels into the instance page, which is new. */
void channel_publish(void);

#endif
