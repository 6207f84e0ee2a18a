/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/image.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <openvgpu/device.h>
#include <openvgpu/manager.h>
#include <openvgpu/operation.h>

#include "base/clock.h"

DEFINE_CLEANUP(struct vgpu_device_list *, vgpu_device_list_free);
DEFINE_CLEANUP(struct vgpu_manager *, vgpu_manager_free);
DEFINE_CLEANUP(struct vgpu_instance *, vgpu_instance_free);

/* What the caller sees, and the texts that it points to. */
struct box {
        struct vgpu_image_report report;
        char *directory;
        char **ancestors;
        char created[IMAGE_TEXT_MAX], host[IMAGE_TEXT_MAX], device_name[IMAGE_TEXT_MAX];
        char device_uuid[IMAGE_DEVICES_MAX][IMAGE_TEXT_MAX], vgpu[IMAGE_TEXT_MAX];
        const char *device_uuids[IMAGE_DEVICES_MAX];
};

double image_now(void)
{
        return (double)clock_now(CLOCK_MONOTONIC) / NS_PER_S;
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

static void describe_device(const struct vgpu_device_list *list, const char *uuid,
                            struct image_device *to)
{
        for (size_t i = 0; i < list->n_devices; i++) {
                const struct vgpu_device *device = list->devices[i];

                if (strcmp(device->uuid, uuid) != 0)
                        continue;
                set_text(to->name, device->name);
                set_text(to->uuid, device->uuid);
                to->memory = device->memory_total;
        }
}

static int describe_devices(struct vgpu_client *client, const struct vgpu_instance *instance,
                            struct image_manifest *manifest)
{
        CLEANUP(vgpu_manager_freep) struct vgpu_manager *manager = NULL;
        CLEANUP(vgpu_device_list_freep) struct vgpu_device_list *list = NULL;

        if (instance->n_parts > IMAGE_DEVICES_MAX)
                return error_set(&client->error, VGPU_ERROR_FAILED, "use a newer vgpu",
                                 "vGPU %s has %zu devices, an image can be of %d", instance->name,
                                 instance->n_parts, IMAGE_DEVICES_MAX);
        if (vgpu_manager_lookup(client, &manager) < 0 || vgpu_device_lookup_all(client, &list) < 0)
                return client->error.value.code;
        manifest->driver_version = manager->cuda_driver_version;
        manifest->n_devices = instance->n_parts > 1 ? instance->n_parts : 1;
        describe_device(list, instance->device_uuid, &manifest->device[0]);
        for (size_t i = 1; i < instance->n_parts; i++)
                describe_device(list, instance->parts[i]->device_uuid, &manifest->device[i]);
        return 0;
}

int image_describe_origin(struct vgpu_client *client, const struct vgpu_instance *instance,
                          struct image_manifest *manifest)
{
        time_t now = time(NULL);
        struct tm utc;

        gmtime_r(&now, &utc);
        strftime(manifest->created, sizeof(manifest->created), "%Y-%m-%dT%H:%M:%SZ", &utc);
        if (gethostname(manifest->host, sizeof(manifest->host) - 1) < 0)
                set_text(manifest->host, "?");
        set_text(manifest->software, vgpu_get_version());
        if (image_manifest_make_id(manifest) < 0)
                return error_set(&client->error, VGPU_ERROR_FAILED, "",
                                 "no random numbers for the id of the image: %s",
                                 strerrordesc_np(errno));
        image_read_driver(manifest->driver);
        return instance ? describe_devices(client, instance, manifest) : 0;
}

void image_describe_vgpu(const struct vgpu_instance *instance, struct image_manifest *manifest)
{
        manifest->has_vgpu = true;
        set_text(manifest->vgpu.name, instance->name);
        set_text(manifest->vgpu.uuid, instance->uuid);
        manifest->vgpu.frame_buffer = instance->frame_buffer;
}

/* Reports. */

static char **free_paths(char **paths)
{
        for (char **path = paths; path && *path; path++)
                free(*path);
        free(paths);
        return NULL;
}

static char **copy_paths(struct image_link *const *links, size_t n)
{
        char **paths = calloc(n + 1, sizeof(*paths)); /* the last is NULL */

        for (size_t i = 0; paths && i < n; i++) {
                paths[i] = strdup(links[i]->directory.path);
                if (!paths[i])
                        return free_paths(paths);
        }
        return paths;
}

static int make_report(struct vgpu_client *client, const char *directory,
                       const struct image_manifest *manifest, const struct image_data_report *data,
                       struct image_link *const *ancestors, size_t n_ancestors,
                       struct vgpu_image_report **ret_report)
{
        struct box *box = calloc(1, sizeof(*box));
        uint64_t criu_bytes = 0;

        if (box) {
                box->directory = strdup(directory);
                box->ancestors = copy_paths(ancestors, n_ancestors);
        }
        if (!box || !box->directory || !box->ancestors) {
                (void)vgpu_image_report_free(box ? &box->report : NULL);
                return error_set_no_memory(&client->error);
        }
        set_text(box->created, manifest->created);
        set_text(box->host, manifest->host);
        set_text(box->device_name, manifest->device[0].name);
        for (size_t i = 0; i < IMAGE_DEVICES_MAX; i++) {
                set_text(box->device_uuid[i], manifest->device[i].uuid);
                box->device_uuids[i] = box->device_uuid[i];
        }
        set_text(box->vgpu, manifest->has_vgpu ? manifest->vgpu.name : "");
        for (size_t i = 0; i < manifest->criu.n_files; i++)
                criu_bytes += manifest->criu.files[i].size;
        box->report = (struct vgpu_image_report){
                .directory = box->directory,
                .created = box->created,
                .host = box->host,
                .device_name = box->device_name,
                .device_uuid = box->device_uuid[0],
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
                .ancestors = (const char *const *)box->ancestors,
                .n_ancestors = n_ancestors,
                .inherited_bytes = image_table_sum_inherited(&manifest->memory),
                .device_uuids = box->device_uuids,
                .n_devices = manifest->n_devices > 1 ? manifest->n_devices : 1,
        };
        *ret_report = &box->report;
        return 0;
}

int image_report_dump(struct vgpu_client *client, const char *directory,
                      const struct image_manifest *manifest, const struct image_data_report *data,
                      const struct image_data_options *options,
                      struct vgpu_image_report **ret_report)
{
        const struct image_chain *chain = options->parent ? &options->parent->chain : NULL;

        return make_report(client, directory, manifest, data, chain ? chain->links : NULL,
                           chain ? chain->n : 0, ret_report);
}

int image_report_chain(struct vgpu_client *client, const struct image_chain *chain,
                       const struct image_data_report *data, struct vgpu_image_report **ret_report)
{
        const struct image_link *image = chain->links[0];

        return make_report(client, image->directory.path, &image->manifest, data, chain->links + 1,
                           chain->n - 1, ret_report);
}

struct vgpu_image_report *vgpu_image_report_free(struct vgpu_image_report *report)
{
        struct box *box = (struct box *)report;

        if (!box)
                return NULL;
        free(box->directory);
        (void)free_paths(box->ancestors);
        free(box);
        return NULL;
}

/* Comparing with a parent. */

int image_comparison_new(struct image_comparison **ret_comparison, struct vgpu_client *client,
                         const char *parent, struct image_data_options *data)
{
        struct image_comparison *comparison = calloc(1, sizeof(*comparison));
        struct image_error error = { 0 };
        int r;

        if (!comparison)
                return error_set_no_memory(&client->error);
        if (parent) {
                r = image_parent_open(&comparison->parent, parent, &error);
                comparison->hashes.key = comparison->parent.hashes.key;
                data->parent = &comparison->parent;
        } else {
                r = hash_key_make(&comparison->hashes.key);
                if (r < 0)
                        (void)image_fail_file(&error, r, "make", "a key for hashes");
        }
        if (r < 0) {
                (void)image_comparison_free(comparison);
                return image_set_error(client, &error);
        }
        data->hashes = &comparison->hashes;
        *ret_comparison = comparison;
        return 0;
}

struct image_comparison *image_comparison_free(struct image_comparison *comparison)
{
        if (!comparison)
                return NULL;
        image_parent_close(&comparison->parent);
        image_hashes_deinit(&comparison->hashes);
        free(comparison);
        return NULL;
}

int image_check_parent(struct vgpu_client *client, const struct image_data_options *data,
                       const struct vgpu_instance *instance)
{
        const struct image_link *link = data->parent ? data->parent->chain.links[0] : NULL;

        if (!link || strcmp(link->manifest.vgpu.uuid, instance->uuid) == 0)
                return 0;
        return error_set(&client->error, VGPU_ERROR_FAILED,
                         "name an image of this vGPU, or dump without --parent",
                         "%s can be no parent: it is an image of vGPU %s (%s), not of %s (%s)",
                         link->directory.path, link->manifest.vgpu.name, link->manifest.vgpu.uuid,
                         instance->name, instance->uuid);
}

/* Dumping the memory of a vGPU. */

static int write_hashes(const struct image_directory *directory,
                        const struct image_data_options *options, struct image_manifest *manifest,
                        struct image_error *error)
{
        int r = image_hashes_write(options->hashes, directory->fd, directory->partial,
                                   &manifest->hashes_checksum, error);

        manifest->has_hashes = r == 0;
        return r == 0 && options->parent ? image_parent_describe(options->parent, manifest, error)
                                         : r;
}

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
        if (r == 0)
                r = write_hashes(directory, options, manifest, &error);
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
                r = image_check_parent(client, options, instance);
        if (r == 0)
                r = image_describe_origin(client, instance, manifest);
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

static int dump_to(struct vgpu_client *client, const char *name, const char *path,
                   const struct image_data_options *options, struct vgpu_image_report **ret_report)
{
        struct image_manifest manifest = { .has_memory = false };
        struct image_data_report data = { 0 };
        struct image_directory directory;
        struct image_error error = { 0 };
        double start = image_now();
        int r;

        if (image_directory_begin(&directory, path, &error) < 0)
                return image_set_error(client, &error);
        r = dump_into(client, name, &directory, options, &manifest, &data);
        if (r < 0) {
                image_directory_abandon(&directory);
        } else {
                image_directory_close(&directory);
                if (ret_report)
                        r = image_report_dump(client, path, &manifest, &data, options, ret_report);
                if (ret_report && r == 0)
                        (*ret_report)->seconds = image_now() - start;
        }
        image_manifest_deinit(&manifest);
        return r;
}

int vgpu_image_dump(struct vgpu_client *client, const char *name, const char *directory,
                    const struct vgpu_image_options *options, struct vgpu_image_report **ret_report)
{
        struct image_comparison *comparison = NULL;
        struct image_data_options data_options;
        struct vgpu_image_options copy;
        int r = image_begin(client, options, &copy, &data_options);

        if (r == 0)
                r = image_comparison_new(&comparison, client, copy.parent, &data_options);
        if (r == 0)
                r = dump_to(client, name, directory, &data_options, ret_report);
        (void)image_comparison_free(comparison);
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

        if (r == 0 && memory_count_devices(memory) != image->n_devices)
                r = error_set(error, VGPU_ERROR_FAILED, "load it into the vGPU that it is of",
                              "the image is of %zu devices, vGPU %s has %zu", image->n_devices,
                              memory->name, memory_count_devices(memory));
        if (r == 0 && there.n_processes != image->n_processes)
                r = error_set(error, VGPU_ERROR_FAILED, "load it into the vGPU that it is of",
                              "the image has %zu process%s, vGPU %s has %zu", image->n_processes,
                              image->n_processes == 1 ? "" : "es", memory->name, there.n_processes);
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

static int load_from(struct vgpu_client *client, const char *name, const struct image_chain *chain,
                     const struct image_data_options *options, struct image_data_report *data)
{
        const struct image_link *image = chain->links[0];
        struct image_error error = { 0 };
        struct memory memory;
        int r;

        if (!image->manifest.has_memory)
                return error_set(&client->error, VGPU_ERROR_FAILED,
                                 "make the process again, without naming a vGPU",
                                 "%s has no memory of a vGPU in it", image->directory.path);
        r = memory_replace(&memory, client, name, NULL);
        if (r < 0)
                return r;
        r = check_fit(&memory, &image->manifest);
        if (r == 0 &&
            image_chain_read(chain, memory.pieces, memory.n_pieces, options, data, &error) < 0)
                r = image_set_error(client, &error);
        if (r == 0)
                r = memory_commit(&memory);
        memory_close(&memory);
        return r;
}

int vgpu_image_load(struct vgpu_client *client, const char *name, const char *directory,
                    const struct vgpu_image_options *options, struct vgpu_image_report **ret_report)
{
        struct image_data_report data = { 0 };
        struct image_data_options data_options;
        struct vgpu_image_options copy;
        struct image_chain chain;
        struct image_error error = { 0 };
        double start = image_now();
        int r = image_begin(client, options, &copy, &data_options);

        if (r < 0)
                return r;
        if (image_chain_open(&chain, directory, &error) < 0)
                return image_set_error(client, &error);
        r = load_from(client, name, &chain, &data_options, &data);
        if (r == 0 && copy.device)
                r = vgpu_operation_resume(client, name, copy.device, NULL, NULL);
        if (r == 0 && ret_report)
                r = image_report_chain(client, &chain, &data, ret_report);
        if (r == 0 && ret_report)
                (*ret_report)->seconds = image_now() - start;
        image_chain_close(&chain);
        return r;
}

/* Checking. */

int vgpu_image_check(struct vgpu_client *client, const char *directory,
                     struct vgpu_image_report **ret_report)
{
        const struct image_data_options options = { .threads = 0 };
        const struct image_link *image;
        struct image_data_report data = { 0 };
        struct image_chain chain;
        struct image_error error = { 0 };
        double start = image_now();
        int r;

        error_clear(&client->error);
        if (image_chain_open(&chain, directory, &error) < 0)
                return image_set_error(client, &error);
        image = chain.links[0];
        r = image->manifest.has_memory ? image_chain_read(&chain, NULL, 0, &options, &data, &error)
                                       : 0;
        if (r == 0 && image->manifest.has_criu)
                r = image_directory_check_criu(&image->directory, &image->manifest, &error);
        if (r < 0)
                r = image_set_error(client, &error);
        else if (ret_report)
                r = image_report_chain(client, &chain, &data, ret_report);
        if (r == 0 && ret_report)
                (*ret_report)->seconds = image_now() - start;
        image_chain_close(&chain);
        return r;
}
