/* SPDX-License-Identifier: Apache-2.0 */
#include "base/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/paths.h"

#define LINKS_MAX 40 /* as many as the kernel follows */

bool trust_user(uid_t uid)
{
        return uid == 0 || uid == geteuid();
}

bool trust_peer(int socket)
{
        struct ucred peer;
        socklen_t size = sizeof(peer);

        if (paths_run_is_given())
                return true;
        return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
               trust_user(peer.uid);
}

/* What is left of a path, and where it begins. */
struct walk {
        int directory;
        char rest[PATHS_MAX];
        unsigned int n_links;
        bool is_given;
};

/* Splits the first name off; "" at the end. */
static void next_name(struct walk *walk, char name[PATHS_MAX])
{
        const char *begin = walk->rest + strspn(walk->rest, "/");
        size_t length = strcspn(begin, "/");

        memcpy(name, begin, length);
        name[length] = '\0';
        begin += length;
        begin += strspn(begin, "/");
        memmove(walk->rest, begin, strlen(begin) + 1);
}

static int enter(struct walk *walk, int directory)
{
        fd_close(walk->directory);
        walk->directory = directory;
        return directory < 0 ? -errno : 0;
}

static int begin(struct walk *walk, const char *path)
{
        if (snprintf(walk->rest, sizeof(walk->rest), "%s", path) >= (int)sizeof(walk->rest))
                return -ENAMETOOLONG;
        return enter(walk, open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

/* The rest goes on behind what the link says. */
static int follow(struct walk *walk, int link, const struct stat *status)
{
        char target[PATHS_MAX], path[2 * PATHS_MAX];
        ssize_t n;

        if (!trust_user(status->st_uid))
                return -EACCES;
        if (++walk->n_links > LINKS_MAX)
                return -ELOOP;
        n = readlinkat(link, "", target, sizeof(target) - 1);
        if (n < 0)
                return -errno;
        target[n] = '\0';
        snprintf(path, sizeof(path), "%s/%s", target, walk->rest);
        if (*target == '/')
                return begin(walk, path);
        if (strlen(path) >= sizeof(walk->rest))
                return -ENAMETOOLONG;
        strcpy(walk->rest, path);
        return 0;
}

/* In a sticky one, as /tmp, nobody can replace what belongs to others. */
static bool is_safe(const struct walk *walk, const struct stat *status)
{
        bool is_open = status->st_mode & S_IWOTH;

        if (walk->is_given)
                return true;
        if (!trust_user(status->st_uid))
                return false;
        return !is_open || (S_ISDIR(status->st_mode) && (status->st_mode & S_ISVTX));
}

/* The server of a FUSE file system says whose its files are. */
static bool is_fuse(int fd)
{
        struct statfs kind;

        return fstatfs(fd, &kind) < 0 || kind.f_type == FUSE_SUPER_MAGIC;
}

static int open_last(const struct walk *walk, const char *name, const struct stat *expected)
{
        CLEANUP(fd_closep) int fd = -1;
        struct stat status;

        if (!S_ISREG(expected->st_mode) || !is_safe(walk, expected))
                return -EACCES;
        fd = openat(walk->directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &status) < 0)
                return -errno;
        if (status.st_dev != expected->st_dev || status.st_ino != expected->st_ino || is_fuse(fd))
                return -EACCES;
        return TAKE_FD(fd);
}

/* Positive, or 0: the descriptor; -EAGAIN: there is more to walk. */
static int take_step(struct walk *walk)
{
        CLEANUP(fd_closep) int next = -1;
        char name[PATHS_MAX];
        struct stat status;
        int r;

        next_name(walk, name);
        next = openat(walk->directory, *name ? name : ".", O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0 || fstat(next, &status) < 0)
                return -errno;
        if (S_ISLNK(status.st_mode)) {
                r = follow(walk, next, &status);
                return r < 0 ? r : -EAGAIN;
        }
        if (*walk->rest == '\0')
                return open_last(walk, name, &status);
        if (!S_ISDIR(status.st_mode))
                return -ENOTDIR;
        if (!is_safe(walk, &status))
                return -EACCES;
        r = enter(walk, TAKE_FD(next));
        return r < 0 ? r : -EAGAIN;
}

int trust_open(const char *path, bool is_given)
{
        struct walk walk = { .directory = -1, .is_given = is_given };
        int r = begin(&walk, path);

        if (r == 0)
                do
                        r = take_step(&walk);
                while (r == -EAGAIN);
        fd_close(walk.directory);
        return r;
}
