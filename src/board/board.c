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
#include "board/board.h"

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
static inline bool record_read(const struct board_head *head, uint64_t *ret_number, void *ret_value,
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

static inline void copy_write(struct board_head *head, uint32_t copy, const uint64_t *number,
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

static inline void record_write(struct board_head *head, const uint64_t *number, const void *value,
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
static bool make_room(struct board *board, const void *from, const void *behind)
{
        if (populate(from, behind))
                return true;
        atomic_fetch_add_explicit(&board->n_dropped, 1, memory_order_relaxed);
        return false;
}

/* Is the byte before @from, which was populated, on the same page as the last of it? */
static bool is_on_former_page(const void *from, const void *behind)
{
        uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

        return ((uintptr_t)from - 1) / page == ((uintptr_t)behind - 1) / page;
}

/* Entry @number of a ring: a system call for each page, not for each entry. */
static bool make_room_in_ring(struct board *board, uint64_t number, const void *from,
                              const void *behind)
{
        return (number > 0 && is_on_former_page(from, behind)) || make_room(board, from, behind);
}

static void grow(_Atomic uint32_t *end, uint32_t slot)
{
        if (slot >= atomic_load_explicit(end, memory_order_relaxed))
                atomic_store_explicit(end, slot + 1, memory_order_release);
}

static void bump(struct board *board)
{
        atomic_fetch_add_explicit(&board->generation, 1, memory_order_release);
}

/* Whatever is on the board, a text that was read has an end. */
#define END(text) ((text)[sizeof(text) - 1] = '\0')

static inline void end_none(void *value)
{
        (void)value;
}

static inline void end_device(struct board_device *device)
{
        END(device->uuid);
        END(device->name);
}

static inline void end_detail(struct board_device_detail *detail)
{
        END(detail->metadata_text);
        END(detail->serial);
        END(detail->vbios);
        END(detail->part_number);
}

static inline void end_features(struct board_features *features)
{
        for (size_t i = 0; i < sizeof(features->feature) / sizeof(features->feature[0]); i++) {
                END(features->feature[i].product);
                END(features->feature[i].licence);
        }
}

static inline void end_profile(struct board_profile *profile)
{
        END(profile->name);
}

static inline void end_compute_instance(struct board_compute_instance *instance)
{
        END(instance->uuid);
}

static inline void end_memory_limit(struct board_memory_limit *limit)
{
        END(limit->path);
}

static inline void end_instance(struct board_instance *instance)
{
        END(instance->uuid);
        END(instance->name);
}

static inline void end_vm(struct board_vm *vm)
{
        END(vm->id);
        END(vm->name);
        END(vm->driver_version);
        END(vm->mdev_uuid);
        END(vm->pci_bus_id);
}

static inline void end_type_text(struct board_type_text *text)
{
        END(text->name);
        END(text->class);
        END(text->licence);
}

static inline void end_process(struct board_process *process)
{
        END(process->name);
}

#define END_TEXTS(value)                                             \
        _Generic((value), struct board_device *                      \
                 : end_device, struct board_device_detail *          \
                 : end_detail, struct board_features *               \
                 : end_features, struct board_compute_instance *     \
                 : end_compute_instance, struct board_memory_limit * \
                 : end_memory_limit, struct board_profile *          \
                 : end_profile, struct board_instance *              \
                 : end_instance, struct board_vm *                   \
                 : end_vm, struct board_type_text *                  \
                 : end_type_text, struct board_process *             \
                 : end_process, default                              \
                 : end_none)(value)

#define WORDS(type) (sizeof(struct type) / sizeof(word))

#define CHECK_LAYOUT(type, record)                                                  \
        _Static_assert(sizeof(struct type) % sizeof(word) == 0, "copied as words"); \
        _Static_assert(_Alignof(struct type) == sizeof(word), "copied as words");   \
        _Static_assert(offsetof(struct record, head) == 0, "the payload follows the head");

#define DEFINE_TABLE(noun, type, slots)                                                          \
        CHECK_LAYOUT(type, board_##noun##_record)                                                \
        uint32_t board_end_##noun(const struct board *board)                                     \
        {                                                                                        \
                uint32_t end = atomic_load_explicit(&board->end.noun, memory_order_acquire);     \
                                                                                                 \
                return end < (slots) ? end : (slots);                                            \
        }                                                                                        \
        bool board_read_##noun(const struct board *board, uint32_t slot, struct type *ret_value) \
        {                                                                                        \
                if (slot >= board_end_##noun(board) || /* the file has no pages behind it */     \
                    !record_read(&board->noun[slot].head, NULL, ret_value, WORDS(type)))         \
                        return false;                                                            \
                END_TEXTS(ret_value);                                                            \
                return true;                                                                     \
        }                                                                                        \
        void board_write_##noun(struct board *board, uint32_t slot, const struct type *value)    \
        {                                                                                        \
                uint32_t end = atomic_load_explicit(&board->end.noun, memory_order_relaxed);     \
                                                                                                 \
                if (slot >= end && !make_room(board, &board->noun[end], &board->noun[slot + 1])) \
                        return;                                                                  \
                record_write(&board->noun[slot].head, NULL, value, WORDS(type));                 \
                grow(&board->end.noun, slot);                                                    \
                bump(board);                                                                     \
        }

#define DEFINE_RING(noun, type, slots, length)                                                     \
        CHECK_LAYOUT(type, board_##noun##_entry)                                                   \
        uint64_t board_count_##noun(const struct board *board, uint32_t slot)                      \
        {                                                                                          \
                return slot < (slots) ? atomic_load_explicit(&board->count.noun[slot],             \
                                                             memory_order_acquire)                 \
                                      : 0;                                                         \
        }                                                                                          \
        uint64_t board_first_##noun(const struct board *board, uint32_t slot)                      \
        {                                                                                          \
                uint64_t count = board_count_##noun(board, slot);                                  \
                                                                                                   \
                return count > (length) ? count - (length) : 0;                                    \
        }                                                                                          \
        bool board_read_##noun(const struct board *board, uint32_t slot, uint64_t number,          \
                               struct type *ret_value)                                             \
        {                                                                                          \
                uint64_t found;                                                                    \
                                                                                                   \
                return number < board_count_##noun(board, slot) &&                                 \
                       record_read(&board->noun[slot][number % (length)].head, &found, ret_value,  \
                                   WORDS(type)) &&                                                 \
                       found == number;                                                            \
        }                                                                                          \
        uint64_t board_append_##noun(struct board *board, uint32_t slot, const struct type *value) \
        {                                                                                          \
                uint64_t number =                                                                  \
                        atomic_load_explicit(&board->count.noun[slot], memory_order_relaxed);      \
                                                                                                   \
                if (number < (length) &&                                                           \
                    !make_room_in_ring(board, number, &board->noun[slot][number],                  \
                                       &board->noun[slot][number + 1]))                            \
                        return BOARD_NO_NUMBER;                                                    \
                record_write(&board->noun[slot][number % (length)].head, &number, value,           \
                             WORDS(type));                                                         \
                atomic_store_explicit(&board->count.noun[slot], number + 1, memory_order_release); \
                bump(board);                                                                       \
                return number;                                                                     \
        }                                                                                          \
        void board_write_##noun(struct board *board, uint32_t slot, uint64_t number,               \
                                const struct type *value)                                          \
        {                                                                                          \
                if (number < board_first_##noun(board, slot) ||                                    \
                    number >= board_count_##noun(board, slot))                                     \
                        return;                                                                    \
                record_write(&board->noun[slot][number % (length)].head, &number, value,           \
                             WORDS(type));                                                         \
                bump(board);                                                                       \
        }

BOARD_TABLES(DEFINE_TABLE)
BOARD_RINGS(DEFINE_RING)

/* Ids count up from a multiple of 256: neighbours get neighbouring slots, boards spread. */
static uint32_t hash_type(uint32_t id)
{
        return (id + (id >> 8) * 61) % BOARD_TYPES_MAX;
}

/* The slot of the type, or the free one where it belongs. */
static bool probe(const struct board *board, uint32_t id, uint32_t *ret_slot, bool *ret_is_free)
{
        for (uint32_t i = 0; i < BOARD_TYPES_MAX; i++) {
                uint32_t slot = (hash_type(id) + i) % BOARD_TYPES_MAX;
                const struct board_type_record *record = &board->type[slot];
                bool is_behind =
                        slot >= atomic_load_explicit(&board->end.type, memory_order_acquire);

                *ret_slot = slot;
                *ret_is_free = is_behind ||
                               !atomic_load_explicit(&record->head.in_use, memory_order_acquire);
                if (*ret_is_free || __atomic_load_n(&record->value[0].id, __ATOMIC_RELAXED) == id)
                        return true;
        }
        return false;
}

bool board_find_type(const struct board *board, uint32_t id, uint32_t *ret_slot)
{
        bool is_free;

        return probe(board, id, ret_slot, &is_free) && !is_free;
}

int board_add_type(struct board *board, const struct board_type *type)
{
        uint32_t slot;
        bool is_free;

        if (!probe(board, type->id, &slot, &is_free))
                return -ENOSPC;
        board_write_type(board, slot, type);
        return slot < atomic_load(&board->end.type) ? (int)slot : -ENOSPC;
}

/* Before anybody else can open it. */
static int open_for(int fd, const gid_t *group)
{
        if (group && fchown(fd, (uid_t)-1, *group) < 0)
                return -errno;
        return fchmod(fd, group ? 0640 : 0644) < 0 ? -errno : 0;
}

int board_create(struct board **ret_board, const char *path, const gid_t *group)
{
        CLEANUP(fd_closep) int fd = -1;
        char temporary[PATHS_MAX];
        struct board *board;
        int r;

        if (snprintf(temporary, sizeof(temporary), "%s.new", path) >= (int)sizeof(temporary))
                return -ENAMETOOLONG;

        (void)unlink(temporary);
        fd = open(temporary, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return -errno;
        r = open_for(fd, group);
        if (r < 0 || ftruncate(fd, sizeof(*board)) < 0)
                return r < 0 ? r : -errno;

        board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (board == MAP_FAILED)
                return -errno;
        if (!populate(board, &board->host)) {
                munmap(board, sizeof(*board));
                (void)unlink(temporary);
                return -ENOSPC;
        }

        board->version = BOARD_VERSION;
        board->size = sizeof(*board);
        board->magic = BOARD_MAGIC;

        if (rename(temporary, path) < 0) {
                r = -errno;
                munmap(board, sizeof(*board));
                return r;
        }
        *ret_board = board;
        return 0;
}

void board_close(struct board *board)
{
        if (!board)
                return;
        atomic_store(&board->closed, 1);
        munmap(board, sizeof(*board));
}

int board_map(const struct board **ret_board, const char *path)
{
        CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);

        return fd < 0 ? -errno : board_map_fd(ret_board, fd);
}

int board_map_fd(const struct board **ret_board, int fd)
{
        const struct board *board;
        struct stat status;

        if (fstat(fd, &status) < 0)
                return -errno;
        if ((uint64_t)status.st_size < sizeof(uint64_t))
                return -EPROTO;

        board = mmap(NULL, sizeof(*board), PROT_READ, MAP_SHARED, fd, 0);
        if (board == MAP_FAILED)
                return -errno;

        if (board->magic != BOARD_MAGIC || board->version != BOARD_VERSION ||
            (uint64_t)status.st_size != sizeof(*board)) {
                int r = board->magic == BOARD_MAGIC ? -EPROTONOSUPPORT : -EPROTO;

                board_unmap(board);
                return r;
        }
        *ret_board = board;
        return 0;
}

void board_unmap(const struct board *board)
{
        if (board)
                munmap((void *)(uintptr_t)board, sizeof(*board));
}
