/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices as the process sees them.
 *
 * After a restore on another device, a device has that one's UUID and memory,
 * but its bus id is still the old one, and so are its attributes: the real
 * driver reads those once.
 */

#include "sim/device.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define UUID_TEXT_MAX 48

static void format_uuid(char *text, const uint8_t *uuid)
{
        char *at = text + sprintf(text, "GPU-");

        for (int i = 0; i < 16; i++)
                at += sprintf(at, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x",
                              uuid[i]);
}

/* The host's device that @word means: an index or the beginning of one UUID; -1: none. */
static int find_named(const char *word)
{
        char *end;
        long index = strtol(word, &end, 10);
        int found = -1;

        if (end != word && *end == '\0')
                return index >= 0 && index < (long)process.holdings.view.host->n_devices
                               ? (int)index
                               : -1;
        for (uint32_t i = 0; i < process.holdings.view.host->n_devices; i++) {
                char text[UUID_TEXT_MAX];

                format_uuid(text, process.host_device[i].uuid);
                if (strncasecmp(text, word, strlen(word)) == 0 && *word) {
                        if (found >= 0)
                                return -1; /* more than one begins like this */
                        found = (int)i;
                }
        }
        return found;
}

static bool is_selected(int n, int at)
{
        for (int i = 0; i < n; i++)
                if (process.device[i].at == at)
                        return true;
        return false;
}

/* As documented: the list ends before the first name that is not one, or that comes again. */
int device_select(const char *visible)
{
        CLEANUP(freep) char *copy = visible ? strdup(visible) : NULL;
        char *rest = NULL;
        int n = 0;

        if (!visible) {
                for (; n < (int)process.holdings.view.host->n_devices; n++)
                        process.device[n].at = process.device[n].home = n;
                return n;
        }
        for (char *word = copy ? strtok_r(copy, ", ", &rest) : NULL; word;
             word = strtok_r(NULL, ", ", &rest)) {
                int at = find_named(word);

                if (at < 0 || is_selected(n, at))
                        break;
                process.device[n].at = process.device[n].home = at;
                n++;
        }
        return n;
}

static const struct host_device *device_host(const struct device *device)
{
        return &process.host_device[device->at];
}

static const struct host_device *home(const struct device *device)
{
        return &process.host_device[device->home];
}

CUresult sim_cuDeviceGet(CUdevice *device, int ordinal)
{
        if (!device)
                return CUDA_ERROR_INVALID_VALUE;
        if (!process_device(ordinal))
                return CUDA_ERROR_INVALID_DEVICE;
        *device = ordinal;
        return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetCount(int *count)
{
        if (!count)
                return CUDA_ERROR_INVALID_VALUE;
        *count = process.n_devices;
        return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetName(char *name, int length, CUdevice device)
{
        if (!name || length <= 0)
                return CUDA_ERROR_INVALID_VALUE;
        if (!process_device(device))
                return CUDA_ERROR_INVALID_DEVICE;
        (void)snprintf(name, (size_t)length, "%s", device_host(process_device(device))->name);
        return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
        if (!uuid)
                return CUDA_ERROR_INVALID_VALUE;
        if (!process_device(device))
                return CUDA_ERROR_INVALID_DEVICE;
        memcpy(uuid->bytes, device_host(process_device(device))->uuid, sizeof(uuid->bytes));
        return CUDA_SUCCESS;
}

CUresult sim_cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
        if (!bytes)
                return CUDA_ERROR_INVALID_VALUE;
        if (!process_device(device))
                return CUDA_ERROR_INVALID_DEVICE;
        *bytes = device_host(process_device(device))->memory;
        return CUDA_SUCCESS;
}

static void format_bus_id(char *text, size_t size, const struct host_device *device)
{
        (void)snprintf(text, size, "%04x:%02x:%02x.0", device->pci_domain, device->pci_bus,
                       device->pci_device);
}

CUresult sim_cuDeviceGetPCIBusId(char *id, int length, CUdevice device)
{
        if (!id || length <= 0)
                return CUDA_ERROR_INVALID_VALUE;
        if (!process_device(device))
                return CUDA_ERROR_INVALID_DEVICE;
        format_bus_id(id, (size_t)length, home(process_device(device)));
        for (; *id; id++)
                *id = (char)toupper(*id);
        return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetByPCIBusId(CUdevice *device, const char *id)
{
        if (!device || !id)
                return CUDA_ERROR_INVALID_VALUE;
        for (int i = 0; i < process.n_devices; i++) {
                char text[32];

                format_bus_id(text, sizeof(text), home(&process.device[i]));
                if (strcasecmp(text, id) == 0 || strcasecmp(text + 5, id) == 0) {
                        *device = i;
                        return CUDA_SUCCESS;
                }
        }
        return CUDA_ERROR_INVALID_DEVICE;
}

bool device_has_peers(void)
{
        const char *wanted = getenv("OPENVGPU_SIM_PEER");

        return !wanted || strcmp(wanted, "0") != 0;
}

CUresult sim_cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
        if (!can)
                return CUDA_ERROR_INVALID_VALUE;
        if (!process_device(device) || !process_device(peer))
                return CUDA_ERROR_INVALID_DEVICE;
        *can = device != peer && device_has_peers();
        return CUDA_SUCCESS;
}

#define P2P_PERFORMANCE_RANK 1
#define P2P_ATTRIBUTES       4

CUresult sim_cuDeviceGetP2PAttribute(int *value, int attribute, CUdevice device, CUdevice peer)
{
        if (!value || attribute < P2P_PERFORMANCE_RANK || attribute > P2P_ATTRIBUTES)
                return CUDA_ERROR_INVALID_VALUE;
        if (!process_device(device) || !process_device(peer) || device == peer)
                return CUDA_ERROR_INVALID_DEVICE;
        *value =
                attribute != P2P_PERFORMANCE_RANK && device_has_peers(); /* rank 0 is the fastest */
        return CUDA_SUCCESS;
}

CUresult sim_cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
        if (!major || !minor)
                return CUDA_ERROR_INVALID_VALUE;
        if (!process_device(device))
                return CUDA_ERROR_INVALID_DEVICE;
        *major = (int)home(process_device(device))->compute_major;
        *minor = (int)home(process_device(device))->compute_minor;
        return CUDA_SUCCESS;
}

