/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and removes the directory of a store and its segments. */

#include "checkpoint/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "checkpoint/crew.h"
#include "checkpoint/note.h"
#include "checkpoint/store-note.h"

#define GENERATION_FILE  "generation"
#define DIRECTORY_PREFIX "openvgpu-"
#define MEMORY_FOLDER    "/dev/shm"
#define SEGMENT_NAME_MAX (DEVICE_UUID_MAX + 24)

DEFINE_CLEANUP(DIR *, closedir);

/* Memory. */

static uint64_t get_available_memory(void)
{
        uint64_t kib = UINT64_MAX >> 10;
        FILE *file = fopen("/proc/meminfo", "re");
        char line[128];

        while (file && fgets(line, sizeof(line), file))
                if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1)
                        break;
        if (file)
                fclose(file);
        return kib << 10;
}

static bool has_room(const char *path, uint64_t bytes)
{
        struct statvfs room;

        return statvfs(path, &room) == 0 && (uint64_t)room.f_bavail * room.f_frsize >= bytes;
}

/* Is it memory, with room for so much? */
static bool can_hold(const char *path, uint64_t bytes)
{
        struct statfs kind;

        return statfs(path, &kind) == 0 && kind.f_type == TMPFS_MAGIC && has_room(path, bytes);
}

/* Often half of the host's memory; the other one is small, but always there. */
static int find_memory(char *base, uint64_t bytes)
{
        char run[PATHS_MAX];

        if (get_available_memory() < bytes)
                return -ENOSPC;
        if (can_hold(MEMORY_FOLDER, bytes)) {
                strcpy(base, MEMORY_FOLDER);
                return 0;
        }
        if (paths_run(run) == 0 && can_hold(run, bytes))
                return paths_join(base, run, "checkpoint");
        return -ENOSPC;
}

/* Making one. Who has locked the directory may write the note. */

/* The files of a directory that are ours. */
struct files {
        int directory;
        char (*name)[SEGMENT_NAME_MAX];
        size_t n;
};

static bool is_ours(const char *name)
{
        return (strncmp(name, "GPU-", 4) == 0 && strlen(name) < SEGMENT_NAME_MAX) ||
               strcmp(name, GENERATION_FILE) == 0;
}

static int add_file(struct files *files, const char *name)
{
        void *more = reallocarray(files->name, files->n + 1, sizeof(*files->name));

        if (!more)
                return -ENOMEM;
        files->name = more;
        strcpy(files->name[files->n++], name);
        return 0;
}

static void remove_file(void *data, size_t i, unsigned int member)
{
        const struct files *files = data;

        (void)member;
        (void)unlinkat(files->directory, files->name[i], 0);
}

/* Several at a time: to give back many pages takes long, and somebody waits for his process. */
static void remove_files(int directory)
{
        CLEANUP(fd_closep) int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        CLEANUP(closedirp) DIR *entries = fd < 0 ? NULL : fdopendir(fd);
        struct files files = { .directory = directory };
        const struct dirent *entry;
        int r = 0;

        if (!entries)
                return;
        (void)TAKE_FD(fd);
        while (r == 0 && (entry = readdir(entries)))
                if (is_ours(entry->d_name))
                        r = add_file(&files, entry->d_name);
        crew_run(files.n, remove_file, &files);
        free(files.name);
}

static int write_generation(struct store *store)
{
        char text[20];
        CLEANUP(fd_closep)
        int fd = openat(store->directory, GENERATION_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                        0600);

        if (fd < 0)
                return -errno;
        if (getrandom(&store->generation, sizeof(store->generation), 0) < 0)
                return -errno;
        snprintf(text, sizeof(text), "%016" PRIx64 "\n", store->generation);
        return write(fd, text, 17) == 17 ? 0 : -ENOSPC;
}

