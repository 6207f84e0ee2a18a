/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/device.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "checkpoint/driver.h"

#define NOWHERE UINT32_MAX

char *device_format_uuid(char *text, const CUuuid *uuid)
{
        const unsigned char *b = uuid->bytes;

        snprintf(text, DEVICE_UUID_MAX,
                 "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
                 b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
                 b[14], b[15]);
        return text;
}

static CUresult read_one(struct device *device, int ordinal, const char **ret_call)
{
        size_t memory = 0;
        CUdevice id;
        CUresult code;

        *ret_call = "cuDeviceGet";
        code = driver.cuDeviceGet(&id, ordinal);
        if (code == CUDA_SUCCESS) {
                *ret_call = "cuDeviceGetUuid";
                code = driver.cuDeviceGetUuid(&device->uuid, id);
        }
        if (code == CUDA_SUCCESS) {
                *ret_call = "cuDeviceGetName";
                code = driver.cuDeviceGetName(device->name, sizeof(device->name), id);
        }
        if (code == CUDA_SUCCESS) {
                *ret_call = "cuDeviceTotalMem";
                code = driver.cuDeviceTotalMem_v2(&memory, id);
        }
        device->memory = memory;
        return code;
}

int device_list_read(struct device_list *list, const char **ret_call, CUresult *ret_code)
{
        int n = 0;

        *ret_call = "cuDeviceGetCount";
        *ret_code = driver.cuDeviceGetCount(&n);
        list->n = 0;
        for (int i = 0; i < n && i < CHECKPOINT_PAIRS_MAX && *ret_code == CUDA_SUCCESS; i++) {
                *ret_code = read_one(&list->device[i], i, ret_call);
                if (*ret_code == CUDA_SUCCESS)
                        list->n++;
        }
        return *ret_code == CUDA_SUCCESS ? 0 : -EIO;
}

static bool is_index(const char *text)
{
        return *text && strspn(text, "0123456789") == strlen(text) && strlen(text) <= 3;
}

/* "GPU-1a2b", "1a2b" and "1a2b..." in full: the beginning of the UUID, with or without "GPU-". */
static bool has_uuid(const struct device *device, const char *text)
{
        char uuid[DEVICE_UUID_MAX];
        const char *begin = device_format_uuid(uuid, &device->uuid);

        if (strncasecmp(text, "GPU-", 4) != 0)
                begin += 4;
        return *text && strncasecmp(begin, text, strlen(text)) == 0;
}

static int find(unsigned int *ret_device, const struct device_list *list, const char *text,
                char *problem, size_t room)
{
        unsigned int n_found = 0;

        if (is_index(text)) {
                *ret_device = (unsigned int)strtoul(text, NULL, 10);
                if (*ret_device < list->n)
                        return 0;
                snprintf(problem, room, "there is no device %s: this host has %u", text, list->n);
                return -EINVAL;
        }
        for (unsigned int i = 0; i < list->n; i++) {
                if (has_uuid(&list->device[i], text)) {
                        *ret_device = i;
                        n_found++;
                }
        }
        if (n_found == 1)
                return 0;
        snprintf(problem, room,
                 n_found ? "'%s' is the beginning of several UUIDs" : "no device is called '%s'",
                 text);
        return -EINVAL;
}

/* Moves form chains; the last of a chain goes where the first one was. */
static void close_rings(unsigned int *to, const bool *is_taken, unsigned int n)
{
        for (unsigned int i = 0; i < n; i++) {
                unsigned int last = i;

                if (to[i] == NOWHERE || is_taken[i])
                        continue;
                while (to[last] != NOWHERE)
                        last = to[last];
                to[last] = i;
        }
        for (unsigned int i = 0; i < n; i++)
                if (to[i] == NOWHERE)
                        to[i] = i;
}

static int add_move(unsigned int *to, bool *is_taken, const struct device_list *list,
                    const struct checkpoint_wire_pair *move, char *problem, size_t room)
{
        unsigned int old, new;

        if (find(&old, list, move->from, problem, room) < 0 ||
            find(&new, list, move->to, problem, room) < 0)
                return -EINVAL;
        if (to[old] != NOWHERE || is_taken[new]) {
                snprintf(problem, room, "device %s is %s twice",
                         is_taken[new] ? move->to : move->from,
                         is_taken[new] ? "the target" : "moved");
                return -EINVAL;
        }
        if (strcmp(list->device[old].name, list->device[new].name) != 0 ||
            list->device[old].memory != list->device[new].memory) {
                snprintf(
                        problem, room,
                        "device %s (%s) and device %s (%s) are of different kinds: a context moves "
                        "only between equal ones",
                        move->from, list->device[old].name, move->to, list->device[new].name);
                return -EINVAL;
        }
        to[old] = new;
        is_taken[new] = true;
        return 0;
}

int pairs_make(struct pairs *pairs, const struct device_list *list,
               const struct checkpoint_wire_pair *moves, size_t n_moves, char *problem, size_t room)
{
        bool is_taken[CHECKPOINT_PAIRS_MAX] = { false };

        for (unsigned int i = 0; i < CHECKPOINT_PAIRS_MAX; i++)
                pairs->to[i] = NOWHERE;
        for (size_t i = 0; i < n_moves; i++)
                if (add_move(pairs->to, is_taken, list, &moves[i], problem, room) < 0)
                        return -EINVAL;
        close_rings(pairs->to, is_taken, list->n);
        pairs->n = n_moves > 0 ? list->n : 0;
        for (unsigned int i = 0; i < pairs->n; i++) {
                pairs->pair[i].oldUuid = list->device[i].uuid;
                pairs->pair[i].newUuid = list->device[pairs->to[i]].uuid;
        }
        return 0;
}
