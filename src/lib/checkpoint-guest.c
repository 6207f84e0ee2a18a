/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest has the environment that 'vgpu run' made. The manager says whether it still controls the
 * guest.
 */
#include "lib/checkpoint-guest.h"

#include <errno.h>

#include <openvgpu/client.h>
#include <openvgpu/instance.h>

#include "base/cleanup.h"
#include "base/environment.h"
#include "base/text.h"

/* A manager that hangs must not hold up a checkpoint for long. */
#define ANSWER_MS 2000

DEFINE_CLEANUP(struct vgpu_client *, vgpu_client_free);
DEFINE_CLEANUP(struct vgpu_instance *, vgpu_instance_free);

static bool has_process(const struct vgpu_instance *instance, pid_t pid)
{
        for (size_t i = 0; i < instance->n_processes; i++)
                if (instance->processes[i]->pid == (int)pid)
                        return true;
        return false;
}

int checkpoint_guest_find(pid_t pid, char *ret_name)
{
        CLEANUP(freep) char *environment = environment_read(pid);
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = NULL;
        CLEANUP(vgpu_instance_freep) struct vgpu_instance *instance = NULL;
        const char *vgpu = environment ? environment_get(environment, "OPENVGPU_VGPU") : NULL;
        int r;

        if (!vgpu || vgpu_client_new(&client, environment_get(environment, "OPENVGPU_RUN")) < 0)
                return 0;
        vgpu_client_set_timeout_ms(client, ANSWER_MS);
        r = vgpu_instance_lookup(client, vgpu, &instance);
        if (r == -ETIMEDOUT)
                return r;
        if (r < 0 || !has_process(instance, pid))
                return 0;
        text_clean(ret_name, CHECKPOINT_GUEST_NAME_MAX, instance->name);
        return 1;
}
