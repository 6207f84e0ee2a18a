/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENVGPU_ACCOUNTING_H
#define OPENVGPU_ACCOUNTING_H

/*
 * Accounting: what the processes in a vGPU have used, those included that have ended.
 *
 * With vgpud the mode is always on. With NVIDIA's vGPU manager it is switched in the guest, by the
 * guest's administrator ("nvidia-smi -am 1"), and is off after each start of the guest's driver; while
 * it is off, nothing is recorded and everything but vgpu_accounting_get_mode() is
 * VGPU_ERROR_NOT_SUPPORTED.
 *
 * The records of a vGPU are a ring of 4000: one more makes the process that ended first be forgotten.
 * A process number that is used again means one record: that of the process that ended last, and one
 * that still runs is hidden until it ends. vgpu_usage_lookup_accounts() has them all apart.
 *
 * Only processes with a compute or graphics context are recorded, not those that only ask NVML or use
 * the encoder. A percentage is an average over the life of the process; what several processes of a
 * vGPU do at the same moment is divided among them as docs/metering.md says.
 *
 * Units:    bytes, percent, milliseconds, microseconds since the epoch.
 * Threads:  see host.h.
 * Errors:   those of host.h; VGPU_ERROR_NOT_SUPPORTED: the vGPU cannot, or accounting is off.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <openvgpu/base.h>
#include <openvgpu/host.h>

VGPU_BEGIN_DECLS

struct vgpu_accounting_stats {
        uint32_t pid;
        bool is_running;
        uint32_t gpu_utilization;    /* percent; VGPU_UNKNOWN: not recorded */
        uint32_t memory_utilization; /* percent; VGPU_UNKNOWN: not recorded */
        uint64_t max_memory_used;    /* bytes; UINT64_MAX: not recorded */
        uint64_t time_ms;            /* it was active; 0 while it runs */
        uint64_t start_us;
};

/**
 * vgpu_accounting_get_mode() - is it on in the vGPU?
 *
 * Errors: VGPU_ERROR_NOT_LOADED, the guest's driver does not run.
 */
int vgpu_accounting_get_mode(struct vgpu_host *host, uint32_t instance, bool *ret_is_on);

/** vgpu_accounting_lookup_pids() - who has a record. The caller frees the list with vgpu_free(). */
int vgpu_accounting_lookup_pids(struct vgpu_host *host, uint32_t instance,
                                struct vgpu_number_list **ret_pids);

/**
 * vgpu_accounting_lookup_stats() - the record of one process
 * @ret_stats:  the caller frees it with vgpu_free()
 *
 * Errors: VGPU_ERROR_NO_SUCH_PROCESS, or VGPU_ERROR_NO_SUCH_VGPU if that is the reason.
 */
int vgpu_accounting_lookup_stats(struct vgpu_host *host, uint32_t instance, uint32_t pid,
                                 struct vgpu_accounting_stats **ret_stats);

/** vgpu_accounting_clear() - drop who has ended. Errors: VGPU_ERROR_PERMISSION_DENIED. */
int vgpu_accounting_clear(struct vgpu_host *host, uint32_t instance);

VGPU_END_DECLS

#endif
