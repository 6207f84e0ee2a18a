/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing a manifest, which anybody may have written. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image/manifest-json.h"
#include "image/manifest.h"
#include "image/span.h"

#define HINT_ALTERED "the image cannot be used; load an older one"

/* Larger than any device's memory or address; far from where sums wrap. */
#define NUMBER_MAX ((uint64_t)1 << 57)

struct parser {
        const char *where; /* the file */
        struct image_error *error;
};

__attribute__((format(printf, 2, 3))) static int refuse(const struct parser *parser,
                                                        const char *format, ...)
{
        char what[256];
        va_list args;

        va_start(args, format);
        vsnprintf(what, sizeof(what), format, args);
        va_end(args);
        return image_fail(parser->error, -EBADMSG, HINT_ALTERED, "%s: %s", parser->where, what);
}

/* Members. Each takes the name of what it looks at, for the message. */

static int take_number(const struct parser *parser, const json_t *value, const char *name,
                       uint64_t max, uint64_t *ret_number)
{
        json_int_t number = json_integer_value(value);

        if (!json_is_integer(value))
                return refuse(parser, "%s is missing, or no number", name);
        if (number < 0 || (uint64_t)number > max)
                return refuse(parser, "%s is %" JSON_INTEGER_FORMAT ", out of its range", name,
                              number);
        *ret_number = (uint64_t)number;
        return 0;
}

static int take_long_text(const struct parser *parser, const json_t *value, const char *name,
                          char *ret_text, size_t room)
{
        const char *text = json_string_value(value);

        if (!text)
                return refuse(parser, "%s is missing, or no text", name);
        if (strlen(text) >= room)
                return refuse(parser, "%s is too long", name);
        if (manifest_has_control(text))
                return refuse(parser, "%s has control characters in it", name);
        memcpy(ret_text, text, strlen(text) + 1);
        return 0;
}

static int take_text(const struct parser *parser, const json_t *value, const char *name,
                     char *ret_text)
{
        return take_long_text(parser, value, name, ret_text, IMAGE_TEXT_MAX);
}

static int take_checksum(const struct parser *parser, const json_t *value, const char *name,
                         uint32_t *ret_checksum)
{
        uint64_t checksum = 0;
        int r = take_number(parser, value, name, UINT32_MAX, &checksum);

        *ret_checksum = (uint32_t)checksum;
        return r;
}

static int take_list(const struct parser *parser, const json_t *value, const char *name, size_t max,
                     size_t item_size, void *ret_list, size_t *ret_n)
{
        size_t n = json_array_size(value);
        void *list;

        if (!json_is_array(value))
                return refuse(parser, "%s is missing, or no list", name);
        if (n > max)
                return refuse(parser, "%s has %zu members, more than %zu", name, n, max);
        list = calloc(n + 1, item_size);
        if (!list)
                return image_fail(parser->error, -ENOMEM, "", "%s: not enough memory",
                                  parser->where);
        memcpy(ret_list, &list, sizeof(list));
        *ret_n = n;
        return 0;
}

/* A list of @n numbers, each at most as large as @max says. */
static int take_tuple(const struct parser *parser, const json_t *value, const char *name, size_t n,
                      const uint64_t *max, uint64_t *ret_numbers)
{
        int r = 0;

        if (json_array_size(value) != n)
                return refuse(parser, "%s is no list of %zu numbers", name, n);
        for (size_t i = 0; r == 0 && i < n; i++)
                r = take_number(parser, json_array_get(value, i), name, max[i], &ret_numbers[i]);
        return r;
}

/* Processes. */

/* The third number is there if it is on another device than the first. */
static int parse_allocation(const struct parser *parser, const json_t *value, size_t n_devices,
                            struct image_process *process, size_t index)
{
        const uint64_t max[] = { NUMBER_MAX, NUMBER_MAX, n_devices - 1 };
        struct image_allocation *allocation = &process->allocations[index];
        uint64_t numbers[3] = { 0 };
        size_t n = n_devices > 1 && json_array_size(value) == 3 ? 3 : 2;
        int r = take_tuple(parser, value, "an allocation", n, max, numbers);

