/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes processes again. The library first checks everything that it can know. Then CRIU makes the
 * processes, with their CUDA state still off the device, and a guest's memory goes into the pool. Then
 * the processes resume. If this fails, they are ended: the image has not changed and can be loaded again.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <openvgpu/checkpoint.h>
#include <openvgpu/operation.h>

#include "image/criu.h"
#include "lib/image.h"
#include "lib/instance.h"
#include "lib/process-tree.h"

DEFINE_CLEANUP(struct vgpu_checkpoint *, vgpu_checkpoint_free);

#define REMOVE_TRIES 40

#define DEVICES_TEXT_MAX (IMAGE_DEVICES_MAX * (IMAGE_TEXT_MAX + 1))

struct load {
        struct vgpu_client *client;
        struct vgpu_image_options options;
        struct image_data_options data_options;
        struct criu criu;
        int criu_folder; /* -1: not open */
        struct image_chain chain;
        const struct image_directory *directory; /* of the image, */
        const struct image_manifest *manifest;   /* the chain's first */
        struct image_data_report data;
        struct process_tree tree;
        struct vgpu_instance *instance; /* of guests */
        bool has_created;               /* the vGPU */
        double criu_seconds, cuda_seconds;
};

static int set_error(struct load *load, const struct image_error *error)
{
        return image_set_error(load->client, error);
}

/* Checking. */

static int check_numbers(struct load *load)
{
        int pid = load->manifest->criu.pid;

        if (kill(pid, 0) < 0 && errno == ESRCH)
                return 0;
        return error_set(&load->client->error, VGPU_ERROR_BUSY,
                         "end it (a zombie: its parent has not looked at its end yet)",
                         "there is a process %d already, which is the number of the one in %s", pid,
                         load->directory->path);
}

/* Of the process' memory the driver's library is a part: another one would be executed half. */
static int check_driver(struct load *load)
{
        char here[IMAGE_TEXT_MAX];

        image_read_driver(here);
        if (strcmp(here, load->manifest->driver) == 0)
                return 0;
        return error_set(&load->client->error, VGPU_ERROR_FAILED,
                         "load it where the driver is the same",
                         "%s was made with driver %s, here is %s", load->directory->path,
                         load->manifest->driver[0] ? load->manifest->driver : "(none)",
                         here[0] ? here : "none");
}

static int check(struct load *load)
{
        struct image_error error = { 0 };

        if (!load->manifest->has_criu)
                return error_set(&load->client->error, VGPU_ERROR_FAILED,
                                 "name the vGPU to put it into, with --vgpu",
                                 "%s has no processes in it, only memory", load->directory->path);
        if (load->options.device && !load->manifest->has_vgpu)
                return error_set(&load->client->error, VGPU_ERROR_FAILED,
                                 "load it without --device",
                                 "%s is of processes in no vGPU: they go back to their own devices",
                                 load->directory->path);
        if (image_chain_check_owners(&load->chain, &error) < 0)
                return set_error(load, &error);
        load->criu_folder = image_directory_open_criu(load->directory, &error);
        if (load->criu_folder < 0 || criu_find(&load->criu, load->options.criu, &error) < 0 ||
            image_directory_check_criu(load->directory, load->manifest, &error) < 0)
                return set_error(load, &error);
        if (check_driver(load) < 0)
                return load->client->error.value.code;
        return check_numbers(load);
}

/* The vGPU. */

/* "GPU-...,GPU-...", as CreateVgpu takes them. */
static const char *list_devices(const struct image_manifest *manifest,
                                char ret_text[DEVICES_TEXT_MAX])
{
        size_t at = 0;

        ret_text[0] = '\0';
        for (size_t i = 0; i < manifest->n_devices; i++)
                at += (size_t)snprintf(ret_text + at, DEVICES_TEXT_MAX - at, "%s%s",
                                       i > 0 ? "," : "", manifest->device[i].uuid);
        return ret_text;
}

static bool is_on_devices_of(const struct vgpu_instance *instance,
                             const struct image_manifest *manifest)
{
        bool is_on = strcmp(instance->device_uuid, manifest->device[0].uuid) == 0 &&
                     (instance->n_parts > 1 ? instance->n_parts : 1) == manifest->n_devices;

        for (size_t i = 1; is_on && i < manifest->n_devices; i++)
                is_on = strcmp(instance->parts[i]->device_uuid, manifest->device[i].uuid) == 0;
        return is_on;
}

static int create_instance(struct load *load, bool with_name)
{
        static const struct call call = { .method = "CreateVgpu", .kind = CALL_CHANGES };
        CLEANUP(json_decrefp) json_t *parameters = NULL, *answer = NULL;
        char devices[DEVICES_TEXT_MAX];
        int r = client_begin(load->client, &parameters);

        if (r == 0 && with_name)
                r = client_add_text(load->client, parameters, "name", load->manifest->vgpu.name);
        if (r == 0)
                r = client_add_text(load->client, parameters, "uuid", load->manifest->vgpu.uuid);
        if (r == 0)
                r = client_add_text(load->client, parameters, "device",
                                    list_devices(load->manifest, devices));
        if (r == 0)
                r = client_add(load->client, parameters, "frame_buffer",
                               json_integer((json_int_t)load->manifest->vgpu.frame_buffer));
        if (r == 0)
                r = client_call(load->client, &call, parameters, &answer);
        if (r < 0)
                return r;
        load->has_created = true;
        return instance_read(load->client, call.method, json_object_get(answer, "vgpu"),
                             &load->instance);
}

