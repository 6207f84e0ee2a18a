/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENVGPU_ACCOUNTING_H
#define OPENVGPU_ACCOUNTING_H

/*
 * Accounting: what the processes in a vGPU have used, also the ended ones.
 *
 * With vgpud the mode is always on. With NVIDIA's vGPU manager the guest's administrator switches
 * it in the guest ("nvidia-smi -am 1"), and it is off after each start of the guest's driver. While
 * the mode is off, nothing is recorded, and every function except vgpu_accounting_get_mode()
 * answers VGPU_ERROR_NOT_SUPPORTED.
 *
 * A vGPU has a ring of 4000 records: a further record replaces that of the process that ended
 * first. A process number that was used again has one record, that of the process that ended last;
 * a running process is hidden until it ends. vgpu_usage_lookup_accounts() distinguishes all
 * processes.
 *
 * With NVIDIA's vGPU manager, compute and graphics applications have records. With vgpud, a process
 * has one from its first CUDA call on. Processes that only ask NVML, or only use the encoder, have
 * none. A percentage is an average over the life of the process. docs/metering.md says how
 * simultaneous work of several processes of a vGPU is divided among them.
 *
 * Units:    bytes, percent, milliseconds, microseconds since the epoch.
 * Threads:  see host.h.
 * Errors:   those of host.h; VGPU_ERROR_NOT_SUPPORTED: the vGPU has no accounting, or it is off.
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
        uint64_t time_ms;            /* life of the process; 0 while it runs */
        uint64_t start_us;
};

/**
 * vgpu_accounting_get_mode() - ask whether accounting is on in the vGPU
 *
 * Errors: VGPU_ERROR_NOT_LOADED, the guest's driver does not run.
 */
int vgpu_accounting_get_mode(struct vgpu_host *host, uint32_t instance, bool *ret_is_on);

/** vgpu_accounting_lookup_pids() - get the processes with a record. Free the list with vgpu_free(). */
int vgpu_accounting_lookup_pids(struct vgpu_host *host, uint32_t instance,
                                struct vgpu_number_list **ret_pids);

/**
 * vgpu_accounting_lookup_stats() - get the record of one process
 * @ret_stats:  the caller frees it with vgpu_free()
 *
 * Errors: VGPU_ERROR_NO_SUCH_PROCESS, or VGPU_ERROR_NO_SUCH_VGPU if the vGPU does not exist.
 */
int vgpu_accounting_lookup_stats(struct vgpu_host *host, uint32_t instance, uint32_t pid,
                                 struct vgpu_accounting_stats **ret_stats);

/** vgpu_accounting_clear() - drop the records of ended processes. Errors:
 * VGPU_ERROR_PERMISSION_DENIED. */
int vgpu_accounting_clear(struct vgpu_host *host, uint32_t instance);

VGPU_END_DECLS

#endif
