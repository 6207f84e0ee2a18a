/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/memory.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

/* What the manager tidies up after a suspend is over at once. */
#define BUSY_TRIES 100

static int call_for(struct vgpu_client *client, const char *method, const char *name,
                    const char *key, json_t *value, json_t **ret_answer)
{
        const struct call call = { .method = method, .kind = CALL_OPERATES };
        CLEANUP(json_decrefp) json_t *parameters = NULL;
        int r = client_begin(client, &parameters);

        if (r == 0)
                r = client_add_text(client, parameters, "name", name);
        if (r == 0 && key)
                r = client_add(client, parameters, key, json_incref(value));
        return r < 0 ? r : client_call(client, &call, parameters, ret_answer);
}

static int call_patiently(struct vgpu_client *client, const char *method, const char *name,
                          const char *key, json_t *value, json_t **ret_answer)
{
        const struct timespec pause = { .tv_nsec = 50000000 };
        int r = 0;

        for (int i = 0; i < BUSY_TRIES; i++) {
                r = call_for(client, method, name, key, value, ret_answer);
                if (r == 0 || client->error.value.kind != VGPU_ERROR_BUSY)
                        break;
                nanosleep(&pause, NULL);
        }
        return r;
}

/* Mapping. */

static int set_bad(struct memory *memory, const char *what)
{
        return client_set_bad_answer(memory->client, "OpenMemory", what);
}

static int map_slab(struct memory *memory, int fd, bool is_writable)
{
        int protection = PROT_READ | (is_writable ? PROT_WRITE : 0);
        struct stat status;
        void *address;

        if (fstat(fd, &status) < 0 || status.st_size <= 0)
                return set_bad(memory, "slab");
        address = mmap(NULL, (size_t)status.st_size, protection, MAP_SHARED, fd, 0);
        if (address == MAP_FAILED)
                return error_set(&memory->client->error, VGPU_ERROR_FAILED, "",
                                 "cannot map a slab of the pool: %s", strerrordesc_np(errno));
        memory->slabs[memory->n_slabs++] = (struct iovec){ address, (size_t)status.st_size };
        return 0;
}

/* The descriptors come in portions. */
static int map_portion(struct memory *memory, bool is_writable, size_t n_left)
{
        CLEANUP(json_decrefp) json_t *first = json_integer((json_int_t)memory->n_slabs);
        CLEANUP(json_decrefp) json_t *answer = NULL;
        int fds[CONNECTION_FDS_MAX];
        size_t n;
        int r;

        r = call_for(memory->client, "GetSlabs", memory->name, memory->n_slabs ? "first" : NULL,
                     first, &answer);
        n = connection_take_fds(&memory->client->connection, fds);
        if (r == 0 && (n == 0 || n > n_left))
                r = set_bad(memory, "slabs");
        for (size_t i = 0; i < n; i++) {
                if (r == 0)
                        r = map_slab(memory, fds[i], is_writable);
                fd_close(fds[i]);
        }
        return r;
}

static int map_slabs(struct memory *memory, bool is_writable)
{
        size_t n = (size_t)json_integer_value(json_object_get(memory->answer, "slabs"));
        int r = 0;

        if (n > UINT32_MAX)
                return set_bad(memory, "slabs");
        memory->slabs = calloc(n + 1, sizeof(*memory->slabs));
        if (!memory->slabs)
                return error_set_no_memory(&memory->client->error);
        while (r == 0 && memory->n_slabs < n)
                r = map_portion(memory, is_writable, n - memory->n_slabs);
        return r;
}

static int add_piece(struct memory *memory, const json_t *extent)
{
        json_int_t slab = json_integer_value(json_array_get(extent, 0));
        json_int_t offset = json_integer_value(json_array_get(extent, 1));
        json_int_t length = json_integer_value(json_array_get(extent, 2));
        const struct iovec *in;

        if (json_array_size(extent) != 3 || slab < 0 || (size_t)slab >= memory->n_slabs)
                return set_bad(memory, "extents");
        in = &memory->slabs[slab];
        if (offset < 0 || length <= 0 || (size_t)offset > in->iov_len ||
            (size_t)length > in->iov_len - (size_t)offset)
                return set_bad(memory, "extents");
        memory->pieces[memory->n_pieces++] =
                (struct iovec){ (char *)in->iov_base + offset, (size_t)length };
        return 0;
}

static int make_pieces(struct memory *memory)
{
        const json_t *processes = json_object_get(memory->answer, "processes"), *process, *extent;
        size_t i, k, n = 0;
        int r = 0;

        json_array_foreach(processes, i, process) n +=
                json_array_size(json_object_get(process, "extents"));
        memory->pieces = calloc(n + 1, sizeof(*memory->pieces));
        if (!memory->pieces)
                return error_set_no_memory(&memory->client->error);
        json_array_foreach(processes, i, process)
                json_array_foreach(json_object_get(process, "extents"), k, extent) if (r == 0) r =
                        add_piece(memory, extent);
        return r;
}

