/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each record has two copies. The writer makes the sequence odd and writes the first copy, then
 * makes it even and writes the second. So one copy is complete at any time, also if the writer
 * stops or dies in the middle, and the sequence says which. A copy is read word by word with
 * atomics: a plain memcpy() beside a concurrent writer would be a data race in C, and a
 * compiler (or ThreadSanitizer) may act on that. Each load of a word acquires, each
 * store releases, instead of a fence around them: on x86 neither costs anything, and
 * ThreadSanitizer does not know fences.
 */
#include "state/state-page.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/paths.h"

/* Records are copied as words: a struct of any type is read and written through this one. */
typedef uint64_t __attribute__((may_alias)) word;

static void words_load(word *to, const word *from, size_t n)
{
        for (size_t i = 0; i < n; i++)
                to[i] = __atomic_load_n(&from[i], __ATOMIC_ACQUIRE);
}

static void words_store(word *to, const word *from, size_t n)
{
        for (size_t i = 0; i < n; i++)
                __atomic_store_n(&to[i], from[i], __ATOMIC_RELEASE);
}

/*
 * A try fails where the writer has come back to this very record meanwhile. So many fail in a row
 * only where somebody writes the record for ever.
 */
#define READ_TRIES 10000

/* @number: of a ring's record, before the value; NULL: there is none. @n words of the value. */
static inline bool record_read(const struct state_head *head, uint64_t *ret_number, void *ret_value,
                               size_t n)
{
        for (int i = 0; i < READ_TRIES; i++) {
                uint32_t before = atomic_load_explicit(&head->sequence, memory_order_acquire);
                uint32_t copy = before & 1;
                const word *payload = (const word *)(head + 1) + copy * (n + (ret_number != NULL));
                uint32_t used = atomic_load_explicit(&head->in_use, memory_order_acquire);

                if (ret_number)
                        words_load(ret_number, payload++, 1);
                words_load(ret_value, payload, n);
                if (atomic_load_explicit(&head->sequence, memory_order_relaxed) == before)
                        return used & 1u << copy;
        }
        return false;
}

static inline void copy_write(struct state_head *head, uint32_t copy, const uint64_t *number,
                              const void *value, size_t n)
{
        word *payload = (word *)(head + 1) + copy * (n + (number != NULL));
        uint32_t used = atomic_load_explicit(&head->in_use, memory_order_relaxed) & ~(1u << copy);

        if (number)
                words_store(payload++, number, 1);
        if (value)
                words_store(payload, value, n);
        atomic_store_explicit(&head->in_use, used | (uint32_t)(value != NULL) << copy,
                              memory_order_release);
}

static inline void record_write(struct state_head *head, const uint64_t *number, const void *value,
                                size_t n)
{
        uint32_t before = atomic_load_explicit(&head->sequence, memory_order_relaxed);

        atomic_store_explicit(&head->sequence, before + 1, memory_order_relaxed);
        copy_write(head, 0, number, value, n);
        atomic_store_explicit(&head->sequence, before + 2, memory_order_release);
        copy_write(head, 1, number, value, n);
}

/*
 * The file is sparse, and its disk may be full when a record is used first: a plain store would end
 * us by SIGBUS. So its pages are asked for before; a kernel before 5.14 does not know how, and
 * dies.
 */
static bool populate(const void *from, const void *behind)
{
        uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
        uintptr_t begin = (uintptr_t)from & ~(page - 1);

        return madvise((void *)begin, (uintptr_t)behind - begin, MADV_POPULATE_WRITE) == 0 ||
               errno == EINVAL;
}

/* False: there is no room for @from up to @behind, which were never used. */
static bool make_room(struct state_page *state_page, const void *from, const void *behind)
{
        if (populate(from, behind))
                return true;
        atomic_fetch_add_explicit(&state_page->n_dropped, 1, memory_order_relaxed);
        return false;
}

/* Is the byte before @from, which was populated, on the same page as the last of it? */
static bool is_on_former_page(const void *from, const void *behind)
{
        uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

        return ((uintptr_t)from - 1) / page == ((uintptr_t)behind - 1) / page;
}

