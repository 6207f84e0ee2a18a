/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sequence-locked records. The payload is copied word by word with relaxed
 * atomics: a plain memcpy() beside a concurrent writer would be a data race in
 * C, and a compiler (or ThreadSanitizer) may act on that.
 */
#include "board/board.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/paths.h"

#define WORDS(type) (sizeof(type) / sizeof(uint64_t))

static void words_load(uint64_t *to, const void *from, size_t n)
{
        const uint64_t *words = from;

        for (size_t i = 0; i < n; i++)
                to[i] = __atomic_load_n(&words[i], __ATOMIC_RELAXED);
}

static void words_store(void *to, const uint64_t *from, size_t n)
{
        uint64_t *words = to;

        for (size_t i = 0; i < n; i++)
                __atomic_store_n(&words[i], from[i], __ATOMIC_RELAXED);
}

static bool record_read(const _Atomic uint32_t *sequence, const _Atomic uint32_t *in_use,
                        const void *value, uint64_t *copy, size_t n)
{
        for (;;) {
                uint32_t before = atomic_load_explicit(sequence, memory_order_acquire);
                uint32_t used;

                if (before & 1)
                        continue;
                used = atomic_load_explicit(in_use, memory_order_relaxed);
                words_load(copy, value, n);
                atomic_thread_fence(memory_order_acquire);
                if (atomic_load_explicit(sequence, memory_order_relaxed) == before)
                        return used;
        }
}

static void record_write(_Atomic uint32_t *sequence, _Atomic uint32_t *in_use, void *value,
                         const uint64_t *copy, size_t n)
{
        uint32_t before = atomic_load_explicit(sequence, memory_order_relaxed);

        atomic_store_explicit(sequence, before + 1, memory_order_relaxed);
        atomic_thread_fence(memory_order_release);
        atomic_store_explicit(in_use, copy != NULL, memory_order_relaxed);
        if (copy)
                words_store(value, copy, n);
        atomic_store_explicit(sequence, before + 2, memory_order_release);
}

#define DEFINE_RECORD(noun, max)                                                                 \
        _Static_assert(sizeof(struct board_##noun) % sizeof(uint64_t) == 0, "copied as words");  \
        _Static_assert(offsetof(struct board_##noun##_record, value) % sizeof(uint64_t) == 0,    \
                       "copied as words");                                                       \
        bool board_read_##noun(const struct board *board, uint32_t slot,                         \
                               struct board_##noun *ret_value)                                   \
        {                                                                                        \
                const struct board_##noun##_record *record = &board->noun[slot];                 \
                union {                                                                          \
                        struct board_##noun value;                                               \
                        uint64_t words[WORDS(struct board_##noun)];                              \
                } copy;                                                                          \
                                                                                                 \
                if (slot >= (max) ||                                                             \
                    !record_read(&record->sequence, &record->in_use, &record->value, copy.words, \
                                 WORDS(struct board_##noun)))                                    \
                        return false;                                                            \
                *ret_value = copy.value;                                                         \
                return true;                                                                     \
        }                                                                                        \
        void board_write_##noun(struct board *board, uint32_t slot,                              \
                                const struct board_##noun *value)                                \
        {                                                                                        \
                struct board_##noun##_record *record = &board->noun[slot];                       \
                union {                                                                          \
                        struct board_##noun value;                                               \
                        uint64_t words[WORDS(struct board_##noun)];                              \
                } copy;                                                                          \
                                                                                                 \
                if (value)                                                                       \
                        copy.value = *value;                                                     \
                record_write(&record->sequence, &record->in_use, &record->value,                 \
                             value ? copy.words : NULL, WORDS(struct board_##noun));             \
                atomic_fetch_add_explicit(&board->generation, 1, memory_order_release);          \
        }

DEFINE_RECORD(device, BOARD_DEVICES_MAX)
DEFINE_RECORD(instance, BOARD_INSTANCES_MAX)
DEFINE_RECORD(process, BOARD_PROCESSES_MAX)

int board_create(struct board **ret_board, const char *path)
{
        CLEANUP(fd_closep) int fd = -1;
        char temporary[PATHS_MAX];
        struct board *board;

        if (snprintf(temporary, sizeof(temporary), "%s.new", path) >= (int)sizeof(temporary))
                return -ENAMETOOLONG;

        (void)unlink(temporary);
        fd = open(temporary, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0644);
        if (fd < 0)
                return -errno;
        if (fchmod(fd, 0644) < 0 || ftruncate(fd, sizeof(*board)) < 0)
                return -errno;

        board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (board == MAP_FAILED)
                return -errno;

        board->version = BOARD_VERSION;
        board->size = sizeof(*board);
        board->magic = BOARD_MAGIC;

        if (rename(temporary, path) < 0) {
                int r = -errno;

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
        const struct board *board;
        struct stat status;

        if (fd < 0)
                return -errno;
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