/* Beginning and ending. */

static int begin(struct memory *memory, struct vgpu_client *client, const char *name,
                 const char *method, const char *key, json_t *value, bool is_writable)
{
        int r;

        *memory = (struct memory){ .client = client, .name = strdup(name) };
        if (!memory->name)
                return error_set_no_memory(&client->error);
        r = call_patiently(client, method, name, key, value, &memory->answer);
        memory->is_open = r == 0;
        if (r == 0)
                r = map_slabs(memory, is_writable);
        if (r == 0)
                r = make_pieces(memory);
        if (r < 0)
                memory_close(memory);
        return r;
}

int memory_open(struct memory *ret_memory, struct vgpu_client *client, const char *name,
                bool detach)
{
        return begin(ret_memory, client, name, "OpenMemory", detach ? "detach" : NULL, json_true(),
                     false);
}

/* The third number only where it is not on the first device. */
static json_t *list_allocation(const struct image_allocation *allocation)
{
        json_t *list =
                json_pack("[II]", (json_int_t)allocation->address, (json_int_t)allocation->size);

        if (allocation->device > 0)
                json_array_append_new(list, json_integer((json_int_t)allocation->device));
        return list;
}

static json_t *list_processes(const struct image_manifest *image)
{
        json_t *list = json_array();

        for (size_t i = 0; i < image->n_processes; i++) {
                const struct image_process *process = &image->processes[i];
                json_t *allocations = json_array();

                for (size_t k = 0; k < process->n_allocations; k++)
                        json_array_append_new(allocations,
                                              list_allocation(&process->allocations[k]));
                json_array_append_new(list, json_pack("{si, so}", "pid", process->pid,
                                                      "allocations", allocations));
        }
        return list;
}

int memory_replace(struct memory *ret_memory, struct vgpu_client *client, const char *name,
                   const struct image_manifest *image)
{
        CLEANUP(json_decrefp) json_t *processes = image ? list_processes(image) : NULL;

        return begin(ret_memory, client, name, "ReplaceMemory", image ? "processes" : NULL,
                     processes, true);
}

int memory_commit(struct memory *memory)
{
        CLEANUP(json_decrefp) json_t *answer = NULL;
        int r = call_for(memory->client, "CommitMemory", memory->name, NULL, NULL, &answer);

        if (r == 0)
                memory->is_open = false;
        return r;
}

void memory_close(struct memory *memory)
{
        for (size_t i = 0; i < memory->n_slabs; i++)
                munmap(memory->slabs[i].iov_base, memory->slabs[i].iov_len);
        if (memory->is_open) {
                CLEANUP(json_decrefp) json_t *answer = NULL;
                struct error saved = memory->client->error;

                (void)call_for(memory->client, "CloseMemory", memory->name, NULL, NULL, &answer);
                memory->client->error = saved;
        }
        json_decref(memory->answer);
        free(memory->slabs);
        free(memory->pieces);
        free(memory->name);
        *memory = (struct memory){ 0 };
}

/* For a manifest. */

static int describe_process(const struct memory *memory, const json_t *json,
                            struct image_process *process)
{
        const json_t *list = json_object_get(json, "allocations"), *pair;
        const char *name = json_string_value(json_object_get(json, "name"));
        size_t i;

        process->pid = (int)json_integer_value(json_object_get(json, "pid"));
        strncpy(process->name, name ? name : "", sizeof(process->name) - 1);
        process->allocations = calloc(json_array_size(list) + 1, sizeof(*process->allocations));
        if (!process->allocations)
                return error_set_no_memory(&memory->client->error);
        json_array_foreach(list, i, pair)
        {
                struct image_allocation *allocation = &process->allocations[i];

                allocation->address = (uint64_t)json_integer_value(json_array_get(pair, 0));
                allocation->size = (uint64_t)json_integer_value(json_array_get(pair, 1));
                allocation->device = (uint64_t)json_integer_value(json_array_get(pair, 2));
                process->size += allocation->size;
        }
        process->n_allocations = json_array_size(list);
        return 0;
}

/* An older vgpud tells of no parts. */
size_t memory_count_devices(const struct memory *memory)
{
        size_t n =
                json_array_size(json_object_get(json_object_get(memory->answer, "vgpu"), "parts"));

        return n > 0 ? n : 1;
}

int memory_describe(const struct memory *memory, struct image_manifest *manifest)
{
        const json_t *list = json_object_get(memory->answer, "processes"), *process;
        size_t i;
        int r = 0;

        manifest->processes = calloc(json_array_size(list) + 1, sizeof(*manifest->processes));
        if (!manifest->processes)
                return error_set_no_memory(&memory->client->error);
        json_array_foreach(list, i, process)
        {
                manifest->n_processes++;
                r = describe_process(memory, process, &manifest->processes[i]);
                if (r < 0)
                        return r;
        }
        return 0;
}