        if (r < 0)
                return r;
        if (numbers[1] == 0 || numbers[1] % SPAN_ALIGN || numbers[0] % SPAN_ALIGN)
                return refuse(parser, "an allocation of process %d is no whole number of pages",
                              process->pid);
        *allocation = (struct image_allocation){ numbers[0], numbers[1], numbers[2] };
        process->size += numbers[1];
        if (process->size > NUMBER_MAX)
                return refuse(parser, "process %d has too much memory", process->pid);
        return 0;
}

static int parse_process(const struct parser *parser, const json_t *value, size_t n_devices,
                         struct image_process *process)
{
        const json_t *allocations = json_object_get(value, "allocations");
        uint64_t pid = 0;
        int r = take_number(parser, json_object_get(value, "pid"), "the pid of a process",
                            INT32_MAX, &pid);

        if (r == 0 && pid == 0)
                r = refuse(parser, "the pid of a process is 0");
        if (r < 0)
                return r;
        process->pid = (int)pid;
        r = take_text(parser, json_object_get(value, "name"), "the name of a process",
                      process->name);
        if (r == 0)
                r = take_list(parser, allocations, "allocations", SIZE_MAX / 64,
                              sizeof(*process->allocations), &process->allocations,
                              &process->n_allocations);
        for (size_t i = 0; r == 0 && i < process->n_allocations; i++)
                r = parse_allocation(parser, json_array_get(allocations, i), n_devices, process, i);
        return r;
}

static int parse_processes(const struct parser *parser, const json_t *image,
                           struct image_manifest *manifest)
{
        const json_t *list = json_object_get(image, "processes");
        int r = take_list(parser, list, "processes", IMAGE_PROCESSES_MAX,
                          sizeof(*manifest->processes), &manifest->processes,
                          &manifest->n_processes);

        for (size_t i = 0; r == 0 && i < manifest->n_processes; i++) {
                r = parse_process(parser, json_array_get(list, i), manifest->n_devices,
                                  &manifest->processes[i]);
                for (size_t k = 0; r == 0 && k < i; k++)
                        if (manifest->processes[k].pid == manifest->processes[i].pid)
                                r = refuse(parser, "process %d is in it twice",
                                           manifest->processes[i].pid);
        }
        return r;
}

/* Memory. */

/* Where the parent has it. What the parent has there is seen when that is opened. */
static int parse_inherited(const struct parser *parser, const json_t *value, const char *name,
                           struct image_table *table, size_t index)
{
        static const uint64_t max[] = { IMAGE_CHUNK_OWN - 1, UINT32_MAX };
        uint64_t numbers[2];
        int r = take_tuple(parser, value, name, 2, max, numbers);

        if (r < 0)
                return r;
        table->inherited[index] = (uint32_t)numbers[0];
        table->chunks[index] = (struct image_chunk){ .checksum = (uint32_t)numbers[1] };
        return 0;
}

static int parse_chunk(const struct parser *parser, const json_t *value, struct image_table *table,
                       size_t index)
{
        size_t length = image_table_length(table, index);
        const uint64_t max[] = { table->file_size, length, UINT32_MAX };
        uint64_t numbers[3];
        char name[48];
        int r;

        snprintf(name, sizeof(name), "chunk %zu", index);
        if (table->inherited && json_array_size(value) == 2)
                return parse_inherited(parser, value, name, table, index);
        r = take_tuple(parser, value, name, 3, max, numbers);
        if (r < 0)
                return r;
        if (numbers[0] % SPAN_ALIGN || numbers[1] > table->file_size - numbers[0])
                return refuse(parser, "%s is not inside of the data file", name);
        if (numbers[1] > 0 && numbers[1] < length && table->compression == IMAGE_COMPRESSION_NONE)
                return refuse(parser, "%s is packed, but the image is plain", name);
        table->chunks[index] =
                (struct image_chunk){ numbers[0], (uint32_t)numbers[1], (uint32_t)numbers[2] };
        return 0;
}

static int parse_layout(const struct parser *parser, const json_t *memory,
                        struct image_table *table)
{
        char compression[IMAGE_TEXT_MAX], file[IMAGE_TEXT_MAX];
        uint64_t chunk_size = 0;
        int r = take_text(parser, json_object_get(memory, "file"), "memory.file", file);