/* Entry @number of a ring: a system call for each page, not for each entry. */
static bool make_room_in_ring(struct state_page *state_page, uint64_t number, const void *from,
                              const void *behind)
{
        return (number > 0 && is_on_former_page(from, behind)) ||
               make_room(state_page, from, behind);
}

static void grow(_Atomic uint32_t *end, uint32_t slot)
{
        if (slot >= atomic_load_explicit(end, memory_order_relaxed))
                atomic_store_explicit(end, slot + 1, memory_order_release);
}

static void bump(struct state_page *state_page)
{
        atomic_fetch_add_explicit(&state_page->generation, 1, memory_order_release);
}

/* Whatever is on the state page, a text that was read has an end. */
#define END(text) ((text)[sizeof(text) - 1] = '\0')

static inline void end_none(void *value)
{
        (void)value;
}

static inline void end_device(struct state_device *device)
{
        END(device->uuid);
        END(device->name);
}

static inline void end_detail(struct state_device_detail *detail)
{
        END(detail->metadata_text);
        END(detail->serial);
        END(detail->vbios);
        END(detail->part_number);
}

static inline void end_features(struct state_features *features)
{
        for (size_t i = 0; i < sizeof(features->feature) / sizeof(features->feature[0]); i++) {
                END(features->feature[i].product);
                END(features->feature[i].licence);
        }
}

static inline void end_profile(struct state_profile *profile)
{
        END(profile->name);
}

static inline void end_compute_instance(struct state_compute_instance *instance)
{
        END(instance->uuid);
}

static inline void end_memory_limit(struct state_memory_limit *limit)
{
        END(limit->path);
}

static inline void end_instance(struct state_instance *instance)
{
        END(instance->uuid);
        END(instance->name);
}

static inline void end_vm(struct state_vm *vm)
{
        END(vm->id);
        END(vm->name);
        END(vm->driver_version);
        END(vm->mdev_uuid);
        END(vm->pci_bus_id);
}

static inline void end_type_text(struct state_type_text *text)
{
        END(text->name);
        END(text->class);
        END(text->licence);
}

static inline void end_process(struct state_process *process)
{
        END(process->name);
}

static inline void end_manager(struct state_manager *manager)
{
        END(manager->version);
}

static inline void end_operation(struct state_operation *operation)
{
        END(operation->kind);
        END(operation->result);
        END(operation->last_vgpu);
}

static inline void end_device_use(struct state_device_use *use)
{
        END(use->source);
        END(use->turns_mode);
}

static inline void end_vgpu(struct state_vgpu *vgpu)
{
        END(vgpu->swap_class);
        END(vgpu->container);
        END(vgpu->uuid);
        END(vgpu->name);
}

static inline void end_process_use(struct state_process_use *use)
{
        END(use->container);
}

#define END_TEXTS(value)                                             \
        _Generic((value), struct state_device *                      \
                 : end_device, struct state_device_detail *          \
                 : end_detail, struct state_features *               \
                 : end_features, struct state_compute_instance *     \
                 : end_compute_instance, struct state_memory_limit * \
                 : end_memory_limit, struct state_profile *          \
                 : end_profile, struct state_instance *              \
                 : end_instance, struct state_vm *                   \
                 : end_vm, struct state_type_text *                  \
                 : end_type_text, struct state_process *             \
                 : end_process, struct state_manager *               \
                 : end_manager, struct state_operation *             \
                 : end_operation, struct state_device_use *          \
                 : end_device_use, struct state_vgpu *               \
                 : end_vgpu, struct state_process_use *              \
                 : end_process_use, default                          \
                 : end_none)(value)

#define WORDS(type) (sizeof(struct type) / sizeof(word))

#define CHECK_LAYOUT(type, record)                                                  \
        _Static_assert(sizeof(struct type) % sizeof(word) == 0, "copied as words"); \
        _Static_assert(_Alignof(struct type) == sizeof(word), "copied as words");   \
        _Static_assert(offsetof(struct record, head) == 0, "the payload follows the head");