static int open_directory(struct store *store)
{
        struct stat status;

        store->directory = open(store->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (store->directory < 0)
                return -errno;
        if (fstat(store->directory, &status) < 0 || status.st_uid != geteuid() ||
            (status.st_mode & 077))
                return -EPERM;
        return flock(store->directory, LOCK_EX | LOCK_NB) < 0 ? -EBUSY : 0;
}

/* A note that counts tells of memory which is nowhere else, or that there is none. */
static int check_note(const char *note)
{
        struct store former;

        (void)store_note_read(&former, note);
        return former.state == STORE_SAVED || former.state == STORE_LOST ? -EEXIST : 0;
}

/*
 * A name that is taken belongs to a former try of the same process, or to another one of now: -EBUSY. Only
 * under the lock does the note tell which.
 */
static int make_directory(struct store *store, const char *note)
{
        bool is_new = mkdir(store->path, 0700) == 0;
        int r;

        if (!is_new && errno != EEXIST)
                return -errno;
        r = open_directory(store);
        if (r == 0)
                r = check_note(note);
        if (r == 0) {
                remove_files(store->directory);
                return 0;
        }
        store->directory = fd_close(store->directory);
        if (is_new)
                (void)rmdir(store->path);
        return r;
}

static int choose_path(struct store *store, int pid, const char *base, uint64_t bytes)
{
        char memory[PATHS_MAX], name[NOTE_NAME_MAX], full[NOTE_NAME_MAX + 16];
        int r = note_name(name, pid);

        if (r == 0 && !base)
                r = find_memory(memory, bytes);
        else if (r == 0 && !has_room(base, bytes)) /* or it would be filled up to find that out */
                r = -ENOSPC;
        if (r < 0)
                return r;
        snprintf(full, sizeof(full), DIRECTORY_PREFIX "%s", name);
        return paths_join(store->path, base ? base : memory, full);
}

int store_make(struct store *store, int pid, const char *base, uint64_t bytes)
{
        char note[PATHS_MAX];
        int r;

        *store = STORE_INIT;
        store->place = base ? VGPU_CHECKPOINT_STORAGE_DIRECTORY : VGPU_CHECKPOINT_STORAGE_MEMORY;
        r = note_path(note, pid, STORE_NOTE_SUFFIX, true);
        if (r == 0)
                r = choose_path(store, pid, base, bytes);
        if (r == 0)
                r = make_directory(store, note);
        if (r < 0) {
                *store = STORE_INIT;
                return r;
        }
        memcpy(store->note, note, sizeof(note));
        r = store_note_write(store, STORE_RESERVED); /* before there is anything to be swept */
        if (r == 0)
                r = write_generation(store);
        if (r < 0)
                store_remove(store);
        return r;
}

/* Parts. */

int store_find_part(const struct store *store, const char *uuid)
{
        for (unsigned int i = 0; i < store->n_parts; i++)
                if (strcasecmp(store->part[i].uuid, uuid) == 0)
                        return (int)i;
        return -1;
}

int store_add_part(struct store *store, const char *uuid)
{
        struct store_part *part = &store->part[store->n_parts];

        if (store->n_parts == CHECKPOINT_PAIRS_MAX)
                return -1;
        *part = (struct store_part){ 0 };
        snprintf(part->uuid, sizeof(part->uuid), "%s", uuid);
        return (int)store->n_parts++;
}

static void name_segment(const struct store *store, unsigned int part, uint64_t segment, char *name,
                         size_t room)
{
        snprintf(name, room, "%s.%06" PRIu64, store->part[part].uuid, segment);
}

int store_open_segment(const struct store *store, unsigned int part, uint64_t segment,
                       bool is_writing, bool is_direct)
{
        int flags = (is_writing ? O_RDWR | O_CREAT : O_RDONLY) | O_NOFOLLOW | O_CLOEXEC;
        char name[SEGMENT_NAME_MAX];
        int fd = -1;

        name_segment(store, part, segment, name, sizeof(name));
        if (is_direct)
                fd = openat(store->directory, name, flags | O_DIRECT, 0600);
        if (fd < 0)
                fd = openat(store->directory, name, flags, 0600);
        return fd < 0 ? -errno : fd;
}

struct reservation {
        struct store *store;
        unsigned int part;
        uint64_t bytes;
        atomic_int error;
};

static uint64_t min(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}

static void reserve_segment(void *data, size_t segment, unsigned int member)
{
        struct reservation *reservation = data;
        uint64_t begin = segment * STORE_SEGMENT;
        CLEANUP(fd_closep) int fd = -1;
        int r;

        (void)member;
        if (atomic_load(&reservation->error))
                return;
        fd = store_open_segment(reservation->store, reservation->part, segment, true, false);
        do /* a freezer interrupts it, too */
                r = fd < 0 ? fd
                           : -posix_fallocate(
                                     fd, 0, (off_t)min(STORE_SEGMENT, reservation->bytes - begin));
        while (r == -EINTR);
        if (r < 0)
                atomic_store(&reservation->error, r);
}

int store_reserve(struct store *store, unsigned int i, uint64_t bytes)
{
        struct reservation reservation = { .store = store, .part = i, .bytes = bytes };

        if (bytes <= store->part[i].room)
                return 0;
        if (fault_point(store->part[i].room ? "checkpointer.grow" : "checkpointer.reserve"))
                return -ENOSPC;
        if (store->place == VGPU_CHECKPOINT_STORAGE_MEMORY &&
            get_available_memory() < bytes - store->part[i].room)
                return -ENOSPC;
        crew_run((bytes + STORE_SEGMENT - 1) / STORE_SEGMENT, reserve_segment, &reservation);
        if (atomic_load(&reservation.error))
                return atomic_load(&reservation.error);
        store->part[i].room = bytes;
        return 0;
}

/* What was reserved and is not needed. */
static void trim(struct store *store)
{
        for (unsigned int i = 0; i < store->n_parts; i++) {
                const struct store_part *part = &store->part[i];
                uint64_t n = (part->room + STORE_SEGMENT - 1) / STORE_SEGMENT;

                for (uint64_t segment = part->size / STORE_SEGMENT; segment < n; segment++) {
                        uint64_t left = part->size - segment * STORE_SEGMENT;
                        char name[SEGMENT_NAME_MAX];
                        CLEANUP(fd_closep) int fd = -1;

                        name_segment(store, i, segment, name, sizeof(name));
                        if (segment * STORE_SEGMENT >= part->size) {
                                (void)unlinkat(store->directory, name, 0);
                                continue;
                        }
                        fd = openat(store->directory, name, O_WRONLY | O_CLOEXEC);
                        if (fd >= 0)
                                (void)!ftruncate(fd, (off_t)left);
                }
        }
}

int store_commit(struct store *store)
{
        trim(store);
        return store_note_write(store, STORE_SAVED);
}

/* Using one. */

static bool has_generation(const struct store *store)
{
        CLEANUP(fd_closep)
        int fd = openat(store->directory, GENERATION_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        char is[20] = "", shall[20];

        snprintf(shall, sizeof(shall), "%016" PRIx64 "\n", store->generation);
        return fd >= 0 && read(fd, is, sizeof(is) - 1) == 17 && strcmp(is, shall) == 0;
}

static int check_segments(const struct store *store, unsigned int part, char *problem, size_t room)
{
        uint64_t size = store->part[part].size;

        for (uint64_t begin = 0; begin < size; begin += STORE_SEGMENT) {
                char name[SEGMENT_NAME_MAX];
                struct stat status;

                name_segment(store, part, begin / STORE_SEGMENT, name, sizeof(name));
                if (fstatat(store->directory, name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
                    !S_ISREG(status.st_mode)) {
                        snprintf(problem, room, "%s/%s is missing", store->path, name);
                        return -ENODATA;
                }
                if ((uint64_t)status.st_size != min(STORE_SEGMENT, size - begin)) {
                        snprintf(problem, room, "%s/%s has %jd bytes, not %" PRIu64, store->path,
                                 name, (intmax_t)status.st_size, min(STORE_SEGMENT, size - begin));
                        return -ENODATA;
                }
        }
        return 0;
}

int store_check(struct store *store, char *problem, size_t room)
{
        int r;

        if (store->directory >= 0)
                return 0; /* checked before, and locked since */
        r = open_directory(store);
        if (r == -EBUSY)
                *problem = '\0'; /* is for the caller to tell */
        else if (r < 0) {
                snprintf(problem, room, "%s: %s", store->path, strerrordesc_np(-r));
        } else if (!has_generation(store)) {
                snprintf(problem, room, "%s is of another checkpoint", store->path);
                r = -ENODATA;
        }
        for (unsigned int i = 0; i < store->n_parts && r == 0; i++)
                r = check_segments(store, i, problem, room);
        if (r < 0)
                store->directory = fd_close(store->directory);
        return r < 0 && r != -EBUSY ? -ENODATA : r;
}

int store_spend(struct store *store)
{
        return store_note_write(store, STORE_RESERVED);
}

/* Removing one. */

static void remove_directory(struct store *store)
{
        if (store->directory < 0)
                return;
        remove_files(store->directory);
        (void)rmdir(store->path);
        store->directory = fd_close(store->directory);
}

void store_remove(struct store *store)
{
        remove_directory(store);
        if (*store->note)
                (void)unlink(store->note);
        *store = STORE_INIT;
}

int store_take(struct store *store)
{
        int r = *store->path ? open_directory(store) : -ENOENT;

        if (r < 0)
                store->directory = fd_close(store->directory);
        return r == -EBUSY ? r : 0; /* what is not there, or not ours, we cannot remove */
}

void store_forget_unlocked(struct store *store)
{
        if (store_take(store) == 0)
                store_remove(store);
        store_deinit(store);
}

void store_lose(struct store *store, int pid)
{
        remove_directory(store);
        if (!*store->note && note_path(store->note, pid, STORE_NOTE_SUFFIX, true) < 0)
                return;
        (void)store_note_write(store, STORE_LOST);
}

void store_deinit(struct store *store)
{
        store->directory = fd_close(store->directory);
}

void store_find(struct store *store, int pid)
{
        char path[PATHS_MAX];

        *store = STORE_INIT;
        if (note_path(path, pid, STORE_NOTE_SUFFIX, false) == 0)
                (void)store_note_read(store, path);
}

bool store_is_unknown(int pid, char *ret_path)
{
        char name[NOTE_NAME_MAX], process[32];
        struct stat status, owner;

        snprintf(process, sizeof(process), "/proc/%d", pid);
        if (note_name(name, pid) < 0 || stat(process, &owner) < 0)
                return false;
        snprintf(ret_path, PATHS_MAX, MEMORY_FOLDER "/" DIRECTORY_PREFIX "%s", name);
        return lstat(ret_path, &status) == 0 && S_ISDIR(status.st_mode) &&
               (status.st_uid == owner.st_uid || status.st_uid == 0 || status.st_uid == geteuid());
}

static void sweep_one(const char *path)
{
        struct store store = STORE_INIT;

        if (store_note_read(&store, path) == 0)
                store_forget_unlocked(&store); /* or whoever is at work on it does */
        else
                (void)unlink(path);
}

void store_sweep(void)
{
        note_sweep(STORE_NOTE_SUFFIX, sweep_one);
}
