/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated host is a directory that stands for a machine with GPUs.
 *
 * Everything that a device is stands in one table of kinds. UUIDs are made from
 * the kind and the index, so that a host created again has the same devices.
 */

#include "sim/host.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/size.h"
#include "sim/host-layout.h"

/* Memory is what cuDeviceTotalMem() tells on such a device; PCI ids are those of pci.ids. */
static const struct kind {
        const char *kind, *name;
        uint64_t memory;
        uint32_t multiprocessors, compute_major, compute_minor, pci_device_id;
} kinds[] = {
        { "H200", "NVIDIA H200", 143156 * MIB, 132, 9, 0, 0x233510de },
        { "H100", "NVIDIA H100 80GB HBM3", 81079 * MIB, 132, 9, 0, 0x233010de },
        { "A100", "NVIDIA A100-SXM4-40GB", 40339 * MIB, 108, 8, 0, 0x20b010de },
        { "L40S", "NVIDIA L40S", 45457 * MIB, 142, 8, 9, 0x26b910de },
        { "RTX6000Ada", "NVIDIA RTX 6000 Ada Generation", 48640 * MIB, 142, 8, 9, 0x26b110de },
        { "L4", "NVIDIA L4", 22565 * MIB, 58, 8, 9, 0x27b810de },
        { "T4", "Tesla T4", 14913 * MIB, 40, 7, 5, 0x1eb810de },
        { "B200", "NVIDIA B200", 182642 * MIB, 148, 10, 0, 0x290110de },
};

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* A tmpfs smaller than this (a container's default /dev/shm has 64 MiB) holds no device memory. */
#define SMALLEST_TMPFS (512 * MIB)

static const char *const shared_memory = "/dev/shm";

#define MEMORY_FOLDER "/dev/shm/openvgpu-sim-"

const char *sim_host_kinds(void)
{
        return "H200, H100, A100, L40S, RTX6000Ada, L4, T4, B200";
}

/* FNV-1a; any spreading function would do. */
static uint64_t hash(const char *text, uint64_t seed)
{
        uint64_t value = 0xcbf29ce484222325ull ^ seed;

        for (; *text; text++)
                value = (value ^ (uint8_t)*text) * 0x100000001b3ull;
        return value;
}

static void make_uuid(uint8_t *uuid, const char *kind, uint32_t index)
{
        uint64_t half[2] = { hash(kind, index * 2 + 1), hash(kind, index * 2 + 2) };

        memcpy(uuid, half, sizeof(half));
        uuid[6] = (uuid[6] & 0x0f) | 0x40; /* a version 4 UUID, as real devices have */
        uuid[8] = (uuid[8] & 0x3f) | 0x80;
}

static void add_device(struct host *host, const struct kind *kind, uint64_t memory)
{
        uint32_t index = host->n_devices++;
        struct host_device *device = &host->device[index];

        (void)snprintf(device->name, sizeof(device->name), "%s", kind->name);
        (void)snprintf(device->kind, sizeof(device->kind), "%s", kind->kind);
        make_uuid(device->uuid, kind->kind, index);
        device->memory = memory ? memory & ~(2 * MIB - 1) : kind->memory;
        device->multiprocessors = kind->multiprocessors;
        device->compute_major = kind->compute_major;
        device->compute_minor = kind->compute_minor;
        device->pci_bus = 6 + index;
        device->pci_device_id = kind->pci_device_id;
}

static const struct kind *find_kind(const char *name)
{
        for (size_t i = 0; i < N_KINDS; i++)
                if (strcmp(kinds[i].kind, name) == 0)
                        return &kinds[i];
        return NULL;
}

/* One entry: [COUNTx]KIND[:MEMORY] */
static int add_devices(struct host *host, char *entry)
{
        char *size = strchr(entry, ':'), *end;
        unsigned long count = strtoul(entry, &end, 10);
        const struct kind *kind;
        uint64_t memory = 0;
        int r;

        if (size)
                *size++ = '\0';
        if (end == entry || *end != 'x')
                count = 1;
        else
                entry = end + 1;

        kind = find_kind(entry);
        if (!kind || count == 0 || count > HOST_DEVICES_MAX - host->n_devices)
                return -EINVAL;
        if (size) {
                r = size_parse(&memory, size);
                if (r < 0 || memory < 64 * MIB)
                        return -EINVAL;
        }
        while (count-- > 0)
                add_device(host, kind, memory);
        return 0;
}

static int parse_specification(struct host *host, const char *specification)
{
        CLEANUP(freep) char *copy = strdup(specification);
        char *rest = NULL;

        if (!copy)
                return -ENOMEM;
        if (strlen(specification) >= sizeof(host->specification))
                return -EINVAL;

        memcpy(host->specification, specification, strlen(specification) + 1);
        for (char *entry = strtok_r(copy, ",", &rest); entry; entry = strtok_r(NULL, ",", &rest)) {
                int r = add_devices(host, entry);

                if (r < 0)
                        return r;
        }
        return host->n_devices > 0 ? 0 : -EINVAL;
}

int sim_host_check(const char *specification)
{
        CLEANUP(freep) struct host *host = calloc(1, sizeof(*host));
        int r = host ? parse_specification(host, specification) : -ENOMEM;

        return r < 0 ? r : (int)host->n_devices;
}

static bool is_large_tmpfs(const char *directory)
{
        struct statfs fs;

        return statfs(directory, &fs) == 0 && fs.f_type == TMPFS_MAGIC &&
               (fs.f_blocks == 0 || (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize >= SMALLEST_TMPFS);
}

/* Can files be made here without a name, and named later? Not on every file system. */
static int check_nameless_files(const char *directory)
{
        CLEANUP(fd_closep) int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

        return fd < 0 ? -EOPNOTSUPP : 0;
}

/*
 * Memory that processes share is a file with a name; who can lock it has the proof that nobody holds it any more
 * (sim/holdings.h). Who made it may have been killed, and all others too.
 */
static bool is_unheld(int folder, const char *name)
{
        CLEANUP(fd_closep) int fd = -1;

        if (name[0] < '0' || name[0] > '9')
                return false;
        fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
}

static bool is_any(int folder, const char *name)
{
        (void)folder;
        return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static void remove_files(const char *path, bool (*may_go)(int folder, const char *name))
{
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
        struct dirent *entry;

        if (!folder) {
                fd_close(fd);
                return;
        }
        while ((entry = readdir(folder)))
                if (may_go(dirfd(folder), entry->d_name) &&
                    unlinkat(dirfd(folder), entry->d_name, 0) < 0)
                        (void)unlinkat(dirfd(folder), entry->d_name, AT_REMOVEDIR);
        (void)closedir(folder);
}

static void remove_folder(const char *path)
{
        remove_files(path, is_any);
        (void)rmdir(path);
}

static unsigned long long number_of(const char *path)
{
        struct stat status;

        return stat(path, &status) < 0 ? 0 : (unsigned long long)status.st_ino;
}

/*
 * What the names of our folders in /dev/shm begin with. Containers, services with a /tmp of their own and
 * who is in a chroot can have the same /dev/shm and not see each other's hosts: whose host is gone can only be
 * told in the mount namespace, and below the root, where it was.
 */
static void make_prefix(char *prefix, size_t size)
{
        (void)snprintf(prefix, size, MEMORY_FOLDER "%llu.%llu-", number_of("/proc/self/ns/mnt"),
                       number_of("/"));
}

/* The file of a host that is for all says what somebody wrote into it. */
static bool is_in_shared_memory(const char *memory)
{
        size_t length = strlen(MEMORY_FOLDER);

        return strncmp(memory, MEMORY_FOLDER, length) == 0 && !strchr(memory + length, '/');
}

/*
 * Folders in /dev/shm whose host is gone, because somebody removed its directory: the link .host
 * in each says which it was. And in those of other hosts the memory that nobody holds.
 */
static void sweep_shared_memory(void)
{
        DIR *folder = opendir(shared_memory);
        char prefix[64];
        struct dirent *entry;

        if (!folder)
                return;
        make_prefix(prefix, sizeof(prefix));
        while ((entry = readdir(folder))) {
                char path[PATHS_MAX], link[PATHS_MAX];
                struct stat status;

                if (paths_join(path, shared_memory, entry->d_name) < 0 ||
                    strncmp(path, prefix, strlen(prefix)) != 0 ||
                    paths_join(link, path, ".host") < 0)
                        continue;
                if (lstat(link, &status) < 0 || status.st_uid != geteuid())
                        continue;
                if (stat(link, &status) == 0)
                        remove_files(path, is_unheld);
                else if (errno == ENOENT)
                        remove_folder(path);
        }
        (void)closedir(folder);
}

/*
 * Root's host is for all users, like a machine's devices; any other user's is private. Each user must be
 * able to remove what a dead process of another one has left: from the folders in the directory, not from it.
 */
static mode_t folder_mode(void)
{
        return geteuid() == 0 ? 0777 : 0700;
}

static mode_t file_mode(void)
{
        return geteuid() == 0 ? 0666 : 0600;
}

#define OWNER_ONLY ((mode_t)0755)

/* Where a host was for all users, another folder may stand in the place of ours. */
static int make_folder(const char *path, mode_t mode)
{
        CLEANUP(fd_closep) int fd = -1;
        struct stat status;

        if (mkdir(path, 0700) < 0)
                return errno == EEXIST ? 0 : -errno;
        fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &status) < 0)
                return -errno;
        if (status.st_uid != geteuid() || (status.st_mode & 077) != 0)
                return -EPERM;
        return fchmod(fd, mode) < 0 ? -errno : 0;
}

static int make_memory_in_shared_memory(struct host *host, const char *directory)
{
        char link[HOST_PATH_MAX + sizeof("/.host")], prefix[64];
        CLEANUP(freep) char *home = realpath(directory, NULL);

        make_prefix(prefix, sizeof(prefix));
        (void)snprintf(host->memory, sizeof(host->memory), "%sXXXXXX", prefix);
        if (!home || !mkdtemp(host->memory) || chmod(host->memory, folder_mode()) < 0)
                return -errno;
        (void)snprintf(link, sizeof(link), "%s/.host", host->memory);
        if (symlink(home, link) < 0)
                return -errno;
        return 0;
}

static int make_memory_folder(struct host *host, const char *directory)
{
        CLEANUP(freep) char *home = realpath(directory, NULL);
        int r = 0;

        if (!is_large_tmpfs(directory) && is_large_tmpfs(shared_memory)) {
                r = make_memory_in_shared_memory(host, directory);
        } else {
                int length = snprintf(host->memory, sizeof(host->memory), "%s/memory", home);

                if (!home || length >= (int)sizeof(host->memory))
                        return -ENAMETOOLONG;
                r = make_folder(host->memory, folder_mode());
        }
        return r < 0 ? r : check_nameless_files(host->memory);
}

static bool has_live_process(int fd)
{
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = HOST_SLOTS };

        return fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/* Those of a host of an earlier version hold the locks on its other file. */
static bool slots_have_live_process(const char *directory)
{
        CLEANUP(fd_closep) int fd = -1;
        char path[PATHS_MAX];

        if (paths_join(path, directory, "slots") < 0)
                return false;
        fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        return fd >= 0 && has_live_process(fd);
}

/* 1: the host at @path is what @specification says; 0: there is none, or one to be replaced. */
static int examine(const char *directory, const char *path, const char *specification)
{
        CLEANUP(fd_closep) int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
        CLEANUP(freep) struct host *host = calloc(1, sizeof(*host));

        if (!host)
                return -ENOMEM;
        if (fd < 0)
                return errno == ENOENT ? 0 : -errno;
        if (pread(fd, host, sizeof(*host), 0) == (ssize_t)sizeof(*host) &&
            host->magic == HOST_MAGIC && host->version == HOST_VERSION &&
            strcmp(host->specification, specification) == 0 && access(host->memory, W_OK) == 0)
                return 1;
        if (has_live_process(fd) || slots_have_live_process(directory))
                return -EBUSY;
        if (host->magic == HOST_MAGIC && is_in_shared_memory(host->memory))
                remove_folder(host->memory);
        return 0;
}

static int create_empty(const char *directory, const char *file)
{
        char path[PATHS_MAX];
        CLEANUP(fd_closep) int fd = -1;
        int r = paths_join(path, directory, file);

        if (r < 0)
                return r;
        fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        return fd < 0 || fchmod(fd, file_mode()) < 0 ? -errno : 0;
}

static int create_lock(const char *directory, const char *kind, uint32_t number)
{
        char file[32];

        (void)snprintf(file, sizeof(file), "%s-%u", kind, number);
        return create_empty(directory, file);
}

static int create_locks(const char *directory, uint32_t n_devices)
{
        int r = 0;

        for (uint32_t i = 0; i < n_devices && r == 0; i++) {
                r = create_lock(directory, "engine", i);
                if (r == 0)
                        r = create_lock(directory, "turn", i);
        }
        return r;
}

static int create_services(const char *directory)
{
        char path[PATHS_MAX];
        int r = paths_join(path, directory, "services");

        return r < 0 ? r : make_folder(path, folder_mode());
}

/* Written beside and renamed over: a process sees a whole host or none. */
static int write_host(const char *path, const struct host *host)
{
        char beside[PATHS_MAX + 4];
        CLEANUP(fd_closep) int fd = -1;
        ssize_t n;

        (void)snprintf(beside, sizeof(beside), "%s.new", path);
        fd = open(beside, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0 || fchmod(fd, geteuid() == 0 ? 0644 : 0600) < 0)
                return -errno;
        n = write(fd, host, sizeof(*host));
        if (n < 0)
                return -errno;
        if (n != (ssize_t)sizeof(*host))
                return -ENOSPC; /* a part of it still fitted */
        return rename(beside, path) < 0 ? -errno : 0;
}

static int create_in_locked(const char *directory, const char *specification)
{
        CLEANUP(freep) struct host *host = calloc(1, sizeof(*host));
        char path[PATHS_MAX];
        int r;

        if (!host)
                return -ENOMEM;
        r = paths_join(path, directory, "host");
        if (r < 0)
                return r;
        r = parse_specification(host, specification);
        if (r < 0)
                return r;
        r = examine(directory, path, specification);
        if (r != 0)
                return r < 0 ? r : 0;

        host->magic = HOST_MAGIC;
        host->version = HOST_VERSION;
        r = make_memory_folder(host, directory);
        if (r == 0)
                r = create_locks(directory, host->n_devices);
        if (r == 0)
                r = create_empty(directory, "slots");
        if (r == 0)
                r = create_services(directory);
        return r < 0 ? r : write_host(path, host);
}

static int lock_host(int *ret_lock, const char *directory)
{
        CLEANUP(fd_closep) int lock = -1;
        char path[PATHS_MAX];
        int r = paths_join(path, directory, "lock");

        if (r < 0)
                return r;
        lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (lock < 0 || fchmod(lock, file_mode()) < 0 || flock(lock, LOCK_EX) < 0)
                return -errno;
        *ret_lock = TAKE_FD(lock);
        return 0;
}

/* In a tmpfs itself, the directory has its memory with it. */
static void sweep_memory_beside(const char *directory)
{
        char memory[PATHS_MAX];

        if (paths_join(memory, directory, "memory") == 0)
                remove_files(memory, is_unheld);
}

void sim_host_sweep(const char *directory)
{
        sweep_shared_memory();
        sweep_memory_beside(directory);
}

/* One of an earlier version was open to all users. */
static int close_to_others(const char *directory)
{
        CLEANUP(fd_closep) int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct stat status;

        if (fd < 0 || fstat(fd, &status) < 0)
                return -errno;
        if (status.st_uid != geteuid() || (status.st_mode & ~OWNER_ONLY & 0777) == 0)
                return 0;
        return fchmod(fd, status.st_mode & OWNER_ONLY) < 0 ? -errno : 0;
}

int sim_host_create(const char *directory, const char *specification)
{
        CLEANUP(fd_closep) int lock = -1;
        int r;

        sim_host_sweep(directory);
        r = make_folder(directory, geteuid() == 0 ? OWNER_ONLY : folder_mode());
        if (r == 0)
                r = close_to_others(directory);
        if (r == 0)
                r = lock_host(&lock, directory);
        return r < 0 ? r : create_in_locked(directory, specification);
}

static int remove_locked(const char *directory)
{
        CLEANUP(freep) struct host *host = malloc(sizeof(*host));
        CLEANUP(fd_closep) int fd = -1;
        char path[PATHS_MAX], folder[PATHS_MAX];
        int r;

        if (!host)
                return -ENOMEM;
        r = paths_join(path, directory, "host");
        if (r < 0)
                return r;
        fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        if (has_live_process(fd) || slots_have_live_process(directory))
                return -EBUSY;
        if (pread(fd, host, sizeof(*host), 0) == (ssize_t)sizeof(*host) &&
            host->magic == HOST_MAGIC && is_in_shared_memory(host->memory))
                remove_folder(host->memory);
        if (paths_join(folder, directory, "memory") == 0)
                remove_folder(folder); /* there, if the directory is in a tmpfs itself */
        if (paths_join(folder, directory, "services") == 0)
                remove_folder(folder);
        remove_folder(directory);
        return 0;
}

int sim_host_remove(const char *directory)
{
        CLEANUP(fd_closep) int lock = -1;
        int r = lock_host(&lock, directory);

        return r < 0 ? r : remove_locked(directory);
}
