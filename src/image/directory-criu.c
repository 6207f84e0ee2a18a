/* SPDX-License-Identifier: Apache-2.0 */
/* The files that CRIU writes into an image: listed with their checksums, and compared with the list. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/trust.h"
#include "image/checksum.h"
#include "image/directory.h"

static void dir_closep(DIR **dir)
{
        if (*dir)
                closedir(*dir);
}

/* CRIU's own account of what it did, which nobody needs for a restore. */
static bool is_log(const char *name)
{
        size_t length = strlen(name);

        return length > 4 && strcmp(name + length - 4, ".log") == 0;
}

static int measure(int folder, const char *name, bool must_sync, struct image_file *ret_file)
{
        CLEANUP(fd_closep)
        int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        struct stat status;
        void *bytes;

        if (fd < 0 || fstat(fd, &status) < 0)
                return -errno;
        if (!S_ISREG(status.st_mode))
                return -EINVAL;
        *ret_file = (struct image_file){ .size = (uint64_t)status.st_size };
        snprintf(ret_file->name, sizeof(ret_file->name), "%s", name);
        if (must_sync && fsync(fd) < 0)
                return -errno;
        if (status.st_size == 0)
                return 0;
        bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes == MAP_FAILED)
                return -errno;
        (void)madvise(bytes, (size_t)status.st_size, MADV_SEQUENTIAL);
        ret_file->checksum = checksum_add(0, bytes, (size_t)status.st_size);
        munmap(bytes, (size_t)status.st_size);
        return 0;
}

static int add_file(struct image_manifest *manifest, const struct image_file *file)
{
        struct image_file *files =
                reallocarray(manifest->criu.files, manifest->criu.n_files + 1, sizeof(*files));

        if (!files)
                return -ENOMEM;
        manifest->criu.files = files;
        files[manifest->criu.n_files++] = *file;
        return 0;
}

static int list_folder(int folder, struct image_manifest *manifest)
{
        CLEANUP(dir_closep) DIR *dir = fdopendir(folder);
        struct image_file file;
        struct dirent *entry;
        int r = 0;

        if (!dir) {
                fd_close(folder);
                return -errno;
        }
        while (r == 0 && (entry = readdir(dir))) {
                if (entry->d_name[0] == '.' || is_log(entry->d_name))
                        continue;
                if (strlen(entry->d_name) >= sizeof(file.name))
                        return -ENAMETOOLONG;
                r = measure(dirfd(dir), entry->d_name, true, &file);
                if (r == 0)
                        r = add_file(manifest, &file);
        }
        if (r == 0 && fsync(dirfd(dir)) < 0)
                r = -errno;
        return r;
}

int image_directory_list_criu(const struct image_directory *directory,
                              struct image_manifest *manifest, struct image_error *error)
{
        int folder = openat(directory->fd, IMAGE_CRIU_FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int r = folder < 0 ? -errno : list_folder(folder, manifest);

        if (r < 0)
                return image_fail_file(error, r, "list the files of criu in", directory->partial);
        manifest->has_criu = true;
        return 0;
}

static int check_file(const struct image_directory *directory, int folder,
                      const struct image_file *wanted, struct image_error *error)
{
        static const char hint[] = "the image cannot be used; load an older one";
        struct image_file file = { .size = 0 };
        int r = measure(folder, wanted->name, false, &file);

        if (r < 0)
                return image_fail(error, r, hint, "%s/" IMAGE_CRIU_FOLDER "/%s: %s",
                                  directory->path, wanted->name,
                                  r == -ENOENT   ? "it is missing"
                                  : r == -EINVAL ? "it is no plain file"
                                                 : strerrordesc_np(-r));
        if (file.size != wanted->size)
                return image_fail(error, -EBADMSG, hint,
                                  "%s/" IMAGE_CRIU_FOLDER "/%s is %s: it has %llu bytes, the "
                                  "manifest says %llu",
                                  directory->path, wanted->name,
                                  file.size < wanted->size ? "cut off" : "too long",
                                  (unsigned long long)file.size, (unsigned long long)wanted->size);
        if (file.checksum != wanted->checksum)
                return image_fail(error, -EBADMSG, hint,
                                  "%s/" IMAGE_CRIU_FOLDER "/%s is altered: its checksum is %08x, "
                                  "the manifest says %08x",
                                  directory->path, wanted->name, file.checksum, wanted->checksum);
        return 0;
}

int image_directory_check_criu(const struct image_directory *directory,
                               const struct image_manifest *manifest, struct image_error *error)
{
        CLEANUP(fd_closep)
        int folder = openat(directory->fd, IMAGE_CRIU_FOLDER,
                            O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        int r = 0;

        if (folder < 0)
                return image_fail_file(error, -errno, "open the files of criu in", directory->path);
        for (size_t i = 0; r == 0 && i < manifest->criu.n_files; i++)
                r = check_file(directory, folder, &manifest->criu.files[i], error);
        return r;
}

/* What is in @folder, and the folder itself; links would lead elsewhere. */
static int check_owner(int folder, const char *name, const char *path, struct image_error *error)
{
        struct stat status;

        if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
                return image_fail_file(error, -errno, "look at", path);
        if (!trust_user(status.st_uid))
                return image_fail(
                        error, -EPERM,
                        "an image is a program: load it as its owner, or have somebody whom you trust copy it for you",
                        "%s/%s belongs to user %u, who is neither root nor you", path, name,
                        status.st_uid);
        if (status.st_mode & (S_IWGRP | S_IWOTH) || S_ISLNK(status.st_mode))
                return image_fail(error, -EPERM, "chmod -R go-w it, if nobody has altered it",
                                  S_ISLNK(status.st_mode) ? "%s/%s is a link"
                                                          : "%s/%s can be altered by other users",
                                  path, name);
        return 0;
}

static int check_owners(int folder, const char *path, struct image_error *error)
{
        CLEANUP(fd_closep) int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        CLEANUP(dir_closep) DIR *dir = again < 0 ? NULL : fdopendir(again);
        struct dirent *entry;
        int r = 0;

        if (!dir)
                return image_fail_file(error, -errno, "read", path);
        (void)TAKE_FD(again);
        while (r == 0 && (entry = readdir(dir))) /* "." is one of them */
                if (strcmp(entry->d_name, "..") != 0)
                        r = check_owner(folder, entry->d_name, path, error);
        return r;
}

int image_directory_check_owners(const struct image_directory *directory, struct image_error *error)
{
        return check_owners(directory->fd, directory->path, error);
}

int image_directory_open_criu(const struct image_directory *directory, struct image_error *error)
{
        CLEANUP(fd_closep) int folder = -1;
        char path[PATH_MAX + sizeof(IMAGE_CRIU_FOLDER)];
        int r;

        snprintf(path, sizeof(path), "%s/" IMAGE_CRIU_FOLDER, directory->path);
        folder = openat(directory->fd, IMAGE_CRIU_FOLDER,
                        O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (folder < 0)
                return image_fail_file(error, -errno, "open", path);
        r = check_owners(folder, path, error);
        return r < 0 ? r : TAKE_FD(folder);
}
