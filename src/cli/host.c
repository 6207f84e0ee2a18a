/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/host.h"

#include <time.h>

#include <openvgpu/device.h>

#include "cli/say.h"

int host_get_gpu_instance(const struct arguments *arguments, uint32_t *ret_gpu_instance)
{
        const char *text = arguments_get(arguments, "gpu-instance");
        unsigned long id;
        char *end;

        *ret_gpu_instance = VGPU_WHOLE_DEVICE;
        if (!text)
                return 0;
        if (!arguments_get(arguments, "device"))
                return say_usage(arguments, "add --device DEVICE",
                                 "--gpu-instance needs a --device");
        id = strtoul(text, &end, 10);
        if (*text < '0' || *text > '9' || *end || id >= VGPU_WHOLE_DEVICE)
                return say_usage(arguments, "'nvidia-smi mig -lgi' lists them",
                                 "--gpu-instance: '%s' is not an id", text);
        *ret_gpu_instance = (uint32_t)id;
        return 0;
}

int host_new(const struct arguments *arguments, struct vgpu_host **ret_host)
{
        if (vgpu_host_new(ret_host, NULL) < 0)
                return say_failure(arguments, EXIT_CODE_FAILED, "OutOfMemory", "", "out of memory");
        return 0;
}

int host_say_error(const struct arguments *arguments, const struct vgpu_host *host)
{
        return say_library_error(arguments, vgpu_host_get_error(host));
}

/* Does the failure mean only that the device has nothing to do with vGPUs? */
static bool is_beside_the_point(const struct vgpu_host *host)
{
        return vgpu_host_get_error(host)->kind == VGPU_ERROR_NOT_SUPPORTED;
}

static int each_of_all(const struct arguments *arguments, struct vgpu_host *host,
                       int (*add)(struct vgpu_host *, uint32_t, void *), void *userdata)
{
        uint32_t count, n_done = 0;
        int code = 0;

        if (vgpu_device_count(host, &count) < 0)
                return host_say_error(arguments, host);
        for (uint32_t device = 0; device < count; device++) {
                if (add(host, device, userdata) == 0)
                        n_done++;
                else if (!is_beside_the_point(host))
                        code = host_say_error(arguments, host);
        }
        if (n_done == 0 && code == 0)
                return say_failure(arguments, EXIT_CODE_FAILED, "Unsupported",
                                   "start vgpud, or see whether the driver is one for vGPU hosts",
                                   "no device of this host has vGPUs");
        return code;
}

int host_each_device(const struct arguments *arguments, struct vgpu_host *host,
                     int (*add)(struct vgpu_host *host, uint32_t device, void *userdata),
                     void *userdata)
{
        const char *word = arguments_get(arguments, "device");
        uint32_t device;

        if (!word)
                return each_of_all(arguments, host, add, userdata);
        if (vgpu_device_find(host, word, &device) < 0 || add(host, device, userdata) < 0)
                return host_say_error(arguments, host);
        return 0;
}

static int say_suspended(const struct arguments *arguments, const struct vgpu_instance *record)
{
        return say_failure(arguments, EXIT_CODE_STATE, "WrongState", "resume it: vgpu resume",
                           "vGPU %s is suspended: NVML does not know it", record->name);
}

/*
 * vgpud answers before NVML's clients see what has changed: it shows them several changes together, at
 * most a tenth of a second later.
 */
#define SHOWN_TRIES   100
#define SHOWN_WAIT_NS 5000000

static void wait_until_shown(struct vgpu_host *host, uint32_t instance)
{
        const struct timespec wait = { .tv_nsec = SHOWN_WAIT_NS };

        for (int i = 0; i < SHOWN_TRIES; i++) {
                if (vgpu_instance_check(host, instance) == 0 ||
                    vgpu_host_get_error(host)->kind != VGPU_ERROR_NO_SUCH_VGPU)
                        return;
                nanosleep(&wait, NULL);
        }
}

int host_find_instance(const struct arguments *arguments, struct vgpu_client *client,
                       struct vgpu_host *host, const char *word, uint32_t *ret_instance,
                       struct vgpu_instance **ret_record)
{
        CLEANUP(vgpu_instance_freep) struct vgpu_instance *record = NULL;
        enum vgpu_error_kind kind;

