/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/visible.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/log.h"
#include "gate/quota.h"

#define VISIBLE "CUDA_VISIBLE_DEVICES="

struct choice {
        uint8_t device[GATE_DEVICES_MAX]; /* of the vGPU's, as they are shown */
        uint32_t n;
};

static void choose_all(struct choice *choice, const struct gate_welcome *welcome)
{
        choice->n = welcome->n_devices;
        for (uint32_t i = 0; i < choice->n; i++)
                choice->device[i] = (uint8_t)i;
}

/* The device that @text names; @welcome->n_devices: none. */
static uint32_t find_device(const struct gate_welcome *welcome, const char *text, size_t length)
{
        uint32_t i = 0;

        if (length == 1 && *text >= '0' && *text <= '9') /* there are at most GATE_DEVICES_MAX */
                return (uint32_t)(*text - '0') < welcome->n_devices ? (uint32_t)(*text - '0')
                                                                    : welcome->n_devices;
        if (length < strlen("GPU-") || length >= sizeof(welcome->device_uuid[0]))
                return welcome->n_devices;
        while (i < welcome->n_devices && strncmp(welcome->device_uuid[i], text, length) != 0)
                i++;
        return i;
}

/* False: what is there already. */
static bool add(struct choice *choice, uint32_t device)
{
        for (uint32_t i = 0; i < choice->n; i++)
                if (choice->device[i] == device)
                        return false;
        choice->device[choice->n++] = (uint8_t)device;
        return true;
}

/* False: not every entry of @value names one. */
static bool choose(struct choice *choice, const struct gate_welcome *welcome, const char *value)
{
        choice->n = 0;
        for (;;) {
                size_t length = strcspn(value, ",");
                uint32_t device = find_device(welcome, value, length);

                if (device == welcome->n_devices || !add(choice, device))
                        return false;
                if (value[length] == '\0')
                        return true;
                value += length + 1;
        }
}

static void write_entry(char *entry, const struct gate_welcome *welcome,
                        const struct choice *choice)
{
        strcpy(entry, VISIBLE);
        for (uint32_t i = 0; i < choice->n; i++) {
                if (i > 0)
                        strcat(entry, ",");
                strcat(entry, welcome->device_uuid[choice->device[i]]);
        }
}

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

static char **find_entry(void)
{
        char **at = environ;

        while (at && *at && strncmp(*at, VISIBLE, strlen(VISIBLE)) != 0)
                at++;
        return at && *at ? at : NULL;
}

static bool wants_none(const char *value)
{
        return *value == '\0' || *value == '-';
}

/* With one device nothing is chosen: what a script numbers are those of the machine. */
static void choose_devices(struct choice *choice, const struct gate_welcome *welcome, char **there)
{
        if (!there || welcome->n_devices == 1 || !choose(choice, welcome, *there + strlen(VISIBLE)))
                choose_all(choice, welcome);
}

/*
 * The entry of the environment is replaced by one of ours, or the whole of it by one with ours: one
 * store, unlike setenv(), which is not safe beside getenv() in other threads.
 */
void visible_show(const struct gate_welcome *welcome)
{
        static char entry[sizeof(VISIBLE) + sizeof(welcome->device_uuid)];
        char **there = find_entry();
        struct choice choice;

        if (!welcome->device_uuid[0][0] || (there && wants_none(*there + strlen(VISIBLE))))
                return;
        choose_devices(&choice, welcome, there);
        write_entry(entry, welcome, &choice);
        quota_set_order(choice.device, choice.n);
        if (there)
                *there = entry;
        else
                add_to_environment(entry);
}
