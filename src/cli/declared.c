/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/declared.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/configuration.h"
#include "base/size.h"
#include "cli/duration.h"
#include "cli/say.h"

int declared_parse_user(uint32_t *ret_user, const char *text)
{
        const struct passwd *user = getpwnam(text);
        unsigned long long number;
        char *end;

        if (user) {
                *ret_user = user->pw_uid;
                return 0;
        }
        number = strtoull(text, &end, 10);
        if (*text < '0' || *text > '9' || *end || number >= UINT32_MAX)
                return -ESRCH;
        *ret_user = (uint32_t)number;
        return 0;
}

static struct declared *find(const struct declared_list *list, const char *name)
{
        struct declared *declared = list->first;

        while (declared && strcmp(declared->name, name) != 0)
                declared = declared->next;
        return declared;
}

/* A new section. */
static bool begin(const struct configuration_place *place, void *userdata)
{
        struct declared_list *list = userdata;
        const struct declared *former = find(list, place->section);
        struct declared *declared;

        if (former) {
                configuration_complain(place, "vGPU %s is declared twice, first in %s:%u",
                                       place->section, former->file, former->line);
                return false;
        }
        declared = calloc(1, sizeof(*declared));
        if (!declared)
                return false;
        *list->end = declared;
        list->end = &declared->next;
        declared->line = place->line;
        declared->name = strdup(place->section);
        declared->file = strdup(place->file);
        return declared->name && declared->file;
}

static bool bad(const struct configuration_place *place, const char *value, const char *wanted)
{
        configuration_complain(place, "'%s' is not %s", value, wanted);
        return false;
}

static bool set_number(struct declared *declared, const struct configuration_place *place,
                       const char *value)
{
        char *end;
        unsigned long n = strtoul(value, &end, 10);

        if (*value < '1' || *value > '9' || *end || n > 1000)
                return bad(place, value, "a number of GPUs");
        declared->n_devices = (uint32_t)n;
        return true;
}

static bool set_share(struct declared *declared, const struct configuration_place *place,
                      const char *value)
{
        char *end;
        unsigned long share = strtoul(value, &end, 10);

        if (strcmp(value, "none") != 0 &&
            (*value < '0' || *value > '9' || (*end && strcmp(end, "%") != 0) || share < 1 ||
             share > 100))
                return bad(place, value, "a percentage, 1 to 100, or none");
        declared->has_share = true;
        declared->share = strcmp(value, "none") == 0 ? 0 : (uint32_t)share;
        return true;
}

static bool set_text(char **text, const char *value)
{
        free(*text);
        *text = strdup(value);
        return *text != NULL;
}

/* When the vGPU leaves by itself, how, and how it waits for room. */
static bool set_residency(struct declared *declared, const struct configuration_place *place,
                          const char *value)
{
        if (strcmp(place->key, "idle-after") == 0) {
                declared->has_idle = duration_parse_or_never(&declared->idle_after, value) == 0;
                return declared->has_idle || bad(place, value, "a time such as 30s, 5m, or never");
        }
        if (strcmp(place->key, "idle") == 0) {
                declared->has_idle = true;
                return duration_parse_how(&declared->idle_keeps_context, value) == 0 ||
                       bad(place, value, "a way to leave: suspend or keep-context");
        }
        if (strcmp(place->key, "class") == 0) {
                if (strcmp(value, "batch") != 0 && strcmp(value, "interactive") != 0)
                        return bad(place, value, "a class: batch or interactive");
                return set_text(&declared->swap_class, value);
        }
        configuration_complain(place, "unknown key; a vGPU has fb, device, devices, share, owner, "
                                      "idle-after, idle, class and pool-group");
        return false;
}

static bool set_value(struct declared *declared, const struct configuration_place *place,
                      const char *value)
{
        if (strcmp(place->key, "fb") == 0) {
                if (size_parse(&declared->frame_buffer, value) < 0 || declared->frame_buffer == 0 ||
                    size_lacks_unit(value))
                        return bad(place, value, "a size such as 40G");
                return true;
        }
        if (strcmp(place->key, "owner") == 0) {
                declared->has_owner = declared_parse_user(&declared->owner, value) == 0;
                return declared->has_owner || bad(place, value, "a user of this machine");
        }
        if (strcmp(place->key, "share") == 0)
                return set_share(declared, place, value);
        if (strcmp(place->key, "device") == 0)
                return set_text(&declared->device, value);
        if (strcmp(place->key, "devices") == 0)
                return set_number(declared, place, value);
        if (strcmp(place->key, "pool-group") == 0)
                return set_text(&declared->pool_group, value);
        return set_residency(declared, place, value);
}

/* Which of two is meant nobody knows. A key that there is not is complained about elsewhere. */
static bool check_once(struct declared *declared, const struct configuration_place *place)
{
        static const char *const keys[DECLARED_KEYS] = { "fb",    "device", "devices",
                                                         "share", "owner",  "idle-after",
                                                         "idle",  "class",  "pool-group" };

        for (size_t i = 0; i < DECLARED_KEYS; i++) {
                if (strcmp(place->key, keys[i]) != 0)
                        continue;
                if (declared->key_line[i]) {
                        configuration_complain(place, "it is given twice, first in line %u",
                                               declared->key_line[i]);
                        return false;
                }
                declared->key_line[i] = place->line;
        }
        return true;
}

static bool set(const struct configuration_place *place, const char *value, void *userdata)
{
        struct declared_list *list = userdata;
        struct declared *declared = place->section ? find(list, place->section) : NULL;
        struct configuration_place known = *place; /* by the name that we have for its key */

        if (strcmp(known.key, "memory") == 0)
                known.key = "fb";
        if (declared)
                return check_once(declared, &known) && set_value(declared, &known, value);
        configuration_complain(place, "of which vGPU? a section such as [train] comes before");
        return false;
}

static void complain(const struct configuration_place *place, const char *message, void *userdata)
{
        const struct declared_list *list = userdata;
        char where[CONFIGURATION_WHERE_MAX];

        (void)say_usage(list->arguments, "", "%s: %s", configuration_where(where, place), message);
}

static const struct configuration_kind kind = { .set = set, .begin = begin, .complain = complain };

static bool check_sizes(struct declared_list *list)
{
        bool is_right = true;

        for (const struct declared *declared = list->first; declared; declared = declared->next) {
                if (declared->frame_buffer > 0)
                        continue;
                is_right = false;
                (void)say_usage(list->arguments, "for example fb = 40G",
                                "%s:%u: vGPU %s has no fb, its quota of GPU memory", declared->file,
                                declared->line, declared->name);
        }
        return is_right;
}

int declared_list_read(struct declared_list *list, const char *path)
{
        bool is_right;
        struct stat st;
        size_t n = 1;

        if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
                is_right = configuration_read_folder(path, &kind, list, &n);
        else
                is_right = configuration_read_file(path, &kind, list);
        list->n_files += n;
        if (is_right)
                is_right = check_sizes(list);
        return is_right ? 0 : EXIT_CODE_USAGE;
}

void declared_list_init(struct declared_list *list, const struct arguments *arguments)
{
        *list = (struct declared_list){ .arguments = arguments };
        list->end = &list->first;
}

void declared_list_deinit(struct declared_list *list)
{
        struct declared *declared = list->first;

        while (declared) {
                struct declared *next = declared->next;

                free(declared->file);
                free(declared->name);
                free(declared->device);
                free(declared->swap_class);
                free(declared->pool_group);
                free(declared);
                declared = next;
        }
        declared_list_init(list, list->arguments);
}