/* The greatest attribute of API version 13000. */
#define ATTRIBUTES_MAX 145

/* Attributes that are the same for all kinds: figures of an H200. What is not listed is 0. */
static const int attributes[ATTRIBUTES_MAX + 1] = {
        [1] = 1024,
        [2] = 1024,
        [3] = 1024,
        [4] = 64, /* block */
        [5] = 2147483647,
        [6] = 65535,
        [7] = 65535, /* grid */
        [8] = 49152, /* shared memory of a block */
        [9] = 65536, /* constant memory */
        [CU_DEVICE_ATTRIBUTE_WARP_SIZE] = 32,
        [11] = 2147483647, /* pitch */
        [12] = 65536,      /* registers of a block */
        [CU_DEVICE_ATTRIBUTE_CLOCK_RATE] = 1980000,
        [CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT] = 512,
        [15] = 1, /* overlap of copies and kernels */
        [CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY] = 1,
        [30] = 512,      /* surface alignment */
        [31] = 1,        /* concurrent kernels */
        [32] = 1,        /* ECC */
        [36] = 3201000,  /* memory clock */
        [37] = 6144,     /* memory bus width */
        [38] = 62914560, /* L2 */
        [39] = 2048,     /* threads of a multiprocessor */
        [40] = 3,        /* copy engines */
        [CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING] = 1,
        [CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT] = 32,
        [78] = 1, /* stream priorities */
        [79] = 1,
        [80] = 1,
        [81] = 233472,
        [82] = 65536,
        [CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY] = 1,
        [89] = 1, /* concurrent managed access */
        [90] = 1, /* compute preemption */
        [91] = 1, /* host pointer of registered memory */
        [95] = 1, /* cooperative launch */
        [97] = 232448,
        [99] = 1, /* host registration */
        [CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED] = 1,
        [CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED] = 1,
        [106] = 32, /* blocks of a multiprocessor */
        [CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED] = 1,
        [111] = 1024, /* reserved shared memory */
        [CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED] = 1,
        [116] = 1, /* GPUDirect RDMA */
        [119] = 1, /* pools: handles that are file descriptors */
};

CUresult sim_cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
        const struct host_device *host;

        if (!value || (int)attribute < 1 || (int)attribute > ATTRIBUTES_MAX)
                return CUDA_ERROR_INVALID_VALUE;
        if (!process_device(device))
                return CUDA_ERROR_INVALID_DEVICE;
        host = home(process_device(device));
        switch ((int)attribute) {
        case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
                *value = (int)host->multiprocessors;
                break;
        case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
                *value = (int)host->pci_bus;
                break;
        case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
                *value = (int)host->pci_device;
                break;
        case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
                *value = (int)host->pci_domain;
                break;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
                *value = (int)host->compute_major;
                break;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
                *value = (int)host->compute_minor;
                break;
        default:
                *value = attributes[attribute];
        }
        return CUDA_SUCCESS;
}