static int check_instance(struct load *load)
{
        const struct vgpu_instance *instance = load->instance;
        char devices[DEVICES_TEXT_MAX];

        if (instance->n_processes > 0)
                return error_set(&load->client->error, VGPU_ERROR_BUSY, "end them first",
                                 "vGPU %s, which the image is of, has processes", instance->name);
        if (!is_on_devices_of(instance, load->manifest))
                return error_set(&load->client->error, VGPU_ERROR_WRONG_STATE,
                                 "vgpu rm it; the load makes it again where it was",
                                 "vGPU %s is on %s than the image (%s)", instance->name,
                                 load->manifest->n_devices > 1 ? "other devices" : "another device",
                                 list_devices(load->manifest, devices));
        return 0;
}

static int get_instance(struct load *load)
{
        int r;

        if (!load->manifest->has_vgpu)
                return 0;
        r = vgpu_instance_lookup(load->client, load->manifest->vgpu.uuid, &load->instance);
        if (r == 0)
                return check_instance(load);
        if (load->client->error.value.kind != VGPU_ERROR_NO_SUCH_VGPU)
                return r;
        r = create_instance(load, true);
        if (r < 0 && load->client->error.value.kind == VGPU_ERROR_VGPU_EXISTS)
                r = create_instance(load, false); /* another one has the name */
        return r;
}

/* The processes. */

static int run_criu(struct load *load)
{
        struct image_error error = { 0 };
        double start = image_now();

        if (criu_restore(&load->criu, load->criu_folder, load->manifest->criu.is_shell_job,
                         &error) < 0)
                return set_error(load, &error);
        load->criu_seconds = image_now() - start;
        if (process_tree_read(&load->tree, load->manifest->criu.pid) < 0)
                return error_set(&load->client->error, VGPU_ERROR_GUEST_LOST, "",
                                 "process %d ended as soon as it was there again",
                                 load->manifest->criu.pid);
        return 0;
}

static int resume_processes(struct load *load)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;
        struct vgpu_checkpoint_options options = VGPU_CHECKPOINT_OPTIONS_INIT;
        const struct vgpu_checkpoint_error *error;
        int r = vgpu_checkpoint_new(&checkpoint, load->manifest->criu.pid);

        if (r < 0)
                return error_set(&load->client->error, VGPU_ERROR_GUEST_LOST, "", "process %d: %s",
                                 load->manifest->criu.pid, strerrordesc_np(-r));
        options.with_children = true;
        r = vgpu_checkpoint_resume(checkpoint, &options);
        error = vgpu_checkpoint_get_error(checkpoint);
        return r < 0 ? error_set(&load->client->error, VGPU_ERROR_FAILED, error->hint, "%s",
                                 error->message)
                     : 0;
}

static int fill_memory(struct load *load)
{
        struct image_error error = { 0 };
        struct memory memory;
        int r = memory_replace(&memory, load->client, load->instance->uuid, load->manifest);

        if (r < 0)
                return r;
        if (image_chain_read(&load->chain, memory.pieces, memory.n_pieces, &load->data_options,
                             &load->data, &error) < 0)
                r = set_error(load, &error);
        if (r == 0)
                r = memory_commit(&memory);
        memory_close(&memory);
        return r;
}

static int resume(struct load *load)
{
        double start;
        int r = 0;

        if (load->instance && load->manifest->has_memory)
                r = fill_memory(load);
        start = image_now();
        if (r == 0)
                r = load->instance ? vgpu_operation_resume(load->client, load->instance->uuid,
                                                           load->options.device, NULL, NULL)
                                   : resume_processes(load);
        load->cuda_seconds = image_now() - start;
        return r;
}

/* The manager may not have heard of the end of the processes yet. */
static void remove_instance(struct load *load)
{
        const struct timespec pause = { .tv_nsec = 50000000 };

        for (int i = 0; i < REMOVE_TRIES; i++) {
                if (vgpu_instance_remove(load->client, load->instance->uuid, NULL) == 0 ||
                    load->client->error.value.kind != VGPU_ERROR_BUSY)
                        return;
                nanosleep(&pause, NULL);
        }
}

static void undo(struct load *load)
{
        struct error saved = load->client->error;

        process_tree_kill(&load->tree);
        if (load->has_created && load->instance)
                remove_instance(load);
        load->client->error = saved;
}

static int load_all(struct load *load, double start, struct vgpu_image_report **ret_report)
{
        int r = check(load);

        if (r == 0)
                r = get_instance(load);
        if (r == 0)
                r = run_criu(load);
        if (r == 0)
                r = resume(load);
        if (r < 0) {
                undo(load);
                return r;
        }
        if (!ret_report)
                return 0;
        r = image_report_chain(load->client, &load->chain, &load->data, ret_report);
        if (r < 0)
                return r;
        (*ret_report)->criu_seconds = load->criu_seconds;
        (*ret_report)->cuda_seconds = load->cuda_seconds;
        (*ret_report)->seconds = image_now() - start;
        return 0;
}

int vgpu_image_load_process(struct vgpu_client *client, const char *directory,
                            const struct vgpu_image_options *options,
                            struct vgpu_image_report **ret_report)
{
        struct load *load = calloc(1, sizeof(*load)); /* the tree is too large for a stack */
        struct image_error error = { 0 };
        double start = image_now();
        int r;

        if (!load)
                return error_set_no_memory(&client->error);
        load->client = client;
        load->criu_folder = -1;
        r = image_begin(client, options, &load->options, &load->data_options);
        if (r == 0 && image_chain_open(&load->chain, directory, &error) < 0)
                r = image_set_error(client, &error);
        if (r == 0) {
                load->directory = &load->chain.links[0]->directory;
                load->manifest = &load->chain.links[0]->manifest;
                r = load_all(load, start, ret_report);
                fd_close(load->criu_folder);
        }
        image_chain_close(&load->chain);
        vgpu_instance_free(load->instance);
        free(load);
        return r;
}
