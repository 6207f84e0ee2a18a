/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FAKE_NVML_HOST_H
#define FAKE_NVML_HOST_H

/* For our tests: a host over a fake NVML of some age, and a hand inside of that. */

#include <openvgpu/host.h>

#include "base/cleanup.h"
#include "fake/nvml.h"

struct fixture {
        struct vgpu_host *host;
        struct fake_nvml *fake;
        void *library; /* keeps it loaded */
};

/* fixture_open() - over the driver of @age: "610" is the newest. Fails the test if it cannot. */
void fixture_open(struct fixture *fixture, const char *age);
void fixture_close(struct fixture *fixture);

/* fixture_expect() - the last call has failed for @kind, and said @message in its message. */
void fixture_expect(const struct fixture *fixture, int r, enum vgpu_error_kind kind,
                    const char *message);

DEFINE_CLEANUP(struct vgpu_host *, vgpu_host_free);

#endif
