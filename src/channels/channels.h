/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHANNELS_CHANNELS_H
#define CHANNELS_CHANNELS_H

/*
 * The channel controller: holds processes off a device and lets them on again, in hardware, even in
 * the middle of a kernel, in about a millisecond. Real and simulated devices look the same here.
 *
 * One thread at a time controls all processes of a device.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "state/instance-page.h"

struct channels_host; /* what all processes of a device have in common */
struct channels;      /* of one process */

/* channels_host_new() - @simulation: the simulated host's directory; "": the devices are real. */
int channels_host_new(struct channels_host **ret_host, const char *simulation);
/* channels_host_set_joint() - its processes are on several devices, each on one or on some. */
void channels_host_set_joint(struct channels_host *host, bool is_joint);

struct channels_host *channels_host_free(struct channels_host *host);
DEFINE_CLEANUP(struct channels_host *, channels_host_free);

/*
 * channels_new() - of process @pid
 * @pidfd: borrowed while this lives
 * @told:  where the process tells its channels; borrowed; what it says is checked
 */
int channels_new(struct channels **ret_channels, struct channels_host *host, pid_t pid, int pidfd,
                 const struct instance_page_channels *told);

/* channels_free() - as it is: let it on before. Returns NULL. */
struct channels *channels_free(struct channels *channels);

/*
 * What the keeper must hold so that the process is let on when we die: two descriptors, which
 * belong to @channels. plan_undo() does it.
 */
int channels_get_plan_fd(const struct channels *channels);
int channels_get_process_fd(const struct channels *channels);

/* channels_are_off() - or may be: it could not be let on. */
bool channels_are_off(const struct channels *channels);

/* channels_get_error() - of the last switch of this process, 0 or a negative errno. */
int channels_get_error(const struct channels *channels);

/* channels_have_changed() - it has made channels, or given some up, since the last switch. */
bool channels_have_changed(const struct channels *channels);

/*
 * channels_switch() - let @on on the device, then hold @off off it
 *
 * Who cannot be held off is let on, or stays as it was. Who cannot be let on is off, as
 * channels_are_off() says, and so does its plan: it must be let on again and again until it is.
 * channels_get_error() tells why: -ESRCH, it is gone; -EAGAIN, it is making or freeing channels;
 * -E2BIG, it has more than can be told; -EPERM, we have no right to; -EIO, anything else that the
 * driver had against it.
 */
void channels_switch(struct channels **on, uint32_t n_on, struct channels **off, uint32_t n_off);

#endif