        if (r == 0 && strcmp(file, IMAGE_DATA_FILE) != 0)
                r = refuse(parser, "the data file is '%.40s', not " IMAGE_DATA_FILE, file);
        if (r == 0)
                r = take_number(parser, json_object_get(memory, "size"), "memory.size", NUMBER_MAX,
                                &table->size);
        if (r == 0)
                r = take_number(parser, json_object_get(memory, "file_size"), "memory.file_size",
                                NUMBER_MAX, &table->file_size);
        if (r == 0)
                r = take_number(parser, json_object_get(memory, "chunk_size"), "memory.chunk_size",
                                IMAGE_CHUNK_SIZE_MAX, &chunk_size);
        if (r == 0)
                r = take_text(parser, json_object_get(memory, "compression"), "memory.compression",
                              compression);
        if (r < 0)
                return r;
        if (chunk_size < IMAGE_CHUNK_SIZE_MIN || (chunk_size & (chunk_size - 1)))
                return refuse(parser, "memory.chunk_size is %" PRIu64 ", no power of two",
                              chunk_size);
        if (compress_find(&table->compression, compression) < 0)
                return image_fail(parser->error, -EOPNOTSUPP, "use a newer vgpu",
                                  "%s: compression '%.40s' is not known", parser->where,
                                  compression);
        table->chunk_size = (uint32_t)chunk_size;
        return 0;
}

static int parse_hashes(const struct parser *parser, const json_t *value,
                        struct image_manifest *manifest)
{
        if (!value)
                return 0;
        manifest->has_hashes = true;
        if (manifest->memory.chunk_size != IMAGE_CHUNK_SIZE)
                return refuse(parser, "there are hashes of chunks of %u bytes",
                              manifest->memory.chunk_size);
        return take_checksum(parser, value, "memory.hashes", &manifest->hashes_checksum);
}

static int parse_memory(const struct parser *parser, const json_t *memory,
                        struct image_manifest *manifest)
{
        struct image_table *table = &manifest->memory;
        const json_t *chunks = json_object_get(memory, "chunks");
        uint64_t sum = 0;
        int r = parse_layout(parser, memory, table);

        for (size_t i = 0; i < manifest->n_processes && sum <= NUMBER_MAX; i++)
                sum += manifest->processes[i].size;
        if (r == 0 && sum != table->size)
                r = refuse(parser,
                           "the processes have %" PRIu64 " bytes, memory.size says %" PRIu64, sum,
                           table->size);
        if (r == 0)
                r = take_list(parser, chunks, "chunks", SIZE_MAX / 64, sizeof(*table->chunks),
                              &table->chunks, &table->n_chunks);
        if (r == 0 && table->n_chunks != image_table_count(table->size, table->chunk_size))
                r = refuse(parser, "there are %zu chunks for %" PRIu64 " bytes", table->n_chunks,
                           table->size);
        if (r == 0 && manifest->has_parent && image_table_inherit(table) < 0)
                r = image_fail(parser->error, -ENOMEM, "", "%s: not enough memory", parser->where);
        for (size_t i = 0; r == 0 && i < table->n_chunks; i++)
                r = parse_chunk(parser, json_array_get(chunks, i), table, i);
        return r == 0 ? parse_hashes(parser, json_object_get(memory, "hashes"), manifest) : r;
}

/* CRIU's files. */

static int parse_file(const struct parser *parser, const json_t *value, struct image_file *file)
{
        int r;

        if (json_array_size(value) != 3)
                return refuse(parser, "a file of criu is no list of name, size and checksum");
        r = take_text(parser, json_array_get(value, 0), "the name of a file", file->name);
        if (r == 0 && (strchr(file->name, '/') || file->name[0] == '.' || !file->name[0]))
                r = refuse(parser, "'%.40s' is no name of a file", file->name);
        if (r == 0)
                r = take_number(parser, json_array_get(value, 1), "the size of a file", NUMBER_MAX,
                                &file->size);
        return r == 0 ? take_checksum(parser, json_array_get(value, 2), "the checksum of a file",
                                      &file->checksum)
                      : r;
}

static int parse_criu(const struct parser *parser, const json_t *criu,
                      struct image_manifest *manifest)
{
        const json_t *files = json_object_get(criu, "files");
        uint64_t pid = 0;
        int r = take_text(parser, json_object_get(criu, "version"), "criu.version",
                          manifest->criu.version);

