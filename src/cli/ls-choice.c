/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ls-choice.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/declared.h"
#include "cli/instance-devices.h"
#include "cli/say.h"

void ls_choice_deinit(struct ls_choice *choice)
{
        for (size_t i = 0; i < choice->n_named; i++)
                (void)vgpu_instance_free(choice->named[i]);
        free(choice->named);
        free(choice->instances);
        (void)vgpu_instance_list_free(choice->all);
        (void)vgpu_usage_snapshot_free(choice->use);
        *choice = (struct ls_choice){ 0 };
}

static bool is_on_a_device(const struct vgpu_instance *instance)
{
        return instance->state != VGPU_INSTANCE_SUSPENDED;
}

int ls_choice_get_use(const struct ls_choice *choice, const struct vgpu_instance *instance)
{
        for (size_t i = 0; choice->use && i < choice->use->n_instances; i++)
                if (strcmp(choice->use->instances[i]->uuid, instance->uuid) == 0)
                        return is_on_a_device(instance) && instance->n_processes > 0
                                       ? (int)choice->use->instances[i]->percents->gpu
                                       : -1;
        return -1;
}

/* Which. */

static bool is_called(uint32_t index, const char *uuid, const char *device)
{
        char *end;
        unsigned long number = strtoul(device, &end, 10);

        return *device && !*end ? index == number : strncasecmp(uuid, device, strlen(device)) == 0;
}

static bool is_device(const struct vgpu_instance *instance, const char *device)
{
        if (!is_on_a_device(instance))
                return false;
        for (size_t i = 0; i < instance->n_parts; i++)
                if (is_called(instance->parts[i]->device, instance->parts[i]->device_uuid, device))
                        return true;
        return is_called(instance->device, instance->device_uuid, device);
}

/* "away" has left by itself; it is suspended or evicted as well. */
static bool is_state(const struct vgpu_instance *instance, const char *state)
{
        return strcmp(vgpu_instance_state_get_name(instance->state), state) == 0 ||
               (*state && strcmp(instance->demand, state) == 0);
}

static int check_state(const struct arguments *arguments)
{
        const char *state = arguments_get(arguments, "state");

        if (!state || strcmp(state, "away") == 0)
                return 0;
        for (int i = VGPU_INSTANCE_IDLE; i <= VGPU_INSTANCE_FAILED; i++)
                if (strcmp(vgpu_instance_state_get_name((enum vgpu_instance_state)i), state) == 0)
                        return 0;
        return say_usage(arguments, LS_CHOICE_STATES_HELP, "--state: there is no state '%s'",
                         state);
}

/* That nothing is on a device is no answer where there is no such device. */
static int check_device(const struct arguments *arguments, struct vgpu_client *client,
                        const char *device)
{
        CLEANUP(vgpu_device_list_freep) struct vgpu_device_list *list = NULL;

        if (vgpu_device_lookup_all(client, &list) < 0)
                return -1;
        for (size_t i = 0; i < list->n_devices; i++)
                if (is_called(list->devices[i]->index, list->devices[i]->uuid, device))
                        return 0;
        return say_failure(arguments, EXIT_CODE_NO_SUCH, "NoSuchDevice",
                           "vgpu devices shows those that there are", "there is no device '%s'",
                           device);
}

static int leave_out(struct ls_choice *choice, const struct arguments *arguments,
                     struct vgpu_client *client)
{
        const char *state = arguments_get(arguments, "state");
        const char *device = arguments_get(arguments, "device");
        const char *owner = arguments_get(arguments, "owner");
        uint32_t user = 0;
        bool is_there = false;
        size_t n = 0;

        if (owner && declared_parse_user(&user, owner) < 0)
                return say_usage(arguments, "a name, or the number of a user",
                                 "--owner: there is no user '%s'", owner);
        for (size_t i = 0; i < choice->n; i++) {
                const struct vgpu_instance *instance = choice->instances[i];

                if (device && is_device(instance, device))
                        is_there = true;
                if ((!state || is_state(instance, state)) &&
                    (!device || is_device(instance, device)) && (!owner || instance->owner == user))
                        choice->instances[n++] = instance;
        }
        choice->n = n;
        return !device || is_there ? 0 : check_device(arguments, client, device);
}

/* In which order: what there is most of comes first, names and devices ascend. */

static int by_name(const struct ls_choice *choice, const struct vgpu_instance *a,
                   const struct vgpu_instance *b)
{
        (void)choice;
        return strcmp(a->name, b->name);
}

/* Those on no device come last. */
static int by_device(const struct ls_choice *choice, const struct vgpu_instance *a,
                     const struct vgpu_instance *b)
{
        int difference = is_on_a_device(b) - is_on_a_device(a);

        (void)choice;
        return difference ? difference : (a->device > b->device) - (a->device < b->device);
}

static int by_state(const struct ls_choice *choice, const struct vgpu_instance *a,
                    const struct vgpu_instance *b)
{
        (void)choice;
        return strcmp(vgpu_instance_state_get_name(a->state),
                      vgpu_instance_state_get_name(b->state));
}

