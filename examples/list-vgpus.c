/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists the vGPUs of this machine and what they hold: the smallest use of libopenvgpu.
 *
 *     cc list-vgpus.c $(pkg-config --cflags --libs openvgpu) -o list-vgpus
 */
#include <stdio.h>

#include <openvgpu/client.h>
#include <openvgpu/instance.h>

static void print(const struct vgpu_instance *vgpu)
{
        const double gib = 1024.0 * 1024 * 1024;

        printf("%s: %s on GPU %u", vgpu->name, vgpu_instance_state_get_name(vgpu->state),
               (unsigned int)vgpu->device);
        for (size_t i = 1; i < vgpu->n_parts; i++)
                printf(",%u", (unsigned int)vgpu->parts[i]->device);
        printf(", %.1f of ", (double)vgpu->frame_buffer_used / gib);
        if (vgpu->n_parts > 1)
                printf("%zu x ", vgpu->n_parts);
        printf("%.1f GiB\n", (double)vgpu->frame_buffer / gib);
        for (size_t i = 0; i < vgpu->n_processes; i++)
                printf("    %d %s\n", (int)vgpu->processes[i]->pid, vgpu->processes[i]->name);
}

int main(void)
{
        struct vgpu_client *client = NULL;
        struct vgpu_instance_list *list = NULL;
        int r;

        r = vgpu_client_new(&client, NULL);
        if (r < 0) {
                fprintf(stderr, "list-vgpus: error %d\n", -r);
                return 1;
        }

        r = vgpu_instance_lookup_all(client, &list);
        if (r < 0)
                fprintf(stderr, "list-vgpus: %s\n", vgpu_client_get_error(client)->message);
        else
                for (size_t i = 0; i < list->n_instances; i++)
                        print(list->instances[i]);

        vgpu_instance_list_free(list);
        vgpu_client_free(client);
        return r < 0 ? 1 : 0;
}
