/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports, of each active vGPU on this host, its type, what it holds and its licence: over NVML, ours
 * or NVIDIA's, so with or without vgpud.
 *
 *     cc vgpu-report.c $(pkg-config --cflags --libs openvgpu) -o vgpu-report
 */
#include <stdio.h>

#include <openvgpu/device.h>
#include <openvgpu/host.h>
#include <openvgpu/instance.h>
#include <openvgpu/licence.h>
#include <openvgpu/type.h>

static int complain(const struct vgpu_host *host)
{
        const struct vgpu_error *error = vgpu_host_get_error(host);

        fprintf(stderr, "vgpu-report: %s\n", error->message);
        return 1;
}

static int report(struct vgpu_host *host, uint32_t device, uint32_t vgpu)
{
        struct vgpu_licence *licence = NULL;
        char *uuid = NULL, *type_name = NULL;
        uint64_t used = 0;
        uint32_t type;
        int r;

        r = vgpu_instance_get_uuid(host, vgpu, &uuid);
        if (r == 0)
                r = vgpu_instance_get_type(host, vgpu, &type);
        if (r == 0)
                r = vgpu_type_get_name(host, type, &type_name);
        if (r == 0)
                r = vgpu_instance_get_frame_buffer_used(host, vgpu, &used);
        if (r == 0)
                printf("%s on GPU %u: %s, %.1f MiB used", uuid, (unsigned int)device, type_name,
                       (double)used / (1024 * 1024));
        else
                complain(host);

        /* Older drivers, and guests without one, have no answer. */
        if (r == 0 && vgpu_licence_lookup(host, vgpu, &licence) == 0)
                printf(", %s\n", vgpu_licence_state_get_name(licence->state));
        else if (r == 0)
                printf("\n");

        vgpu_free(licence);
        vgpu_free(type_name);
        vgpu_free(uuid);
        return r;
}

static int report_device(struct vgpu_host *host, uint32_t device)
{
        struct vgpu_number_list *vgpus = NULL;
        int r;

        r = vgpu_device_lookup_instances(host, device, VGPU_WHOLE_DEVICE, &vgpus);
        if (r < 0 && vgpu_host_get_error(host)->kind == VGPU_ERROR_NOT_SUPPORTED)
                return 0; /* it hosts no vGPUs */
        if (r < 0)
                return complain(host);
        for (size_t i = 0; i < vgpus->n_numbers; i++)
                report(host, device, vgpus->numbers[i]);
        vgpu_free(vgpus);
        return 0;
}

int main(void)
{
        struct vgpu_host *host;
        uint32_t n_devices;
        int code = 0;

        if (vgpu_host_new(&host, NULL) < 0)
                return 1;
        if (vgpu_device_count(host, &n_devices) < 0)
                code = complain(host);
        for (uint32_t device = 0; code == 0 && device < n_devices; device++)
                code = report_device(host, device);
        vgpu_host_free(host);
        return code;
}
