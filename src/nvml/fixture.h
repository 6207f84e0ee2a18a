/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NVML_FIXTURE_H
#define NVML_FIXTURE_H

/*
 * The fixture of our tests makes a manager's state page in a run directory of its own, with two devices,
 * two active vGPUs and a suspended one on the first device, and two processes.
 */

#include "abi/nvml-vgpu-calls.h"
#include "base/paths.h"
#include "base/size.h"
#include "state/state-page.h"

#define FIXTURE_TRAIN  11u /* 32 GiB, 6 GiB used, busy */
#define FIXTURE_INFER  3000000012u
#define FIXTURE_ASLEEP 13u

#define FIXTURE_TRAIN_UUID "e5c1b1a0-0000-4000-8000-000000000000"
#define FIXTURE_GPU_0_UUID "GPU-11111111-2222-3333-4444-555555555550"
#define FIXTURE_GPU_1_UUID "GPU-11111111-2222-3333-4444-555555555551"
#define FIXTURE_MEMORY     (143771 * MIB)

#define FIXTURE_VGPU_VERSION (1u << 16)

struct fixture {
        char directory[64];
        char path[PATHS_MAX];
        struct state_page *state_page;
};

/* fixture_new() - publish the state page and point our library to it; fixture_free() - take it away. */
struct fixture *fixture_new(void);
struct fixture *fixture_free(struct fixture *fixture);

/* fixture_publish() - put another state page at the same place, as a manager does that starts anew. */
void fixture_publish(struct fixture *fixture);

/* fixture_update_offers() - publish what fits beside the device's vGPUs, after one of them has changed. */
void fixture_update_offers(struct fixture *fixture, uint32_t device);

/* fixture_beat() - beat as a manager does many times a second; @ago_ns: pretend that it was so long ago. */
void fixture_beat(struct fixture *fixture, uint64_t ago_ns);

/* Setup and teardown of cmocka: *state is the fixture, the library is initialised. */
int fixture_setup(void **state);
int fixture_teardown(void **state);

#endif