        if (r == 0)
                r = take_number(parser, json_object_get(criu, "pid"), "criu.pid", INT32_MAX, &pid);
        if (r == 0 && pid == 0)
                r = refuse(parser, "criu.pid is 0");
        if (r == 0 && !json_is_boolean(json_object_get(criu, "shell_job")))
                r = refuse(parser, "criu.shell_job is missing, or neither true nor false");
        if (r == 0)
                r = take_list(parser, files, "criu.files", IMAGE_FILES_MAX,
                              sizeof(*manifest->criu.files), &manifest->criu.files,
                              &manifest->criu.n_files);
        for (size_t i = 0; r == 0 && i < manifest->criu.n_files; i++)
                r = parse_file(parser, json_array_get(files, i), &manifest->criu.files[i]);
        manifest->criu.pid = (int)pid;
        manifest->criu.is_shell_job = json_is_true(json_object_get(criu, "shell_job"));
        return r;
}

/* The whole. */

static int parse_parent(const struct parser *parser, const json_t *parent,
                        struct image_manifest *manifest)
{
        int r = take_long_text(parser, json_object_get(parent, "directory"), "parent.directory",
                               manifest->parent.directory, sizeof(manifest->parent.directory));

        if (r == 0)
                r = take_text(parser, json_object_get(parent, "id"), "parent.id",
                              manifest->parent.id);
        if (r == 0 && (!*manifest->parent.directory || !*manifest->parent.id))
                r = refuse(parser, "the parent has no name, or no id");
        return r == 0 ? take_checksum(parser, json_object_get(parent, "checksum"),
                                      "parent.checksum", &manifest->parent.checksum)
                      : r;
}

static int parse_vgpu(const struct parser *parser, const json_t *vgpu,
                      struct image_manifest *manifest)
{
        int r = take_text(parser, json_object_get(vgpu, "name"), "vgpu.name", manifest->vgpu.name);

        if (r == 0)
                r = take_text(parser, json_object_get(vgpu, "uuid"), "vgpu.uuid",
                              manifest->vgpu.uuid);
        if (r == 0)
                r = take_number(parser, json_object_get(vgpu, "frame_buffer"), "vgpu.frame_buffer",
                                NUMBER_MAX, &manifest->vgpu.frame_buffer);
        return r;
}

static int parse_device(const struct parser *parser, const json_t *value,
                        struct image_device *device)
{
        int r = take_text(parser, json_object_get(value, "name"), "device.name", device->name);

        if (r == 0)
                r = take_text(parser, json_object_get(value, "uuid"), "device.uuid", device->uuid);
        return r == 0 ? take_number(parser, json_object_get(value, "memory"), "device.memory",
                                    NUMBER_MAX, &device->memory)
                      : r;
}

static int parse_devices(const struct parser *parser, const json_t *image,
                         struct image_manifest *manifest)
{
        const json_t *list = json_object_get(image, "devices");
        size_t n = json_array_size(list);
        int r = 0;

        manifest->n_devices = list ? n : 1;
        if (!list)
                return parse_device(parser, json_object_get(image, "device"), &manifest->device[0]);
        if (n < 2 || n > IMAGE_DEVICES_MAX)
                return refuse(parser, "devices is no list of 2 to %d", IMAGE_DEVICES_MAX);
        for (size_t i = 0; r == 0 && i < n; i++)
                r = parse_device(parser, json_array_get(list, i), &manifest->device[i]);
        for (size_t i = 1; r == 0 && i < n; i++)
                for (size_t k = 0; r == 0 && k < i; k++)
                        if (strcmp(manifest->device[i].uuid, manifest->device[k].uuid) == 0)
                                r = refuse(parser, "device %s is in it twice",
                                           manifest->device[i].uuid);
        return r;
}

static int parse_origin(const struct parser *parser, const json_t *image,
                        struct image_manifest *manifest)
{
        const json_t *id = json_object_get(image, "id");
        uint64_t version = 0;
        int r = take_text(parser, json_object_get(image, "created"), "created", manifest->created);

        if (r == 0 && id)
                r = take_text(parser, id, "id", manifest->id);
        if (r == 0)
                r = take_text(parser, json_object_get(image, "host"), "host", manifest->host);
        if (r == 0)
                r = take_text(parser, json_object_get(image, "software"), "software",
                              manifest->software);
        if (r == 0)
                r = parse_devices(parser, image, manifest);
        if (r == 0)
                r = take_number(parser, json_object_get(image, "driver_version"), "driver_version",
                                INT32_MAX, &version);
        manifest->driver_version = (uint32_t)version;
        return r == 0 ? take_text(parser, json_object_get(image, "driver"), "driver",
                                  manifest->driver)
                      : r;
}