#define DEFINE_TABLE(noun, type, slots)                                                           \
        CHECK_LAYOUT(type, state_##noun##_record)                                                 \
        uint32_t state_end_##noun(const struct state_page *state_page)                            \
        {                                                                                         \
                uint32_t end = atomic_load_explicit(&state_page->end.noun, memory_order_acquire); \
                                                                                                  \
                return end < (slots) ? end : (slots);                                             \
        }                                                                                         \
        bool state_read_##noun(const struct state_page *state_page, uint32_t slot,                \
                               struct type *ret_value)                                            \
        {                                                                                         \
                if (slot >= state_end_##noun(state_page) || /* the file has no pages behind it */ \
                    !record_read(&state_page->noun[slot].head, NULL, ret_value, WORDS(type)))     \
                        return false;                                                             \
                END_TEXTS(ret_value);                                                             \
                return true;                                                                      \
        }                                                                                         \
        void state_write_##noun(struct state_page *state_page, uint32_t slot,                     \
                                const struct type *value)                                         \
        {                                                                                         \
                uint32_t end = atomic_load_explicit(&state_page->end.noun, memory_order_relaxed); \
                                                                                                  \
                if (slot >= end &&                                                                \
                    !make_room(state_page, &state_page->noun[end], &state_page->noun[slot + 1]))  \
                        return;                                                                   \
                record_write(&state_page->noun[slot].head, NULL, value, WORDS(type));             \
                grow(&state_page->end.noun, slot);                                                \
                bump(state_page);                                                                 \
        }

