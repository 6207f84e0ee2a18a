/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells which CPUs and which memory are near a device. A device that does not exist is equally near to
 * all CPUs and memory of this machine that are in use, as sysfs lists them. Only these questions read
 * files.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "nvml/slots.h"
#include "nvml/view.h"

#define CPUS  "/sys/devices/system/cpu/online"
#define NODES "/sys/devices/system/node/online"

#define WORD_BITS (sizeof(unsigned long) * CHAR_BIT)

/* A kernel may know neither of them: then there is one, with the number 0. */
static void read_list(char *text, size_t size, const char *path)
{
        CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

        text[n > 0 ? n : 0] = '\0';
        if (n <= 0)
                strcpy(text, "0");
}

/* Ranges: "0-3,8". What does not fit into @size words is left out. */
static void set_bits(unsigned long *words, unsigned int size, char *list)
{
        char *rest = list;

        memset(words, 0, size * sizeof(*words));
        while (*rest >= '0' && *rest <= '9') {
                unsigned long first = strtoul(rest, &rest, 10);
                unsigned long last = *rest == '-' ? strtoul(rest + 1, &rest, 10) : first;

                for (unsigned long i = first; i <= last && i < size * WORD_BITS; i++)
                        words[i / WORD_BITS] |= 1ul << i % WORD_BITS;
                if (*rest == ',')
                        rest++;
        }
}

static nvmlReturn_t answer(nvmlDevice_t handle, unsigned int size, unsigned long *words,
                           nvmlAffinityScope_t scope, const char *path)
{
        struct state_device device;
        bool is_valid = size > 0 && words && scope <= NVML_AFFINITY_SCOPE_SOCKET;
        nvmlReturn_t r = view_device(&device, handle, is_valid);
        int saved_errno = errno;
        char list[1024];

        if (r != NVML_SUCCESS)
                return r;
        read_list(list, sizeof(list), path);
        set_bits(words, size, list);
        errno = saved_errno;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t handle, unsigned int size,
                                                     unsigned long *cpus, nvmlAffinityScope_t scope)
{
        return answer(handle, size, cpus, scope, CPUS);
}

nvmlReturn_t our_nvmlDeviceGetCpuAffinity(nvmlDevice_t handle, unsigned int size,
                                          unsigned long *cpus)
{
        return answer(handle, size, cpus, NVML_AFFINITY_SCOPE_NODE, CPUS);
}

nvmlReturn_t our_nvmlDeviceGetMemoryAffinity(nvmlDevice_t handle, unsigned int size,
                                             unsigned long *nodes, nvmlAffinityScope_t scope)
{
        return answer(handle, size, nodes, scope, NODES);
}
