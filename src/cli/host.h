/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_HOST_H
#define CLI_HOST_H

/* Shared by the commands that ask NVML. */

#include <openvgpu/host.h>
#include <openvgpu/instance.h>

#include "base/cleanup.h"
#include "cli/arguments.h"
#include "cli/instance.h"
#include "cli/listing.h"

DEFINE_CLEANUP(struct vgpu_host *, vgpu_host_free);

#define HOST_OPTION_DEVICE                                                               \
        {                                                                                \
                .name = "device", .argument = "DEVICE",                                  \
                .help = "only this GPU: index, UUID, beginning of a UUID or PCI address" \
        }

#define HOST_OPTION_GPU_INSTANCE                                                           \
        {                                                                                  \
                .name = "gpu-instance", .argument = "ID",                                  \
                .help = "use this GPU instance (MIG) of --device instead of the whole GPU" \
        }

/* host_get_gpu_instance() - --gpu-instance, or VGPU_WHOLE_DEVICE. Returns an exit code. */
int host_get_gpu_instance(const struct arguments *arguments, uint32_t *ret_gpu_instance);

/* host_new() - over the NVML that is found. Returns an exit code. */
int host_new(const struct arguments *arguments, struct vgpu_host **ret_host);

/* host_say_error() - the last call of @host failed. Returns the exit code. */
int host_say_error(const struct arguments *arguments, const struct vgpu_host *host);

/*
 * host_each_device() - @add for the device of --device, or for all that host vGPUs. One that fails
 * is told, and the others come nevertheless. Returns an exit code.
 * @add:  returns what the library did
 */
int host_each_device(const struct arguments *arguments, struct vgpu_host *host,
                     int (*add)(struct vgpu_host *host, uint32_t device, void *userdata),
                     void *userdata);

/*
 * host_find_instance() - the id of the vGPU that the user calls @word: by name if vgpud answers,
 * else by UUID or id
 * @ret_record:  what vgpud says of it, or NULL; vgpu_instance_free()
 *
 * Returns an exit code. A suspended vGPU is found with the id 0 if @ret_record is given.
 */
int host_find_instance(const struct arguments *arguments, struct vgpu_client *client,
                       struct vgpu_host *host, const char *word, uint32_t *ret_instance,
                       struct vgpu_instance **ret_record);

/* host_get_name() - what vgpud calls the vGPU, from its @list, which may be NULL; "-" if unknown. */
const char *host_get_name(const struct vgpu_instance_list *list, uint32_t instance);

/*
 * host_list_instances() - print what @add says of the vGPU of the first word, or of all that are
 * active. Returns an exit code.
 * @key:  as for listing_print()
 * @add:  adds rows to @listing; returns what the library did
 */
int host_list_instances(const struct arguments *arguments, struct vgpu_client *client,
                        const struct column *columns, const char *key,
                        int (*add)(struct vgpu_host *host, uint32_t device, uint32_t instance,
                                   const char *name, struct listing *listing));

/* host_parse_switch() - "on" or "off". Returns an exit code. */
int host_parse_switch(const struct arguments *arguments, const char *word, bool *ret_is_on);

#endif
