/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state page as NVML's clients map it: whatever stands there, no query reads or writes where it must not.
 *
 * The state page is that of the tests of our NVML library; the input is written over it, a series of: which
 * part, where (two bytes), length, bytes. A part's first 64 KiB can be reached. Then everything that is
 * made of the state page is asked for.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "abi/nvml-accounting.h"
#include "base/cleanup.h"
#include "fuzz/target.h"
#include "nvml/fixture.h"

#define PATCHES_MAX 64
#define PATCH_MAX   255
#define ROOM        8 /* of a list */

static struct fixture *fixture;

/* Writing, and undoing it. */

static struct patch {
        uint8_t *at, was[PATCH_MAX];
        size_t size;
} patches[PATCHES_MAX];
static size_t n_patches;

#define PART(noun)                                                                        \
        {                                                                                 \
                offsetof(struct state_page, noun), sizeof(((struct state_page *)0)->noun) \
        }
static const struct {
        size_t offset, size;
} parts[] = {
        { offsetof(struct state_page, closed),
          offsetof(struct state_page, end) - offsetof(struct state_page, closed) },
        PART(end),
        PART(count),
        PART(host),
        PART(device),
        PART(device_detail),
        PART(features),
        PART(profile),
        PART(gpu_instance),
        PART(offers),
        PART(scheduler),
        PART(type),
        PART(placements),
        PART(instance),
        PART(vm),
        PART(process),
        PART(encoder_session),
        PART(capture_session),
        PART(turn),
        PART(account),
};
#undef PART

static size_t patch(const uint8_t *data, size_t size)
{
        struct patch *patch = &patches[n_patches++];
        size_t part = data[0] % (sizeof(parts) / sizeof(parts[0]));
        size_t at = (data[1] | (size_t)data[2] << 8) % parts[part].size;

        patch->size = data[3] < size - 4 ? data[3] : size - 4;
        if (patch->size > parts[part].size - at)
                patch->size = parts[part].size - at;
        patch->at = (uint8_t *)fixture->state_page + parts[part].offset + at;
        memcpy(patch->was, patch->at, patch->size);
        memcpy(patch->at, data + 4, patch->size);
        return 4 + patch->size;
}

static void undo_patches(void)
{
        while (n_patches > 0) {
                const struct patch *patch = &patches[--n_patches];

                memcpy(patch->at, patch->was, patch->size);
        }
}

/* Asking. Lists and texts are exactly as long as we say, for AddressSanitizer. */

#define LIST(function, of, type)                                         \
        do {                                                             \
                CLEANUP(freep) void *list = malloc(ROOM * sizeof(type)); \
                unsigned int n_listed = 0;                               \
                                                                         \
                (void)function(of, &n_listed, NULL);                     \
                n_listed = ROOM;                                         \
                if (function(of, &n_listed, list) == NVML_SUCCESS)       \
                        assert(n_listed <= ROOM);                        \
        } while (0)

#define TEXT(function, ...)                                          \
        do {                                                         \
                CLEANUP(freep) char *text = malloc(40);              \
                                                                     \
                if (function(__VA_ARGS__, text, 40) == NVML_SUCCESS) \
                        assert(memchr(text, '\0', 40));              \
        } while (0)

static void ask_instance(nvmlVgpuInstance_t instance)
{
        nvmlVgpuLicenseInfo_t licence = { 0 };
        nvmlFBCStats_t capture;
        nvmlVgpuTypeId_t type;
        unsigned long long bytes;
        unsigned int a, b, c;

        TEXT(nvmlVgpuInstanceGetUUID, instance);
        TEXT(nvmlVgpuInstanceGetVmDriverVersion, instance);
        TEXT(nvmlVgpuInstanceGetMdevUUID, instance);
        LIST(nvmlVgpuInstanceGetEncoderSessions, instance, nvmlEncoderSessionInfo_t);
        LIST(nvmlVgpuInstanceGetFBCSessions, instance, nvmlFBCSessionInfo_t);
        LIST(nvmlVgpuInstanceGetAccountingPids, instance, unsigned int);
        (void)nvmlVgpuInstanceGetFbUsage(instance, &bytes);
        (void)nvmlVgpuInstanceGetEncoderStats(instance, &a, &b, &c);
        (void)nvmlVgpuInstanceGetFBCStats(instance, &capture);
        (void)nvmlVgpuInstanceGetLicenseInfo_v2(instance, &licence);
        (void)nvmlVgpuInstanceGetFrameRateLimit(instance, &a);
        if (nvmlVgpuInstanceGetType(instance, &type) == NVML_SUCCESS) {
                CLEANUP(freep) char *name = malloc(40);

                a = 40;
                (void)nvmlVgpuTypeGetName(type, name, &a);
                (void)nvmlVgpuTypeGetFramebufferSize(type, &bytes);
                TEXT(nvmlVgpuTypeGetLicense, type);
        }
}

