/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_CHANNEL_H
#define GATE_CHANNEL_H

/*
 * The channels by which the driver's library gives the graphics engine work. It makes them by ioctl
 * on the device nodes of its kernel module; the gate looks on and tells them in the instance page,
 * so that the manager can keep the process off the device and let it on again.
 *
 * Only channels on the graphics engine, where kernels run: copies and video go on at any time.
 */

/* channel_note() - the ioctl @request on @fd with @argument has succeeded. */
void channel_note(int fd, unsigned long request, const void *argument);

/* channel_publish() - write them all into the instance page, which is new. */
void channel_publish(void);

/* channel_forget() - in the child of a fork: they are the parent's. */
void channel_forget(void);

#endif
