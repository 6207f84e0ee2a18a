/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CDI_SPECIFICATION_H
#define CDI_SPECIFICATION_H

/*
 * vGPUs for containers: what a container engine puts into a container, as the Container Device Interface
 * has it (CDI, JSON in /etc/cdi or /var/run/cdi). vgpud keeps such a file, 'vgpu cdi' prints it.
 *
 * Every vGPU is a device "openvgpu.org/vgpu=NAME". All get the gate and our NVML library, the driver, and
 * the nodes of all GPUs, for a vGPU may move to any; each gets its own door and no other: a folder with
 * a socket where only this vGPU can be joined, and with the state page. docs/containers.md
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define CDI_KIND "openvgpu.org/vgpu"

/* In the run directory: the doors, one folder for each vGPU, with its UUID as name. */
#define CDI_DOORS "cdi"

/*
 * The device, and the door, of containers that have no vGPU before they ask for one. As a vGPU it has this for its
 * name and its UUID. A vGPU with this name goes by its UUID.
 */
#define CDI_NEW "new"

struct cdi_host {
        const char *run_directory;
        const char *gate_path;   /* its libcuda.so.1; the folder has what the gate needs */
        const char *nvml_path;   /* folder of our libnvidia-ml.so.1 */
        const char *driver_path; /* libcuda.so.1 that the calls end in */
        bool is_simulated;
};

struct cdi_vgpu {
        const char *name, *uuid;
};

/*
 * cdi_specification_new() - for the @n @vgpus of this host; the caller owns it
 *
 * Errors: -ENOMEM; those of the host's files.
 */
int cdi_specification_new(json_t **ret_specification, const struct cdi_host *host,
                          const struct cdi_vgpu *vgpus, size_t n);

/*
 * cdi_specification_write() - to the file @path, which others see as it was or as it becomes
 *
 * The folder is made when there is none. Errors: -errno.
 */
int cdi_specification_write(const json_t *specification, const char *path);

/*
 * cdi_file_write() - the same file, from texts of the @n @vgpus that are there: of thousands, one comes or goes
 *
 * cdi_device_new() makes such a text, for free(); NULL: out of memory.
 */
char *cdi_device_new(const struct cdi_host *host, const struct cdi_vgpu *vgpu);
int cdi_file_write(const char *path, const struct cdi_host *host, const struct cdi_vgpu *vgpus,
                   const char *const *devices, size_t n);

#endif
