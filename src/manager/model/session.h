/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_SESSION_H
#define MANAGER_SESSION_H

/*
 * The encoder and capture sessions of a guest process, as NVIDIA's library tells them of its device: each
 * time all that are there. One that was not told since the last time has ended, and they all end with the
 * process.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "wire/sampler.h"

struct device;
struct guest;
struct manager;

struct session {
        struct list link; /* in guest->sessions */
        const struct device *device;
        bool is_capture;
        bool is_there; /* told since the last session_settle() */
        uint64_t start_us;
        uint32_t state_slot; /* UINT32_MAX: not published yet */
        struct sampler_session told;
};

/* session_tell() - of @guest there is this one on @device. */
void session_tell(struct guest *guest, const struct device *device, bool is_capture,
                  const struct sampler_session *told);

/* session_settle() - of processes on @device all were told that there are. */
void session_settle(struct device *device);

/* session_drop() - forget those of @guest; session_drop_all() - nobody tells them any more. */
void session_drop(struct guest *guest);
void session_drop_all(struct manager *manager);

#endif