static void ask_metadata(nvmlDevice_t device)
{
        CLEANUP(freep) nvmlVgpuPgpuMetadata_t *metadata = NULL;
        unsigned int size = 0;

        if (nvmlDeviceGetVgpuMetadata(device, NULL, &size) != NVML_ERROR_INSUFFICIENT_SIZE ||
            size > 65536)
                return;
        metadata = malloc(size);
        (void)nvmlDeviceGetVgpuMetadata(device, metadata, &size);
}

static void ask_device(nvmlDevice_t device)
{
        nvmlVgpuSchedulerLog_t log = { 0 };
        nvmlVgpuSchedulerGetState_t state;
        nvmlVgpuInstanceUtilizationSample_t samples[ROOM];
        nvmlVgpuProcessUtilizationSample_t processes[ROOM];
        nvmlValueType_t kind;
        nvmlUtilization_t utilization;
        nvmlMemory_t memory;
        nvmlPciInfo_t pci;
        unsigned int n = ROOM;

        TEXT(nvmlDeviceGetName, device);
        TEXT(nvmlDeviceGetUUID, device);
        LIST(nvmlDeviceGetActiveVgpus, device, nvmlVgpuInstance_t);
        LIST(nvmlDeviceGetAccountingPids, device, unsigned int);
        LIST(nvmlDeviceGetSupportedVgpus, device, nvmlVgpuTypeId_t);
        LIST(nvmlDeviceGetCreatableVgpus, device, nvmlVgpuTypeId_t);
        LIST(nvmlDeviceGetComputeRunningProcesses_v3, device, nvmlProcessInfo_t);
        LIST(nvmlDeviceGetEncoderSessions, device, nvmlEncoderSessionInfo_t);
        LIST(nvmlDeviceGetFBCSessions, device, nvmlFBCSessionInfo_t);
        (void)nvmlDeviceGetMemoryInfo(device, &memory);
        (void)nvmlDeviceGetUtilizationRates(device, &utilization);
        (void)nvmlDeviceGetPciInfo_v3(device, &pci);
        (void)nvmlDeviceGetVgpuSchedulerLog(device, &log);
        (void)nvmlDeviceGetVgpuSchedulerState(device, &state);
        (void)nvmlDeviceGetVgpuUtilization(device, 0, &kind, &n, samples);
        n = ROOM;
        (void)nvmlDeviceGetVgpuProcessUtilization(device, 0, &n, processes);
        ask_metadata(device);
}

static void ask_all(void)
{
        static const nvmlVgpuInstance_t instances[] = { FIXTURE_TRAIN, FIXTURE_INFER,
                                                        FIXTURE_ASLEEP, 1, UINT32_MAX };
        nvmlDevice_t device;
        unsigned int n = 0;

        (void)nvmlDeviceGetCount_v2(&n);
        for (unsigned int i = 0; i < STATE_DEVICES_MAX + 2; i++)
                if (nvmlDeviceGetHandleByIndex_v2(i, &device) == NVML_SUCCESS)
                        ask_device(device);
        (void)nvmlDeviceGetHandleByUUID(FIXTURE_GPU_1_UUID, &device);
        for (size_t i = 0; i < sizeof(instances) / sizeof(instances[0]); i++)
                ask_instance(instances[i]);
}

static void end(void)
{
        nvmlShutdown();
        fixture = fixture_free(fixture);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        if (!fixture) {
                fixture = fixture_new();
                assert(nvmlInit_v2() == NVML_SUCCESS);
                atexit(end);
        }
        fixture_beat(fixture, 0);
        while (size > 4 && n_patches < PATCHES_MAX) {
                size_t n = patch(data, size);

                data += n;
                size -= n;
        }
        ask_all();
        undo_patches();
        return 0;
}
