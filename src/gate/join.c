/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/join.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "gate/agent.h"
#include "gate/child.h"
#include "gate/entry.h"
#include "gate/link.h"
#include "gate/log.h"

static struct {
        pthread_mutex_t lock;
        bool is_member;
        bool is_initialized; /* the driver is, by this process or by the one that it was forked from */
} join = { .lock = PTHREAD_MUTEX_INITIALIZER };

#define VISIBLE "CUDA_VISIBLE_DEVICES="

/* Puts @entry in front of what the environment has: anew, as nobody knows whose the old array is. */
static void add_to_environment(char *entry)
{
        char **grown;
        size_t n = 0;

        while (environ && environ[n])
                n++;
        grown = calloc(n + 2, sizeof(*grown));
        if (!grown) {
                log_write("no memory to name the device in the environment");
                return;
        }
        grown[0] = entry;
        if (n > 0)
                memcpy(grown + 1, environ, n * sizeof(*grown));
        environ = grown;
}

/*
 * The driver shall see the vGPU's device and no other, whatever the guest's scripts have put into
 * the variable ("0" is usual) or taken out of it, and wherever the vGPU has moved since the
 * environment was made. Only a wish for no device at all is left alone.
 *
 * The entry of the environment is replaced by one of ours, or the whole of it by one with ours: one
 * store, unlike setenv(), which is not safe beside getenv() in other threads.
 */
static void show_device(const char *uuid)
{
        static char entry[sizeof(VISIBLE) + sizeof(((struct gate_welcome *)0)->device_uuid)];
        bool is_there = false;

        if (!uuid[0])
                return;
        memcpy(entry, VISIBLE, strlen(VISIBLE));
        memcpy(entry + strlen(VISIBLE), uuid, strlen(uuid) + 1);
        for (char **at = environ; at && *at; at++) {
                const char *value = *at + strlen(VISIBLE);

                if (strncmp(*at, VISIBLE, strlen(VISIBLE)) != 0)
                        continue;
                is_there = true;
                if (*value != '\0' && *value != '-')
                        *at = entry;
        }
        if (!is_there)
                add_to_environment(entry);
}

static CUresult join_locked(void)
{
        const struct link_report report = { GATE_STATE_OPEN, agent_describe };
        struct gate_welcome welcome;
        char text[GATE_TEXT_MAX];
        CLEANUP(fd_closep) int socket = -1;
        int r;

        socket = link_join(&report, &welcome, text);
        if (socket < 0) {
                log_to_user("this process cannot use its vGPU: %s", text);
                return socket == -EACCES ? CUDA_ERROR_NOT_PERMITTED : CUDA_ERROR_SYSTEM_NOT_READY;
        }
        show_device(welcome.device_uuid);
        r = agent_start(TAKE_FD(socket));
        if (r < 0) {
                log_to_user("this process cannot use its vGPU: no thread for it (%s)",
                            strerrordesc_np(-r));
                return CUDA_ERROR_SYSTEM_NOT_READY;
        }
        join.is_member = true;
        log_write("joined, slot %u, device %s", welcome.slot, welcome.device_uuid);
        return CUDA_SUCCESS;
}

/* Other threads that initialise at the same time wait for the outcome. */
static CUresult ensure_member(void)
{
        CUresult result = CUDA_SUCCESS;

        pthread_mutex_lock(&join.lock);
        if (!join.is_member && !join.is_initialized && link_is_wanted())
                result = join_locked();
        pthread_mutex_unlock(&join.lock);
        return result;
}

CUresult our_cuInit(unsigned int flags)
{
        CUresult result = ensure_member();

        if (result != CUDA_SUCCESS)
                return result;
        result = DRIVER(cuInit)(flags);
        if (result == CUDA_SUCCESS) {
                pthread_mutex_lock(&join.lock);
                join.is_initialized = true;
                pthread_mutex_unlock(&join.lock);
        }
        return result;
}

void join_forget(void)
{
        pthread_mutex_init(&join.lock, NULL);
        join.is_member = false;
}
