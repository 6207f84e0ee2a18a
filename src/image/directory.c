/* SPDX-License-Identifier: Apache-2.0 */
#include "image/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "image/file.h"

#define DIRECTORY_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC)

static void dir_closep(DIR **dir)
{
        if (*dir)
                closedir(*dir);
}

static int set_path(struct image_directory *directory, const char *path, struct image_error *error)
{
        size_t length = strlen(path);

        *directory = (struct image_directory){ .fd = -1, .parent = -1 };
        while (length > 1 && path[length - 1] == '/')
                length--;
        if (length == 0 || length >= sizeof(directory->path))
                return image_fail(error, -ENAMETOOLONG, "", "'%.64s' is no name for a directory",
                                  path);
        memcpy(directory->path, path, length);
        snprintf(directory->partial, sizeof(directory->partial), "%s.partial", directory->path);
        return 0;
}

static int open_parent(struct image_directory *directory, struct image_error *error)
{
        char path[PATH_MAX];
        char *slash;

        snprintf(path, sizeof(path), "%s", directory->path);
        slash = strrchr(path, '/');
        if (!slash)
                strcpy(path, ".");
        else
                slash[slash == path] = '\0';
        directory->parent = open(path, DIRECTORY_FLAGS);
        return directory->parent < 0 ? image_fail_file(error, -errno, "open", path) : 0;
}

/* Removing: a directory, the files in it, and one level of directories with files. */

static void remove_tree(int at, const char *name, unsigned int levels)
{
        CLEANUP(dir_closep) DIR *dir = NULL;
        int fd = openat(at, name, DIRECTORY_FLAGS | O_NOFOLLOW);
        struct dirent *entry;

        dir = fd >= 0 ? fdopendir(fd) : NULL;
        if (!dir)
                fd_close(fd);
        while (dir && (entry = readdir(dir))) {
                if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
                        continue;
                if (unlinkat(dirfd(dir), entry->d_name, 0) < 0 && levels > 0)
                        remove_tree(dirfd(dir), entry->d_name, levels - 1);
        }
        (void)unlinkat(at, name, AT_REMOVEDIR);
}

