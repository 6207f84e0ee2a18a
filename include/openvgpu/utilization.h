/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENVGPU_UTILIZATION_H
#define OPENVGPU_UTILIZATION_H

/*
 * Utilization: how busy vGPUs, and the processes in them, keep a device.
 *
 * An answer has only the newest sample of each vGPU, or of each process, and only if the sample is
 * younger than the caller's time stamp. To see each sample once, pass the last time stamp that you
 * have seen; 0 asks for all.
 *
 * Units:    percent of the whole device; microseconds since the epoch.
 * Threads:  see host.h.
 * Errors:   those of host.h. If nothing is new, the list is empty; this is no error.
 */

#include <stddef.h>
#include <stdint.h>

#include <openvgpu/base.h>
#include <openvgpu/host.h>

VGPU_BEGIN_DECLS

struct vgpu_utilization {
        uint32_t instance; /* the vGPU's id */
        uint32_t pid;      /* in the guest; 0: the whole vGPU */
        const char *name;  /* of the process, chosen by the guest; "" for the whole vGPU */
        uint64_t time_us;
        uint32_t sm, memory, encoder, decoder; /* percent */
        uint32_t jpeg, ofa;                    /* percent; VGPU_UNKNOWN before R550 */
};

struct vgpu_utilization_list {
        uint64_t last_us; /* the youngest time stamp, for the next call */
        size_t n_samples;
        const struct vgpu_utilization *const *samples;
};

/**
 * vgpu_utilization_lookup_instances() - get the samples of the vGPUs on @device after @since_us
 * @ret_list:  the caller frees it with vgpu_free()
 */
int vgpu_utilization_lookup_instances(struct vgpu_host *host, uint32_t device, uint64_t since_us,
                                      struct vgpu_utilization_list **ret_list);

/**
 * vgpu_utilization_lookup_processes() - get the samples of the processes in them after @since_us
 * @ret_list:  the caller frees it with vgpu_free(); idle processes are left out
 */
int vgpu_utilization_lookup_processes(struct vgpu_host *host, uint32_t device, uint64_t since_us,
                                      struct vgpu_utilization_list **ret_list);

VGPU_END_DECLS

#endif
