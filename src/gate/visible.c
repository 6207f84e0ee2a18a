/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/visible.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/link.h"
#include "gate/log.h"
#include "gate/quota.h"
#include "gate/settings.h"
#include "gate/wake.h"

#define VISIBLE "CUDA_VISIBLE_DEVICES="

#define ENTRY_MAX (sizeof(VISIBLE) + sizeof(((struct gate_welcome *)NULL)->device_uuid))

static struct {
        char own[ENTRY_MAX];  /* the devices that the program may use, */
        char seen[ENTRY_MAX]; /* and those that the driver sees; "": it is left alone */
        bool has_others;      /* it sees more than */
        uint32_t n_own;
        _Atomic uint32_t marks[GATE_SEEN_MAX];
        _Atomic bool has_news;
} visible;

/* Of the vGPU's devices, in the order in which they are seen. */
struct choice {
        uint8_t device[GATE_DEVICES_MAX];
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

/* At the end of what the driver sees. */
static void see(const struct gate_welcome *welcome, uint32_t device)
{
        uint32_t n = 0;

        while (visible.marks[n])
                n++;
        visible.marks[n] = gate_mark(welcome->device_uuid[device]);
        if (n > 0)
                strcat(visible.seen, ",");
        strcat(visible.seen, welcome->device_uuid[device]);
}

static void see_others(const struct gate_welcome *welcome, const struct choice *choice)
{
        for (uint32_t i = 0; i < GATE_SEEN_MAX && welcome->device_uuid[i][0]; i++) {
                if (is_chosen(choice, i))
                        continue;
                see(welcome, i);
                visible.has_others = true;
        }
}

static void write_entries(const struct gate_welcome *welcome, const struct choice *choice)
{
        strcpy(visible.seen, VISIBLE);
        for (uint32_t i = 0; i < choice->n; i++)
                see(welcome, choice->device[i]);
        memcpy(visible.own, visible.seen, sizeof(visible.own));
        visible.n_own = choice->n;
        if (settings.sees_all && choice->n > 0)
                see_others(welcome, choice);
        if (visible.has_others)
                wake_open(); /* for visible_correct() */
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
        const char *value = there ? *there + strlen(VISIBLE) : NULL;

        if (value && wants_none(value))
                choice->n = 0;
        else if (!value || welcome->n_devices == 1 || !choose(choice, welcome, value))
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
        struct choice choice;

        if (!welcome->device_uuid[0][0])
                return;
        choose_devices(&choice, welcome, find_entry());
        memset(&visible, 0, sizeof(visible)); /* the child of a fork may have what its parent had */
        write_entries(welcome, &choice);
        quota_set_order(choice.device, choice.n);
        put_entry(visible.seen);
}

void visible_prepare(void)
{
        if (visible.seen[0])
                put_entry(visible.seen);
}

/* If the program has put something of its own there meanwhile, that stays. */
void visible_settle(void)
{
        char **there = find_entry();

        if (visible.has_others && there && *there == visible.seen)
                *there = visible.own;
}

bool visible_has(CUdevice device)
{
        return !visible.has_others || device < (CUdevice)visible.n_own;
}

bool visible_has_location(const CUmemLocation *location)
{
        return !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE ||
               visible_has(location->id);
}

bool visible_has_access(const CUmemAccessDesc *access, size_t n)
{
        for (size_t i = 0; access && i < n; i++)
                if (!visible_has_location(&access[i].location))
                        return false;
        return true;
}

void visible_correct(int n)
{
        if (!visible.has_others || n < 0 || n >= GATE_SEEN_MAX || !atomic_load(&visible.marks[n]))
                return;
        log_write("the driver sees %d of the devices only", n);
        for (int i = n; i < GATE_SEEN_MAX; i++)
                atomic_store(&visible.marks[i], 0);
        atomic_store(&visible.has_news, true);
        wake_agent();
}

void visible_tell_seen(uint32_t ret_seen[GATE_SEEN_MAX])
{
        for (int i = 0; i < GATE_SEEN_MAX; i++)
                ret_seen[i] = atomic_load(&visible.marks[i]);
}

int visible_tell(int socket)
{
        struct gate_seen seen;

        visible_tell_seen(seen.mark);
        return seen.mark[0] ? link_send(socket, GATE_SEEN, &seen, sizeof(seen), NULL, 0) : 0;
}

int visible_tell_news(int socket)
{
        return atomic_exchange(&visible.has_news, false) ? visible_tell(socket) : 0;
}