static const char *base_name(const char *path)
{
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

static void remove_partial(const struct image_directory *directory)
{
        remove_tree(directory->parent, base_name(directory->partial), 1);
}

/* What is there already? An empty directory may be: renaming replaces it. */
static int check_free(const struct image_directory *directory, struct image_error *error)
{
        const char *name = base_name(directory->path);
        CLEANUP(dir_closep) DIR *dir = NULL;
        struct dirent *entry;
        struct stat status;
        int fd;

        if (fstatat(directory->parent, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
                return errno == ENOENT ? 0
                                       : image_fail_file(error, -errno, "make", directory->path);
        fd = openat(directory->parent, name, DIRECTORY_FLAGS | O_NOFOLLOW);
        dir = fd >= 0 ? fdopendir(fd) : NULL;
        while (dir && (entry = readdir(dir)))
                if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
                        break;
        if (!dir || entry)
                return image_fail(error, -EEXIST, "choose a new name; nothing is overwritten",
                                  "%s exists already", directory->path);
        return 0;
}

/* The lock on it tells one that is being written from one that a killed dump has left. */
static int take_partial(struct image_directory *directory, struct image_error *error)
{
        const char *name = base_name(directory->partial);

        for (int attempt = 0; attempt < 2; attempt++) {
                bool is_new = mkdirat(directory->parent, name, 0700) == 0;

                if (!is_new && errno != EEXIST)
                        break;
                directory->fd = openat(directory->parent, name, DIRECTORY_FLAGS | O_NOFOLLOW);
                if (directory->fd < 0)
                        break;
                if (flock(directory->fd, LOCK_EX | LOCK_NB) < 0)
                        return image_fail(error, -EBUSY, "wait for it, or choose another name",
                                          "%s: another dump is writing this image",
                                          directory->partial);
                if (is_new)
                        return 0;
                remove_partial(directory);
                directory->fd = fd_close(directory->fd);
        }
        return image_fail_file(error, -errno, "make", directory->partial);
}

int image_directory_begin(struct image_directory *ret_directory, const char *path,
                          struct image_error *error)
{
        int r = set_path(ret_directory, path, error);

        if (r == 0)
                r = open_parent(ret_directory, error);
        if (r == 0)
                r = check_free(ret_directory, error);
        if (r == 0)
                r = take_partial(ret_directory, error);
        if (r < 0)
                image_directory_close(ret_directory);
        return r;
}

void image_directory_close(struct image_directory *directory)
{
        directory->fd = fd_close(directory->fd);
        directory->parent = fd_close(directory->parent);
}

void image_directory_abandon(struct image_directory *directory)
{
        if (directory->fd < 0)
                return;
        remove_partial(directory);
        image_directory_close(directory);
}

int image_directory_commit(struct image_directory *directory, const struct image_manifest *manifest,
                           struct image_error *error)
{
        CLEANUP(freep) char *text = image_manifest_format(manifest);
        const struct iovec part = { text, text ? strlen(text) : 0 };
        int r = text ? image_file_write(directory->fd, IMAGE_MANIFEST_FILE, &part, 1) : -ENOMEM;

        if (r == 0 && fault_point("image.commit"))
                r = -EIO;
        if (r == 0 && fsync(directory->fd) < 0)
                r = -errno;
        if (r < 0)
                return image_fail_file(error, r, "write the manifest of", directory->partial);
        if (renameat(directory->parent, base_name(directory->partial), directory->parent,
                     base_name(directory->path)) < 0)
                return image_fail_file(error, -errno, "rename to", directory->path);
        (void)fsync(directory->parent); /* it has its name, whatever this says */
        return 0;
}

/* Opening. */

static int read_manifest(const struct image_directory *directory, char **ret_text, size_t *ret_size)
{
        CLEANUP(fd_closep)
        int fd = openat(directory->fd, IMAGE_MANIFEST_FILE,
                        O_RDONLY | O_CLOEXEC | O_NOFOLLOW |
                                O_NONBLOCK); /* not for a pipe's writer */
        CLEANUP(freep) char *text = NULL;
        struct stat status;
        ssize_t size;

        if (fd < 0 || fstat(fd, &status) < 0)
                return -errno;
        if (!S_ISREG(status.st_mode) || (size_t)status.st_size > IMAGE_MANIFEST_MAX)
                return -EBADMSG;
        text = malloc((size_t)status.st_size + 1);
        if (!text)
                return -ENOMEM;
        size = image_file_read(fd, text, (size_t)status.st_size);
        if (size < 0)
                return (int)size;
        *ret_text = TAKE(text);
        *ret_size = (size_t)size;
        return 0;
}

static int fail_open(const struct image_directory *directory, int code, struct image_error *error)
{
        if (code == -ENOENT && access(directory->partial, F_OK) == 0)
                return image_fail(error, -ENOENT, "dump again, or load an older image",
                                  "%s is not there, only %s: that dump was never finished",
                                  directory->path, directory->partial);
        if (code == -ENOENT)
                return image_fail(error, code, "name the directory of an image",
                                  "cannot open the image %s: %s", directory->path,
                                  strerror(ENOENT));
        if (code == -ENOTDIR)
                return image_fail(error, code, "name the directory of an image",
                                  "%s is no directory", directory->path);
        return image_fail_file(error, code, "open the image", directory->path);
}

int image_directory_open(struct image_directory *ret_directory, const char *path,
                         struct image_manifest *ret_manifest, struct image_error *error)
{
        CLEANUP(freep) char *text = NULL;
        char where[PATH_MAX];
        size_t size = 0;
        int r = set_path(ret_directory, path, error);

        if (r < 0)
                return r;
        ret_directory->fd = open(ret_directory->path, DIRECTORY_FLAGS);
        if (ret_directory->fd < 0)
                return fail_open(ret_directory, -errno, error);
        snprintf(where, sizeof(where), "%s/" IMAGE_MANIFEST_FILE, ret_directory->path);
        r = read_manifest(ret_directory, &text, &size);
        if (r == -ENOENT)
                r = image_fail(error, r, "name the directory of a complete image",
                               "%s has no manifest: it is no image, or one that was never finished",
                               ret_directory->path);
        else if (r == -EBADMSG)
                r = image_fail(error, r, "name the directory of an image",
                               "%s is no manifest: it is no plain file, or too large", where);
        else if (r < 0)
                r = image_fail_file(error, r, "read", where);
        if (r == 0)
                r = image_manifest_parse(ret_manifest, where, text, size, error);
        if (r < 0)
                image_directory_close(ret_directory);
        return r;
}
