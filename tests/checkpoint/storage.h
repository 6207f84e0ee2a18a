/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CHECKPOINT_STORAGE_H
#define TESTS_CHECKPOINT_STORAGE_H

/* What the tests of stored device memory share. The driver is one of CUDA 13.4 in all of them. */

#include <dirent.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "sim/driver.h"
#include "tests/checkpoint/fixture.h"

#define MEMORY_FOLDER "/dev/shm"

/* A folder on a disk, perhaps, for storage that the user names. */
static inline void storage_get_folder(char *path, size_t room)
{
        (void)snprintf(path, room, "%s/storage", test_directory);
}

/* In a container, there may be next to nothing: then there is nothing to be tested. */
static inline void storage_skip_without_room(void)
{
        struct statvfs room;

        if (statvfs(MEMORY_FOLDER, &room) == 0 && room.f_bavail * room.f_frsize >= 2 * GIB)
                return;
        (void)fprintf(stderr, "%s has less than 2 GiB left\n", MEMORY_FOLDER);
        exit(77);
}

static inline void storage_setup(void)
{
        char path[128];

        storage_skip_without_room();
        test_host_create("2xH200:1G");
        (void)setenv(DRIVER_VERSION_VARIABLE, "13040", 1);
        (void)setenv("OPENVGPU_RUN", test_directory, 1);
        (void)setenv("OPENVGPU_FAULT_DIR", test_directory, 1);
        storage_get_folder(path, sizeof(path));
        assert_int_equal(mkdir(path, 0700), 0);
}

static inline void storage_remove_folder(const char *name)
{
        char path[400];
        const struct dirent *entry;
        DIR *directory;

        (void)snprintf(path, sizeof(path), "%s/%s", test_directory, name);
        directory = opendir(path);
        while (directory && (entry = readdir(directory)))
                (void)unlinkat(dirfd(directory), entry->d_name, 0);
        if (directory)
                (void)closedir(directory);
        (void)rmdir(path);
}

static inline void storage_teardown(void)
{
        char path[128];

        (void)snprintf(path, sizeof(path), "%s/nvml", test_directory);
        (void)unlink(path);
        storage_remove_folder("storage");
        storage_remove_folder("checkpoint");
        test_host_remove();
}

/* Directories of stores of process @pid (0: of any) in @folder; the path of the last goes to @path. */
static inline int storage_count(const char *folder, pid_t pid, char *path, size_t room)
{
        DIR *directory = opendir(folder);
        const struct dirent *entry;
        char begin[32] = "openvgpu-";
        int n = 0;

        assert_non_null(directory);
        if (pid)
                (void)snprintf(begin, sizeof(begin), "openvgpu-%d-", pid);
        while ((entry = readdir(directory))) {
                if (strncmp(entry->d_name, begin, strlen(begin)) != 0)
                        continue;
                if (path)
                        (void)snprintf(path, room, "%s/%.90s", folder, entry->d_name);
                n++;
        }
        (void)closedir(directory);
        return n;
}

static inline bool storage_has_note(pid_t pid)
{
        char folder[96], begin[16];
        const struct dirent *entry;
        bool has = false;
        DIR *directory;

        (void)snprintf(folder, sizeof(folder), "%s/checkpoint", test_directory);
        (void)snprintf(begin, sizeof(begin), "%d-", pid);
        directory = opendir(folder);
        while (directory && (entry = readdir(directory)))
                if (strncmp(entry->d_name, begin, strlen(begin)) == 0 &&
                    strstr(entry->d_name, ".storage"))
                        has = true;
        if (directory)
                (void)closedir(directory);
        return has;
}

/* Nothing is left of what was stored of @pid. */
static inline void assert_nothing_stored(pid_t pid)
{
        char folder[128];

        storage_get_folder(folder, sizeof(folder));
        assert_int_equal(storage_count(MEMORY_FOLDER, pid, NULL, 0), 0);
        assert_int_equal(storage_count(folder, pid, NULL, 0), 0);
        assert_false(storage_has_note(pid));
}

static inline int storage_suspend(struct vgpu_checkpoint *checkpoint, const char *storage)
{
        struct vgpu_checkpoint_options options = VGPU_CHECKPOINT_OPTIONS_INIT;

        options.storage = storage;
        return vgpu_checkpoint_suspend(checkpoint, &options);
}

/* Where the last call has put the memory of its first process; its reason begins with @reason. */
static inline void assert_stored(const struct vgpu_checkpoint *checkpoint,
                                 enum vgpu_checkpoint_storage expected, const char *reason)
{
        const struct vgpu_checkpoint_process *const *processes;
        size_t n;

        processes = vgpu_checkpoint_get_processes(checkpoint, &n);
        assert_true(n > 0);
        assert_int_equal(processes[0]->storage, expected);
        if (strncmp(processes[0]->storage_reason, reason, strlen(reason)) != 0 ||
            !*reason != !*processes[0]->storage_reason)
                fail_msg("'%s', not '%s'", processes[0]->storage_reason, reason);
}

static inline void assert_done(struct vgpu_checkpoint *checkpoint, int r)
{
        if (r < 0)
                fail_msg("%s (%s)", vgpu_checkpoint_get_error(checkpoint)->message,
                         vgpu_checkpoint_get_error(checkpoint)->hint);
}

#endif
