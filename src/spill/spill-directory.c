/* SPDX-License-Identifier: Apache-2.0 */
#include "spill/spill-directory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "spill/spill-file.h"

static int check_rights(const char *path, const struct stat *status, struct failure *failure)
{
        if (status->st_uid != 0 && status->st_uid != geteuid())
                return failure_set(failure, -EPERM, "Failed",
                                   "choose a directory of root or of the user of vgpud",
                                   "%.200s belongs to user %u, who could read the memory of vGPUs",
                                   path, status->st_uid);
        if (status->st_mode & 0077)
                return failure_set(failure, -EPERM, "Failed",
                                   "take the rights from them (chmod 0700), or choose another",
                                   "%.200s can be entered by other users (mode %04o), who must not "
                                   "read the memory of vGPUs",
                                   path, status->st_mode & 07777);
        return 0;
}

static int check_files(int directory, const char *path, struct failure *failure)
{
        CLEANUP(fd_closep) int fd = -1;
        int r = spill_file_new(&fd, directory);

        return r < 0 ? failure_set(failure, r, "Failed", "make it writable, or choose another",
                                   "no file can be made in %.200s: %s", path, strerror(-r))
                     : 0;
}

int spill_directory_open(int *ret_fd, const char *path, struct failure *failure)
{
        CLEANUP(fd_closep) int fd = -1;
        struct stat status;
        int r;

        if (mkdir(path, 0700) < 0 && errno != EEXIST)
                return failure_set(failure, -errno, "Failed",
                                   "make it, or choose another directory", "cannot make %.200s: %s",
                                   path, strerror(errno));
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &status) < 0)
                return failure_set(failure, -errno, "Failed", "choose another directory",
                                   "cannot open the directory %.200s: %s", path, strerror(errno));
        r = check_rights(path, &status, failure);
        if (r == 0)
                r = check_files(fd, path, failure);
        if (r == 0)
                *ret_fd = TAKE_FD(fd);
        return r;
}
