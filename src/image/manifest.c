/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing a manifest. Its checksum is that of the member "image" in its shortest form with sorted
 * names: whoever changes the layout of the file changes nothing, whoever changes a number does.
 */
#include "image/manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "image/checksum.h"
#include "image/manifest-json.h"

void image_manifest_deinit(struct image_manifest *manifest)
{
        for (size_t i = 0; i < manifest->n_processes; i++)
                free(manifest->processes[i].allocations);
        free(manifest->processes);
        free(manifest->criu.files);
        image_table_deinit(&manifest->memory);
        *manifest = (struct image_manifest){ 0 };
}

int image_manifest_make_id(struct image_manifest *manifest)
{
        uint64_t bits[2];

        if (getrandom(bits, sizeof(bits), 0) != (ssize_t)sizeof(bits))
                return -errno;
        snprintf(manifest->id, sizeof(manifest->id), "%016" PRIx64 "%016" PRIx64, bits[0], bits[1]);
        return 0;
}

bool image_manifest_can_name(const char *path)
{
        CLEANUP(json_decrefp) json_t *text = json_string(path); /* NULL: no UTF-8 */

        return text && !manifest_has_control(path);
}

bool manifest_has_control(const char *text)
{
        for (; *text; text++)
                if ((unsigned char)*text < ' ' || *text == 0x7f)
                        return true;
        return false;
}

char *manifest_checksum(char text[MANIFEST_CHECKSUM_MAX], const json_t *image)
{
        CLEANUP(freep) char *canonical = json_dumps(image, JSON_COMPACT | JSON_SORT_KEYS);

        if (!canonical)
                return NULL;
        snprintf(text, MANIFEST_CHECKSUM_MAX, "%08x",
                 checksum_add(0, canonical, strlen(canonical)));
        return text;
}

static json_t *number(uint64_t value)
{
        return json_integer((json_int_t)value);
}

static json_t *format_allocation(const struct image_allocation *allocation)
{
        json_t *list = json_pack("[oo]", number(allocation->address), number(allocation->size));

        if (allocation->device > 0)
                json_array_append_new(list, number(allocation->device));
        return list;
}

static json_t *format_process(const struct image_process *process)
{
        json_t *allocations = json_array();

        for (size_t i = 0; i < process->n_allocations; i++)
                json_array_append_new(allocations, format_allocation(&process->allocations[i]));
        return json_pack("{si, ss, so}", "pid", process->pid, "name", process->name, "allocations",
                         allocations);
}

static json_t *format_device(const struct image_device *device)
{
        return json_pack("{ss, ss, so}", "name", device->name, "uuid", device->uuid, "memory",
                         number(device->memory));
}

static json_t *format_devices(const struct image_manifest *manifest)
{
        json_t *devices = json_array();

        for (size_t i = 0; i < manifest->n_devices; i++)
                json_array_append_new(devices, format_device(&manifest->device[i]));
        return devices;
}

static json_t *format_memory(const struct image_table *table)
{
        json_t *chunks = json_array();

        for (size_t i = 0; i < table->n_chunks; i++) {
                const struct image_chunk *chunk = &table->chunks[i];

                json_array_append_new(chunks,
                                      image_table_is_inherited(table, i)
                                              ? json_pack("[oo]", number(table->inherited[i]),
                                                          number(chunk->checksum))
                                              : json_pack("[ooo]", number(chunk->offset),
                                                          number(chunk->stored),
                                                          number(chunk->checksum)));
        }
        return json_pack("{ss, so, so, so, ss, so}", "file", IMAGE_DATA_FILE, "size",
                         number(table->size), "file_size", number(table->file_size), "chunk_size",
                         number(table->chunk_size), "compression",
                         compress_name(table->compression), "chunks", chunks);
}

static json_t *format_criu(const struct image_manifest *manifest)
{
        json_t *files = json_array();

        for (size_t i = 0; i < manifest->criu.n_files; i++) {
                const struct image_file *file = &manifest->criu.files[i];

                json_array_append_new(files, json_pack("[soo]", file->name, number(file->size),
                                                       number(file->checksum)));
        }
        return json_pack("{ss, si, sb, so}", "version", manifest->criu.version, "pid",
                         manifest->criu.pid, "shell_job", manifest->criu.is_shell_job, "files",
                         files);
}

static json_t *format_image(const struct image_manifest *manifest)
{
        json_t *processes = json_array();
        json_t *image = json_pack("{ss, ss, ss, so, si, ss, so}", "created", manifest->created,
                                  "host", manifest->host, "software", manifest->software, "device",
                                  format_device(&manifest->device[0]), "driver_version",
                                  (int)manifest->driver_version, "driver", manifest->driver,
                                  "processes", processes);

        for (size_t i = 0; i < manifest->n_processes; i++)
                json_array_append_new(processes, format_process(&manifest->processes[i]));
        if (manifest->n_devices > 1)
                json_object_set_new(image, "devices", format_devices(manifest));
        if (manifest->has_vgpu)
                json_object_set_new(image, "vgpu",
                                    json_pack("{ss, ss, so}", "name", manifest->vgpu.name, "uuid",
                                              manifest->vgpu.uuid, "frame_buffer",
                                              number(manifest->vgpu.frame_buffer)));
        if (*manifest->id)
                json_object_set_new(image, "id", json_string(manifest->id));
        if (manifest->has_parent)
                json_object_set_new(image, "parent",
                                    json_pack("{ss, ss, so}", "directory",
                                              manifest->parent.directory, "id", manifest->parent.id,
                                              "checksum", number(manifest->parent.checksum)));
        if (manifest->has_memory)
                json_object_set_new(image, "memory", format_memory(&manifest->memory));
        if (manifest->has_memory && manifest->has_hashes)
                json_object_set_new(json_object_get(image, "memory"), "hashes",
                                    number(manifest->hashes_checksum));
        if (manifest->has_criu)
                json_object_set_new(image, "criu", format_criu(manifest));
        return image;
}

int manifest_get_version(const struct image_manifest *manifest)
{
        if (manifest->n_devices > 1)
                return IMAGE_VERSION;
        return manifest->has_parent ? 2 : 1;
}

char *image_manifest_format(const struct image_manifest *manifest)
{
        CLEANUP(json_decrefp) json_t *image = format_image(manifest), *whole = NULL;
        char checksum[MANIFEST_CHECKSUM_MAX];

        if (!image || !manifest_checksum(checksum, image))
                return NULL;
        whole = json_pack("{ss, si, ss, sO}", "format", IMAGE_FORMAT, "version",
                          manifest_get_version(manifest), "checksum", checksum, "image", image);
        return whole ? json_dumps(whole, JSON_COMPACT) : NULL;
}
