/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/image.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <openvgpu/device.h>
#include <openvgpu/manager.h>

DEFINE_CLEANUP(struct vgpu_device_list *, vgpu_device_list_free);
DEFINE_CLEANUP(struct vgpu_manager *, vgpu_manager_free);
DEFINE_CLEANUP(struct vgpu_instance *, vgpu_instance_free);

/* What the caller sees, and the texts that it points to. */
struct box {
        struct vgpu_image_report report;
        char *directory;
        char created[IMAGE_TEXT_MAX], host[IMAGE_TEXT_MAX], device_name[IMAGE_TEXT_MAX];
        char device_uuid[IMAGE_TEXT_MAX], vgpu[IMAGE_TEXT_MAX];
};

double image_now(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int image_set_error(struct vgpu_client *client, const struct image_error *error)
{
        enum vgpu_error_kind kind = VGPU_ERROR_FAILED;

        if (error->code == -EACCES || error->code == -EPERM)
                kind = VGPU_ERROR_PERMISSION_DENIED;
        else if (error->code == -ENOMEM)
                kind = VGPU_ERROR_OUT_OF_MEMORY;
        return error_set(&client->error, kind, error->hint, "%s", error->message);
}

int image_begin(struct vgpu_client *client, const struct vgpu_image_options *options,
                struct vgpu_image_options *ret_options, struct image_data_options *ret_data)
{
        const char *name;
        int r = 0;

        error_clear(&client->error);
        *ret_options = (struct vgpu_image_options)VGPU_IMAGE_OPTIONS_INIT;
        *ret_data = (struct image_data_options){ 0 };
        if (options)
                r = client_copy_options(client, ret_options, sizeof(*ret_options), options,
                                        options->size);
        if (r < 0)
                return r;
        name = ret_options->compression ? ret_options->compression : "none";
        if (compress_find(&ret_data->compression, name) < 0)
                return error_set_parameter(&client->error, "compression",
                                           "'%s' is no compression: none or zstd", name);
        if (!compress_is_built(ret_data->compression))
                return error_set_parameter(&client->error, "compression",
                                           "this build of OpenVGPU lacks %s", name);
        if (ret_options->level < 0 || ret_options->level > COMPRESS_LEVEL_MAX)
                return error_set_parameter(&client->error, "level", "%d is not between 1 and %d",
                                           ret_options->level, COMPRESS_LEVEL_MAX);
        ret_data->level = ret_options->level;
        return 0;
}

/* The manifest. */

static void set_text(char to[IMAGE_TEXT_MAX], const char *from)
{
        snprintf(to, IMAGE_TEXT_MAX, "%s", from);
}

void image_read_driver(char text[IMAGE_TEXT_MAX])
{
        FILE *file = fopen("/sys/module/nvidia/version", "re");

        text[0] = '\0';
        if (!file)
                return;
        if (!fgets(text, IMAGE_TEXT_MAX, file))
                text[0] = '\0';
        text[strcspn(text, "\n")] = '\0';
        fclose(file);
}

int image_describe_origin(struct vgpu_client *client, const char *device_uuid,
                          struct image_manifest *manifest)
{
        CLEANUP(vgpu_manager_freep) struct vgpu_manager *manager = NULL;
        CLEANUP(vgpu_device_list_freep) struct vgpu_device_list *list = NULL;
        time_t now = time(NULL);
        struct tm utc;

        gmtime_r(&now, &utc);
        strftime(manifest->created, sizeof(manifest->created), "%Y-%m-%dT%H:%M:%SZ", &utc);
        if (gethostname(manifest->host, sizeof(manifest->host) - 1) < 0)
                set_text(manifest->host, "?");
        set_text(manifest->software, vgpu_get_version());
        image_read_driver(manifest->driver);
        if (!device_uuid)
                return 0;

        if (vgpu_manager_lookup(client, &manager) < 0 || vgpu_device_lookup_all(client, &list) < 0)
                return client->error.value.code;
        manifest->driver_version = manager->cuda_driver_version;
        for (size_t i = 0; i < list->n_devices; i++) {
                const struct vgpu_device *device = list->devices[i];

                if (strcmp(device->uuid, device_uuid) != 0)
                        continue;
                set_text(manifest->device.name, device->name);
                set_text(manifest->device.uuid, device->uuid);
                manifest->device.memory = device->memory_total;
        }
        return 0;
}

void image_describe_vgpu(const struct vgpu_instance *instance, struct image_manifest *manifest)
{
        manifest->has_vgpu = true;
        set_text(manifest->vgpu.name, instance->name);
        set_text(manifest->vgpu.uuid, instance->uuid);
        manifest->vgpu.frame_buffer = instance->frame_buffer;
}

/* Reports. */

int image_report(struct vgpu_client *client, const char *directory,
                 const struct image_manifest *manifest, const struct image_data_report *data,
                 struct vgpu_image_report **ret_report)
{
        struct box *box = calloc(1, sizeof(*box));
        uint64_t criu_bytes = 0;

        if (box)
                box->directory = strdup(directory);
        if (!box || !box->directory) {
                free(box);
                return error_set_no_memory(&client->error);
        }
        set_text(box->created, manifest->created);
        set_text(box->host, manifest->host);
        set_text(box->device_name, manifest->device.name);
        set_text(box->device_uuid, manifest->device.uuid);
        set_text(box->vgpu, manifest->has_vgpu ? manifest->vgpu.name : "");
        for (size_t i = 0; i < manifest->criu.n_files; i++)
                criu_bytes += manifest->criu.files[i].size;
        box->report = (struct vgpu_image_report){
                .directory = box->directory,
                .created = box->created,
                .host = box->host,
                .device_name = box->device_name,
                .device_uuid = box->device_uuid,
                .vgpu = box->vgpu,
                .cuda_driver_version = manifest->driver_version,
                .n_processes = manifest->n_processes,
                .pid = manifest->criu.pid,
                .memory_bytes = manifest->memory.size,
                .data_bytes = manifest->memory.file_size,
                .criu_bytes = criu_bytes,
                .has_io_uring = data->has_ring,
                .has_direct_io = data->has_direct_io,
                .data_seconds = data->seconds,
        };
        *ret_report = &box->report;
        return 0;
}

struct vgpu_image_report *vgpu_image_report_free(struct vgpu_image_report *report)
{
        struct box *box = (struct box *)report;

        if (!box)
                return NULL;
        free(box->directory);
        free(box);
        return NULL;
}

/* Dumping the memory of a vGPU. */

int image_write_memory(struct memory *memory, const struct image_directory *directory,
                       const struct image_data_options *options, struct image_manifest *manifest,
                       struct image_data_report *ret_report)
{
        struct image_error error = { 0 };
        int r = memory_describe(memory, manifest);

        if (r < 0)
                return r;
        r = image_data_write(directory->fd, directory->partial, IMAGE_DATA_FILE, memory->pieces,
                             memory->n_pieces, options, &manifest->memory, ret_report, &error);
        manifest->has_memory = r == 0;
        return r < 0 ? image_set_error(memory->client, &error) : 0;
}

static int dump_into(struct vgpu_client *client, const char *name,
                     struct image_directory *directory, const struct image_data_options *options,
                     struct image_manifest *manifest, struct image_data_report *data)
{
        CLEANUP(vgpu_instance_freep) struct vgpu_instance *instance = NULL;
        struct image_error error = { 0 };
        struct memory memory;
        int r = vgpu_instance_lookup(client, name, &instance);

        if (r == 0)
                r = image_describe_origin(client, instance->device_uuid, manifest);
        if (r == 0)
                r = memory_open(&memory, client, name, false);
        if (r < 0)
                return r;
        image_describe_vgpu(instance, manifest);
        r = image_write_memory(&memory, directory, options, manifest, data);
        if (r == 0 && image_directory_commit(directory, manifest, &error) < 0)
                r = image_set_error(client, &error);
        memory_close(&memory);
        return r;
}

int vgpu_image_dump(struct vgpu_client *client, const char *name, const char *directory_path,
                    const struct vgpu_image_options *options, struct vgpu_image_report **ret_report)
{
        struct image_manifest manifest = { .has_memory = false };
        struct image_data_report data = { 0 };
        struct image_data_options data_options;
        struct vgpu_image_options copy;
        struct image_directory directory;
        struct image_error error = { 0 };
        double start = image_now();
        int r = image_begin(client, options, &copy, &data_options);

        if (r < 0)
                return r;
        if (image_directory_begin(&directory, directory_path, &error) < 0)
                return image_set_error(client, &error);
        r = dump_into(client, name, &directory, &data_options, &manifest, &data);
        if (r < 0) {
                image_directory_abandon(&directory);
        } else {
                image_directory_close(&directory);
                if (ret_report)
                        r = image_report(client, directory_path, &manifest, &data, ret_report);
                if (ret_report && r == 0)
                        (*ret_report)->seconds = image_now() - start;
        }
        image_manifest_deinit(&manifest);
        return r;
}

/* Loading it. */

static const struct image_process *find_process(const struct image_manifest *manifest, int pid)
{
        for (size_t i = 0; i < manifest->n_processes; i++)
                if (manifest->processes[i].pid == pid)
                        return &manifest->processes[i];
        return NULL;
}

static bool has_same_memory(const struct image_process *a, const struct image_process *b)
{
        return a->n_allocations == b->n_allocations &&
               memcmp(a->allocations, b->allocations, a->n_allocations * sizeof(*a->allocations)) ==
                       0;
}

/* What is in the image must fit what is there, byte for byte and in the same order. */
static int check_fit(struct memory *memory, const struct image_manifest *image)
{
        struct error *error = &memory->client->error;
        struct image_manifest there = { .has_memory = false };
        int r = memory_describe(memory, &there);

        if (r == 0 && there.n_processes != image->n_processes)
                r = error_set(error, VGPU_ERROR_FAILED, "load it into the vGPU that it is of",
                              "the image has %zu processes, vGPU %s has %zu", image->n_processes,
                              memory->name, there.n_processes);
        for (size_t i = 0; r == 0 && i < there.n_processes; i++) {
                const struct image_process *own = &there.processes[i];
                const struct image_process *other = find_process(image, own->pid);

                if (!other || other != &image->processes[i])
                        r = error_set(error, VGPU_ERROR_FAILED,
                                      "an image of memory alone can only go back to its processes",
                                      "process %d (%s) of vGPU %s is not in the image", own->pid,
                                      own->name, memory->name);
                else if (!has_same_memory(own, other))
                        r = error_set(
                                error, VGPU_ERROR_FAILED,
                                "it allocated or freed memory since the dump",
                                "process %d (%s) of vGPU %s has other memory than in the image",
                                own->pid, own->name, memory->name);
        }
        image_manifest_deinit(&there);
        return r;
}

static int load_from(struct vgpu_client *client, const char *name,
                     const struct image_directory *directory, const struct image_manifest *manifest,
                     const struct image_data_options *options, struct image_data_report *data)
{
        struct image_error error = { 0 };
        struct memory memory;
        int r;

        if (!manifest->has_memory)
                return error_set(&client->error, VGPU_ERROR_FAILED,
                                 "make the process again, without naming a vGPU",
                                 "%s has no memory of a vGPU in it", directory->path);
        r = memory_replace(&memory, client, name, NULL);
        if (r < 0)
                return r;
        r = check_fit(&memory, manifest);
        if (r == 0 &&
            image_data_read(directory->fd, directory->path, IMAGE_DATA_FILE, &manifest->memory,
                            memory.pieces, memory.n_pieces, options, data, &error) < 0)
                r = image_set_error(client, &error);
        if (r == 0)
                r = memory_commit(&memory);
        memory_close(&memory);
        return r;
}

int vgpu_image_load(struct vgpu_client *client, const char *name, const char *directory_path,
                    const struct vgpu_image_options *options, struct vgpu_image_report **ret_report)
{
        struct image_manifest manifest = { .has_memory = false };
        struct image_data_report data = { 0 };
        struct image_data_options data_options;
        struct vgpu_image_options copy;
        struct image_directory directory;
        struct image_error error = { 0 };
        double start = image_now();
        int r = image_begin(client, options, &copy, &data_options);

        if (r < 0)
                return r;
        if (image_directory_open(&directory, directory_path, &manifest, &error) < 0)
                return image_set_error(client, &error);
        r = load_from(client, name, &directory, &manifest, &data_options, &data);
        image_directory_close(&directory);
        if (r == 0 && ret_report)
                r = image_report(client, directory_path, &manifest, &data, ret_report);
        if (r == 0 && ret_report)
                (*ret_report)->seconds = image_now() - start;
        image_manifest_deinit(&manifest);
        return r;
}

/* Checking. */

int vgpu_image_check(struct vgpu_client *client, const char *directory_path,
                     struct vgpu_image_report **ret_report)
{
        const struct image_data_options options = { .threads = 0 };
        struct image_manifest manifest = { .has_memory = false };
        struct image_data_report data = { 0 };
        struct image_directory directory;
        struct image_error error = { 0 };
        double start = image_now();
        int r;

        error_clear(&client->error);
        if (image_directory_open(&directory, directory_path, &manifest, &error) < 0)
                return image_set_error(client, &error);
        r = manifest.has_memory
                    ? image_data_read(directory.fd, directory.path, IMAGE_DATA_FILE,
                                      &manifest.memory, NULL, 0, &options, &data, &error)
                    : 0;
        if (r == 0 && manifest.has_criu)
                r = image_directory_check_criu(&directory, &manifest, &error);
        if (r < 0)
                r = image_set_error(client, &error);
        else if (ret_report)
                r = image_report(client, directory_path, &manifest, &data, ret_report);
        if (r == 0 && ret_report)
                (*ret_report)->seconds = image_now() - start;
        image_directory_close(&directory);
        image_manifest_deinit(&manifest);
        return r;
}