        if (vgpu_instance_lookup(client, word, &record) == 0) {
                bool is_active = record->state != VGPU_INSTANCE_SUSPENDED;

                if (!is_active && !ret_record)
                        return say_suspended(arguments, record);
                *ret_instance = is_active ? record->id : 0;
                if (is_active)
                        wait_until_shown(host, record->id);
                if (ret_record)
                        *ret_record = TAKE(record);
                return 0;
        }
        /* vgpud does not have it or is not there: it may be one of NVIDIA's. If neither, vgpud knows names like it. */
        if (vgpu_instance_find(host, word, ret_instance) == 0)
                return 0;
        kind = vgpu_host_get_error(host)->kind;
        if ((kind == VGPU_ERROR_NO_LIBRARY || (ret_record && kind == VGPU_ERROR_NO_SUCH_VGPU)) &&
            vgpu_client_get_error(client)->kind == VGPU_ERROR_NO_SUCH_VGPU)
                return say_error(arguments, client);
        return host_say_error(arguments, host);
}

/* A vGPU of several devices has an id on each. */
static bool has_id(const struct vgpu_instance *instance, uint32_t id)
{
        for (size_t i = 0; i < instance->n_parts; i++)
                if (instance->parts[i]->id == id)
                        return true;
        return instance->id == id;
}

const char *host_get_name(const struct vgpu_instance_list *list, uint32_t instance)
{
        for (size_t i = 0; list && i < list->n_instances; i++)
                if (has_id(list->instances[i], instance))
                        return list->instances[i]->name;
        return "-";
}

struct each {
        const struct vgpu_instance_list *list; /* for the names; or NULL */
        int (*add)(struct vgpu_host *host, uint32_t device, uint32_t instance, const char *name,
                   struct listing *listing);
        struct listing listing;
};

static int add_instances(struct vgpu_host *host, uint32_t device, void *userdata)
{
        CLEANUP(freep) struct vgpu_number_list *ids = NULL;
        struct each *each = userdata;
        int r;

        r = vgpu_device_lookup_instances(host, device, VGPU_WHOLE_DEVICE, &ids);
        for (size_t i = 0; r == 0 && i < ids->n_numbers; i++) {
                r = each->add(host, device, ids->numbers[i],
                              host_get_name(each->list, ids->numbers[i]), &each->listing);
                if (r < 0 && vgpu_host_get_error(host)->kind == VGPU_ERROR_NO_SUCH_VGPU)
                        r = 0; /* it went meanwhile */
        }
        return r;
}

static int each_instance(const struct arguments *arguments, struct vgpu_client *client,
                         struct vgpu_host *host, struct each *each)
{
        CLEANUP(vgpu_instance_list_freep) struct vgpu_instance_list *list = NULL;
        uint32_t instance, device;
        int code;

        if (arguments->n_words > 0) {
                code = host_find_instance(arguments, client, host, arguments->words[0], &instance,
                                          NULL);
                if (code != 0)
                        return code;
        }
        /* Without vgpud there are no names, which is all that is lost. */
        if (vgpu_instance_lookup_all(client, &list) == 0)
                each->list = list;
        if (arguments->n_words == 0)
                return host_each_device(arguments, host, add_instances, each);
        if (vgpu_instance_get_device(host, instance, &device) < 0 ||
            each->add(host, device, instance, host_get_name(list, instance), &each->listing) < 0)
                return host_say_error(arguments, host);
        return 0;
}

int host_list_instances(const struct arguments *arguments, struct vgpu_client *client,
                        const struct column *columns, const char *key,
                        int (*add)(struct vgpu_host *host, uint32_t device, uint32_t instance,
                                   const char *name, struct listing *listing))
{
        CLEANUP(vgpu_host_freep) struct vgpu_host *host = NULL;
        struct each each = { .add = add };
        int code;

        code = host_new(arguments, &host);
        if (code != 0)
                return code;
        listing_init(&each.listing, columns);
        code = each_instance(arguments, client, host, &each);
        code = listing_print(&each.listing, arguments, key, code);
        listing_deinit(&each.listing);
        return code;
}

int host_parse_switch(const struct arguments *arguments, const char *word, bool *ret_is_on)
{
        *ret_is_on = strcmp(word, "on") == 0;
        if (*ret_is_on || strcmp(word, "off") == 0)
                return 0;
        return say_usage(arguments, "write on or off", "'%s' is neither on nor off", word);
}