static int parse_image(const struct parser *parser, const json_t *image,
                       struct image_manifest *manifest)
{
        static const struct {
                const char *name;
                size_t offset; /* of the bool that says that it is there */
                int (*parse)(const struct parser *parser, const json_t *value,
                             struct image_manifest *manifest);
        } parts[] = {
                { "vgpu", offsetof(struct image_manifest, has_vgpu), parse_vgpu },
                { "parent", offsetof(struct image_manifest, has_parent), parse_parent },
                { "memory", offsetof(struct image_manifest, has_memory), parse_memory },
                { "criu", offsetof(struct image_manifest, has_criu), parse_criu },
        };
        int r = parse_origin(parser, image, manifest);

        if (r == 0)
                r = parse_processes(parser, image, manifest);
        for (size_t i = 0; r == 0 && i < sizeof(parts) / sizeof(parts[0]); i++) {
                const json_t *value = json_object_get(image, parts[i].name);

                if (!value)
                        continue;
                *((bool *)((char *)manifest + parts[i].offset)) = true;
                r = parts[i].parse(parser, value, manifest);
        }
        if (r == 0 && !manifest->has_memory && !manifest->has_criu)
                r = refuse(parser, "neither memory nor processes are in it");
        if (r == 0 && manifest->has_parent && !manifest->has_memory)
                r = refuse(parser, "there is a parent, but no memory");
        return r;
}

/* Is it a manifest at all, of a version that we know, and as it was written? */
static int check_envelope(const struct parser *parser, const json_t *whole,
                          const json_t **ret_image, uint32_t *ret_checksum)
{
        const char *format = json_string_value(json_object_get(whole, "format"));
        const char *checksum = json_string_value(json_object_get(whole, "checksum"));
        json_int_t version = json_integer_value(json_object_get(whole, "version"));
        const json_t *image = json_object_get(whole, "image");
        char actual[MANIFEST_CHECKSUM_MAX];

        if (!format || strcmp(format, IMAGE_FORMAT) != 0)
                return image_fail(parser->error, -EBADMSG, "name the directory of an image",
                                  "%s: this is no image of vgpu checkpoint", parser->where);
        if (version > IMAGE_VERSION)
                return image_fail(parser->error, -EOPNOTSUPP, "load it with a newer vgpu",
                                  "%s: the image has version %" JSON_INTEGER_FORMAT
                                  ", this vgpu knows up to %d",
                                  parser->where, version, IMAGE_VERSION);
        if (version < 1 || !checksum || !json_is_object(image))
                return refuse(parser, "version, checksum or image is missing");
        if (!manifest_checksum(actual, image))
                return image_fail(parser->error, -ENOMEM, "", "%s: not enough memory",
                                  parser->where);
        if (strcmp(actual, checksum) != 0)
                return refuse(parser, "altered: its checksum is %s, it says %.16s", actual,
                              checksum);
        *ret_image = image;
        *ret_checksum = (uint32_t)strtoul(actual, NULL, 16);
        return 0;
}

int image_manifest_parse(struct image_manifest *ret_manifest, const char *where, const char *text,
                         size_t size, struct image_error *error)
{
        const struct parser parser = { .where = where, .error = error };
        CLEANUP(json_decrefp) json_t *whole = NULL;
        const json_t *image = NULL;
        json_error_t reason;
        int r;

        *ret_manifest = (struct image_manifest){ 0 };
        whole = json_loadb(text, size, JSON_REJECT_DUPLICATES, &reason);
        if (!whole)
                return refuse(&parser, "cut off or altered: line %d, %.80s", reason.line,
                              reason.text);
        r = check_envelope(&parser, whole, &image, &ret_manifest->checksum);
        if (r == 0)
                r = parse_image(&parser, image, ret_manifest);
        if (r == 0 && manifest_get_version(ret_manifest) !=
                              json_integer_value(json_object_get(whole, "version")))
                r = refuse(&parser, "altered: its version is not that of what is in it");
        if (r < 0)
                image_manifest_deinit(ret_manifest);
        return r;
}
