/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/visible.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/log.h"
#include "gate/quota.h"

#define VISIBLE "CUDA_VISIBLE_DEVICES="

#define ENTRY_MAX (sizeof(VISIBLE) + sizeof(((struct gate_welcome *)NULL)->device_uuid))

static struct {
        char shown[ENTRY_MAX]; /* what the program finds in its environment, */
        char seen[ENTRY_MAX];  /* and the driver when it is initialised */
        uint32_t n_shown;      /* 0: all that the driver sees */
        uint32_t marks[GATE_SEEN_MAX];
} visible;

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

static bool is_chosen(const struct choice *choice, uint32_t device)
{
        for (uint32_t i = 0; i < choice->n; i++)
                if (choice->device[i] == device)
                        return true;
        return false;
}

static void add_uuid(char *entry, const struct gate_welcome *welcome, uint32_t device)
{
        if (entry[strlen(entry) - 1] != '=')
                strcat(entry, ",");
        strcat(entry, welcome->device_uuid[device]);
}

static void write_entry(char *entry, const struct gate_welcome *welcome,
                        const struct choice *choice)
{
        strcpy(entry, VISIBLE);
        for (uint32_t i = 0; i < choice->n; i++)
                add_uuid(entry, welcome, choice->device[i]);
}

static uint32_t count_named(const struct gate_welcome *welcome)
{
        uint32_t n = 0;

        while (n < GATE_SEEN_MAX && welcome->device_uuid[n][0])
                n++;
        return n;
}

/* @entry has what the program sees. In a vGPU of one device that is all. */
static void add_hidden(char *entry, const struct gate_welcome *welcome, const struct choice *choice)
{
        uint32_t n = count_named(welcome);

        if (n == 1)
                return;
        for (uint32_t i = 0; i < n; i++) {
                visible.marks[i] = gate_mark(welcome->device_uuid[i]);
                if (!is_chosen(choice, i))
                        add_uuid(entry, welcome, i);
        }
        visible.n_shown = n == choice->n ? 0 : choice->n;
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
static void put_entry(char *entry)
{
        char **there = find_entry();

        if (there)
                *there = entry;
        else
                add_to_environment(entry);
}

void visible_show(const struct gate_welcome *welcome)
{
        char **there = find_entry();
        struct choice choice;

        visible.n_shown = 0; /* the child of a fork may have what its parent had */
        memset(visible.marks, 0, sizeof(visible.marks));
        if (!welcome->device_uuid[0][0] || (there && wants_none(*there + strlen(VISIBLE))))
                return;
        choose_devices(&choice, welcome, there);
        write_entry(visible.shown, welcome, &choice);
        memcpy(visible.seen, visible.shown, sizeof(visible.seen));
        add_hidden(visible.seen, welcome, &choice);
        quota_set_order(choice.device, choice.n);
        put_entry(visible.seen);
}

/* If the program has put something of its own there meanwhile, that stays. */
static void exchange(const char *before, char *after)
{
        char **there = find_entry();

        if (visible.n_shown > 0 && there && *there == before)
                *there = after;
}

void visible_prepare(void)
{
        exchange(visible.shown, visible.seen);
}

void visible_settle(void)
{
        exchange(visible.seen, visible.shown);
}

bool visible_has(CUdevice device)
{
        return visible.n_shown == 0 || device < (CUdevice)visible.n_shown;
}

int visible_limit(int n)
{
        return visible.n_shown > 0 && n > (int)visible.n_shown ? (int)visible.n_shown : n;
}

void visible_tell_seen(uint32_t ret_seen[GATE_SEEN_MAX])
{
        memcpy(ret_seen, visible.marks, sizeof(visible.marks));
}