#define DEFINE_RING(noun, type, slots, length)                                                     \
        CHECK_LAYOUT(type, state_##noun##_entry)                                                   \
        uint64_t state_count_##noun(const struct state_page *state_page, uint32_t slot)            \
        {                                                                                          \
                return slot < (slots) ? atomic_load_explicit(&state_page->count.noun[slot],        \
                                                             memory_order_acquire)                 \
                                      : 0;                                                         \
        }                                                                                          \
        uint64_t state_first_##noun(const struct state_page *state_page, uint32_t slot)            \
        {                                                                                          \
                uint64_t count = state_count_##noun(state_page, slot);                             \
                                                                                                   \
                return count > (length) ? count - (length) : 0;                                    \
        }                                                                                          \
        bool state_read_##noun(const struct state_page *state_page, uint32_t slot,                 \
                               uint64_t number, struct type *ret_value)                            \
        {                                                                                          \
                uint64_t found;                                                                    \
                                                                                                   \
                return number < state_count_##noun(state_page, slot) &&                            \
                       record_read(&state_page->noun[slot][number % (length)].head, &found,        \
                                   ret_value, WORDS(type)) &&                                      \
                       found == number;                                                            \
        }                                                                                          \
        uint64_t state_append_##noun(struct state_page *state_page, uint32_t slot,                 \
                                     const struct type *value)                                     \
        {                                                                                          \
                uint64_t number =                                                                  \
                        atomic_load_explicit(&state_page->count.noun[slot], memory_order_relaxed); \
                                                                                                   \
                if (number < (length) &&                                                           \
                    !make_room_in_ring(state_page, number, &state_page->noun[slot][number],        \
                                       &state_page->noun[slot][number + 1]))                       \
                        return STATE_NO_NUMBER;                                                    \
                record_write(&state_page->noun[slot][number % (length)].head, &number, value,      \
                             WORDS(type));                                                         \
                atomic_store_explicit(&state_page->count.noun[slot], number + 1,                   \
                                      memory_order_release);                                       \
                bump(state_page);                                                                  \
                return number;                                                                     \
        }                                                                                          \
        void state_write_##noun(struct state_page *state_page, uint32_t slot, uint64_t number,     \
                                const struct type *value)                                          \
        {                                                                                          \
                if (number < state_first_##noun(state_page, slot) ||                               \
                    number >= state_count_##noun(state_page, slot))                                \
                        return;                                                                    \
                record_write(&state_page->noun[slot][number % (length)].head, &number, value,      \
                             WORDS(type));                                                         \
                bump(state_page);                                                                  \
        }

STATE_TABLES(DEFINE_TABLE)
STATE_RINGS(DEFINE_RING)

/* Ids count up from a multiple of 256: neighbours get neighbouring slots, boards spread. */
static uint32_t hash_type(uint32_t id)
{
        return (id + (id >> 8) * 61) % STATE_TYPES_MAX;
}

/* The slot of the type, or the free one where it belongs. */
static bool probe(const struct state_page *state_page, uint32_t id, uint32_t *ret_slot,
                  bool *ret_is_free)
{
        for (uint32_t i = 0; i < STATE_TYPES_MAX; i++) {
                uint32_t slot = (hash_type(id) + i) % STATE_TYPES_MAX;
                const struct state_type_record *record = &state_page->type[slot];
                bool is_behind =
                        slot >= atomic_load_explicit(&state_page->end.type, memory_order_acquire);

                *ret_slot = slot;
                *ret_is_free = is_behind ||
                               !atomic_load_explicit(&record->head.in_use, memory_order_acquire);
                if (*ret_is_free || __atomic_load_n(&record->value[0].id, __ATOMIC_RELAXED) == id)
                        return true;
        }
        return false;
}

bool state_find_type(const struct state_page *state_page, uint32_t id, uint32_t *ret_slot)
{
        bool is_free;

        return probe(state_page, id, ret_slot, &is_free) && !is_free;
}

int state_add_type(struct state_page *state_page, const struct state_type *type)
{
        uint32_t slot;
        bool is_free;

        if (!probe(state_page, type->id, &slot, &is_free))
                return -ENOSPC;
        state_write_type(state_page, slot, type);
        return slot < atomic_load(&state_page->end.type) ? (int)slot : -ENOSPC;
}

/* Before anybody else can open it. */
static int open_for(int fd, const gid_t *group)
{
        if (group && fchown(fd, (uid_t)-1, *group) < 0)
                return -errno;
        return fchmod(fd, group ? 0640 : 0644) < 0 ? -errno : 0;
}

int state_create(struct state_page **ret_state_page, const char *path, const gid_t *group)
{
        CLEANUP(fd_closep) int fd = -1;
        char temporary[PATHS_MAX];
        struct state_page *state_page;
        int r;

        if (snprintf(temporary, sizeof(temporary), "%s.new", path) >= (int)sizeof(temporary))
                return -ENAMETOOLONG;

        (void)unlink(temporary);
        fd = open(temporary, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return -errno;
        r = open_for(fd, group);
        if (r < 0 || ftruncate(fd, sizeof(*state_page)) < 0)
                return r < 0 ? r : -errno;

        state_page = mmap(NULL, sizeof(*state_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (state_page == MAP_FAILED)
                return -errno;
        if (!populate(state_page, &state_page->host)) {
                munmap(state_page, sizeof(*state_page));
                (void)unlink(temporary);
                return -ENOSPC;
        }

        state_page->version = STATE_VERSION;
        state_page->size = sizeof(*state_page);
        state_page->magic = STATE_MAGIC;

        if (rename(temporary, path) < 0) {
                r = -errno;
                munmap(state_page, sizeof(*state_page));
                return r;
        }
        *ret_state_page = state_page;
        return 0;
}

void state_close(struct state_page *state_page)
{
        if (!state_page)
                return;
        atomic_store(&state_page->closed, 1);
        munmap(state_page, sizeof(*state_page));
}

int state_map(const struct state_page **ret_state_page, const char *path)
{
        CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);

        return fd < 0 ? -errno : state_map_fd(ret_state_page, fd);
}

int state_map_fd(const struct state_page **ret_state_page, int fd)
{
        const struct state_page *state_page;
        struct stat status;

        if (fstat(fd, &status) < 0)
                return -errno;
        if ((uint64_t)status.st_size < sizeof(uint64_t))
                return -EPROTO;

        state_page = mmap(NULL, sizeof(*state_page), PROT_READ, MAP_SHARED, fd, 0);
        if (state_page == MAP_FAILED)
                return -errno;

        if (state_page->magic != STATE_MAGIC || state_page->version != STATE_VERSION ||
            (uint64_t)status.st_size != sizeof(*state_page)) {
                int r = state_page->magic == STATE_MAGIC ? -EPROTONOSUPPORT : -EPROTO;

                state_unmap(state_page);
                return r;
        }
        *ret_state_page = state_page;
        return 0;
}

void state_unmap(const struct state_page *state_page)
{
        if (state_page)
                munmap((void *)(uintptr_t)state_page, sizeof(*state_page));
}