static int by_share(const struct ls_choice *choice, const struct vgpu_instance *a,
                    const struct vgpu_instance *b)
{
        (void)choice;
        return (b->share > a->share) - (b->share < a->share);
}

static int by_use(const struct ls_choice *choice, const struct vgpu_instance *a,
                  const struct vgpu_instance *b)
{
        return ls_choice_get_use(choice, b) - ls_choice_get_use(choice, a);
}

static int by_memory(const struct ls_choice *choice, const struct vgpu_instance *a,
                     const struct vgpu_instance *b)
{
        (void)choice;
        return (b->frame_buffer_used > a->frame_buffer_used) -
               (b->frame_buffer_used < a->frame_buffer_used);
}

static int by_creation(const struct ls_choice *choice, const struct vgpu_instance *a,
                       const struct vgpu_instance *b)
{
        (void)choice;
        return (a->created_seconds > b->created_seconds) -
               (a->created_seconds < b->created_seconds);
}

typedef int compare_fn(const struct ls_choice *choice, const struct vgpu_instance *a,
                       const struct vgpu_instance *b);

static const struct {
        const char *name;
        compare_fn *compare;
} orders[] = { { "name", by_name },       { "device", by_device }, { "state", by_state },
               { "share", by_share },     { "use", by_use },       { "memory", by_memory },
               { "created", by_creation } };

static int find_order(const struct arguments *arguments, compare_fn **ret_compare)
{
        const char *key = arguments_get(arguments, "sort");

        for (size_t i = 0; key && i < sizeof(orders) / sizeof(orders[0]); i++)
                if (strcmp(orders[i].name, key) == 0) {
                        *ret_compare = orders[i].compare;
                        return 0;
                }
        return key ? say_usage(arguments, LS_CHOICE_SORT_HELP, "--sort: not by '%s'", key) : 0;
}

/* Stable: what is equal stays as it was created. There are at most some thousands. */
static void sort(struct ls_choice *choice, compare_fn *compare)
{
        for (size_t i = 1; i < choice->n; i++) {
                const struct vgpu_instance *instance = choice->instances[i];
                size_t k = i;

                for (; k > 0 && compare(choice, choice->instances[k - 1], instance) > 0; k--)
                        choice->instances[k] = choice->instances[k - 1];
                choice->instances[k] = instance;
        }
}

/* Asking. */

/* A name that there is not stops none of the others. */
static int find_named(struct ls_choice *choice, const struct arguments *arguments,
                      struct vgpu_client *client)
{
        choice->named = calloc(arguments->n_words, sizeof(choice->named[0]));
        if (!choice->named)
                return say_failure(arguments, EXIT_CODE_FAILED, "OutOfMemory", "", "out of memory");
        for (size_t i = 0; i < arguments->n_words; i++) {
                struct arguments about = *arguments;
                int r = vgpu_instance_lookup(client, arguments->words[i],
                                             &choice->named[choice->n_named]);

                if (r == 0)
                        choice->n_named++;
                else if (arguments->n_words == 1 ||
                         vgpu_client_get_error(client)->kind != VGPU_ERROR_NO_SUCH_VGPU)
                        return r;
                else {
                        about.vgpu = arguments->words[i];
                        choice->code = say_error(&about, client);
                }
        }
        return 0;
}

static int find(struct ls_choice *choice, const struct arguments *arguments,
                struct vgpu_client *client)
{
        int r = arguments->n_words > 0 ? find_named(choice, arguments, client)
                                       : vgpu_instance_lookup_all(client, &choice->all);

        if (r != 0)
                return r;
        choice->n = choice->all ? choice->all->n_instances : choice->n_named;
        choice->instances = calloc(choice->n + 1, sizeof(choice->instances[0]));
        if (!choice->instances)
                return say_failure(arguments, EXIT_CODE_FAILED, "OutOfMemory", "", "out of memory");
        for (size_t i = 0; i < choice->n; i++)
                choice->instances[i] = choice->all ? choice->all->instances[i] : choice->named[i];
        return 0;
}

int ls_choice_find(struct ls_choice *choice, const struct arguments *arguments,
                   struct vgpu_client *client, bool has_use)
{
        struct vgpu_usage_snapshot_options options = VGPU_USAGE_SNAPSHOT_OPTIONS_INIT;
        compare_fn *compare = NULL;
        int r = check_state(arguments);

        if (r == 0)
                r = find_order(arguments, &compare);
        if (r == 0)
                r = find(choice, arguments, client);
        if (r == 0)
                r = leave_out(choice, arguments, client);
        if (r != 0)
                return r;
        options.is_without_processes = true;
        if ((has_use || compare == by_use) && choice->n > 0) /* if not, it is unknown */
                (void)vgpu_usage_take_snapshot_with(client, &options, &choice->use);
        if (compare)
                sort(choice, compare);
        return 0;
}
