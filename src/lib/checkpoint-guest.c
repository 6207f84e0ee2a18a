/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest is known by its environment, as 'vgpu run' has made it; whether its manager still looks
 * after it, the manager is asked.
 */
#include "lib/checkpoint-guest.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include <openvgpu/client.h>
#include <openvgpu/instance.h>

#include "base/cleanup.h"
#include "base/text.h"

#define ENVIRONMENT_MAX ((size_t)1 << 20)

/* A manager that hangs must not hold up a checkpoint for long. */
#define ANSWER_MS 2000

DEFINE_CLEANUP(struct vgpu_client *, vgpu_client_free);
DEFINE_CLEANUP(struct vgpu_instance *, vgpu_instance_free);

/* The process' environment, as it began: NUL between, and two at the end. */
static char *read_environment(pid_t pid)
{
        CLEANUP(freep) char *text = calloc(1, ENVIRONMENT_MAX + 2);
        CLEANUP(fd_closep) int fd = -1;
        size_t size = 0;
        char path[32];
        ssize_t n;

        snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || !text)
                return NULL;
        while (size < ENVIRONMENT_MAX && (n = read(fd, text + size, ENVIRONMENT_MAX - size)) > 0)
                size += (size_t)n;
        return TAKE(text);
}

static const char *get(const char *environment, const char *name)
{
        size_t length = strlen(name);

        for (const char *one = environment; *one; one += strlen(one) + 1)
                if (strncmp(one, name, length) == 0 && one[length] == '=')
                        return one + length + 1;
        return NULL;
}

static bool has_process(const struct vgpu_instance *instance, pid_t pid)
{
        for (size_t i = 0; i < instance->n_processes; i++)
                if (instance->processes[i]->pid == (int)pid)
                        return true;
        return false;
}

bool checkpoint_guest_find(pid_t pid, char *ret_name)
{
        CLEANUP(freep) char *environment = read_environment(pid);
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = NULL;
        CLEANUP(vgpu_instance_freep) struct vgpu_instance *instance = NULL;
        const char *vgpu = environment ? get(environment, "OPENVGPU_VGPU") : NULL;

        if (!vgpu || vgpu_client_new(&client, get(environment, "OPENVGPU_RUN")) < 0)
                return false;
        vgpu_client_set_timeout_ms(client, ANSWER_MS);
        if (vgpu_instance_lookup(client, vgpu, &instance) < 0 || !has_process(instance, pid))
                return false;
        text_clean(ret_name, CHECKPOINT_GUEST_NAME_MAX, instance->name);
        return true;
}
