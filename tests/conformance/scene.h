/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFORMANCE_SCENE_H
#define CONFORMANCE_SCENE_H

/*
 * What the rows of the conformance test play on: a host with devices of every sort and vGPUs in
 * every state, on a state page that a test wrote; and a manager that answers as a situation wants.
 *
 *     device 0  hosts vGPUs, of mixed sizes; what a row calls "the device"
 *     device 1  hosts vGPUs, has none
 *     device 2  hosts vGPUs in GPU instances (MIG), which they can share
 *     device 3  hosts none, but has a GPU instance
 *     device 4  has fallen off the bus
 */

#include "abi/nvml-mig.h"
#include "abi/nvml-vgpu-calls.h"
#include "fake/manager.h"
#include "nvml/fixture.h"

/* vGPUs, beside those of the fixture: FIXTURE_TRAIN runs and has everything. */
#define SCENE_STOPPED 14u /* its machine has a driver that does not run; no accounting, no ECC */
#define SCENE_PLAIN   15u /* accounting is off, frames are limited */
#define SCENE_MIGGED  16u /* in the first GPU instance of device 2 */
#define SCENE_NOBODY  99u /* no such vGPU */

#define SCENE_MIG_TYPE 0x233580u
#define SCENE_NO_TYPE  0x1u

enum situation {
        HOST,    /* nobody is asked to change anything */
        GUEST,   /* in the vGPU FIXTURE_TRAIN */
        ACCEPTS, /* the manager makes the change */
        DENIES,  /* ... does not let us */
        BUSY,    /* ... has active vGPUs in the way */
        REFUSES, /* ... cannot */
        BROKEN,  /* ... makes no sense */
        N_SITUATIONS,
};

struct scene {
        enum situation situation;
        struct fixture *fixture;
        struct fake_manager *manager;

        nvmlDevice_t device, empty, mig, bare, lost;
        nvmlGpuInstance_t gi;       /* sizes mix in it, and a vGPU is there */
        nvmlGpuInstance_t gi_empty; /* one size only, no vGPU */
        nvmlGpuInstance_t gi_bare;  /* on the device that hosts no vGPUs */
        nvmlVgpuTypeId_t type;      /* of FIXTURE_TRAIN, shares time */

        nvmlVgpuMetadata_t *vgpu_blob;     /* of FIXTURE_TRAIN; NULL in a guest */
        nvmlVgpuPgpuMetadata_t *pgpu_blob; /* of device 1 */
        unsigned char blobs[2][1024];
};

/* scene_new() - set it up, with our library initialised; scene_free() - take it down. */
struct scene *scene_new(enum situation situation);
struct scene *scene_free(struct scene *scene);

#endif
