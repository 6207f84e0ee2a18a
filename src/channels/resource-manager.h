/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHANNELS_RESOURCE_MANAGER_H
#define CHANNELS_RESOURCE_MANAGER_H

/*
 * Puts channels of real devices on their run list and takes them off, through the resource manager
 * of a stock driver.
 *
 * Each call goes through a duplicate of the process' own descriptor. The duplicate is closed after
 * the call, because it would keep the process' device memory alive. A process can name only its own
 * channels: the descriptor is checked before and after it is duplicated (it must be NVIDIA's
 * control node), and the kernel module is asked whether the client was made on it. This is asked
 * each time, because the calls that take channels off the run list trust the clients in their list.
 *
 * Needs CAP_SYS_NICE (to restart the run list) and the right to ptrace the process.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "state/instance-page.h"

/* Of a process: one for each of its devices. */
#define RM_CLIENTS_MAX 8

struct rm_process {
        int pidfd;
        pid_t pid; /* where its descriptors can be looked at before they are duplicated; 0: nowhere */
        uint32_t n_wrong; /* that were no control node after all */
        uint32_t n;
        struct instance_page_channel channel[INSTANCE_PAGE_CHANNELS];

        int error; /* of the last switch: 0 or a negative errno; -ESRCH: it is gone, or they are */
        bool is_stuck; /* some of its channels may be off the run list all the same */

        /* While a switch is under way: those that are its own, and the descriptors of their clients. */
        bool is_touched; /* it was tried to take some off */
        uint32_t n_own;
        struct instance_page_channel own[INSTANCE_PAGE_CHANNELS];
        uint32_t n_clients;
        struct {
                uint32_t client;
                int fd;
        } client[RM_CLIENTS_MAX];
};

/*
 * rm_switch() - let the processes of @on run, then take those of @off off the device, which takes
 * effect before this returns. All are on one device, or @is_joint: then, and where a process has several,
 * each device is told of its own channels alone.
 *
 * Who fails has its error set, and the others are switched all the same. Who cannot be taken off is
 * let on again; is_stuck: that has failed too, or it could not be let on in the first place.
 * Returns the worst error of the common calls, or 0.
 */
int rm_switch(struct rm_process **on, uint32_t n_on, struct rm_process **off, uint32_t n_off,
              bool is_joint);

#endif
