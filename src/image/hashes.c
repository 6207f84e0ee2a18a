/* SPDX-License-Identifier: Apache-2.0 */
#include "image/hashes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/trust.h"
#include "image/checksum.h"
#include "image/file.h"

#define HINT_FULL "dump without a parent: that image can be one again"

void image_hashes_deinit(struct image_hashes *hashes)
{
        free(hashes->values);
        explicit_bzero(hashes, sizeof(*hashes));
}

int image_hashes_set_size(struct image_hashes *hashes, size_t n)
{
        free(hashes->values);
        hashes->n = 0;
        hashes->values = calloc(n + 1, sizeof(*hashes->values));
        if (!hashes->values)
                return -ENOMEM;
        for (; hashes->n < n; hashes->n++)
                hashes->values[hashes->n] = HASH_UNKNOWN;
        return 0;
}

/* What the file has, one behind the other. */
static uint32_t list_parts(struct image_hashes *hashes, struct iovec parts[2])
{
        parts[0] = (struct iovec){ &hashes->key, sizeof(hashes->key) };
        parts[1] = (struct iovec){ hashes->values, hashes->n * sizeof(*hashes->values) };
        return checksum_add(checksum_add(0, parts[0].iov_base, parts[0].iov_len), parts[1].iov_base,
                            parts[1].iov_len);
}

int image_hashes_write(struct image_hashes *hashes, int directory, const char *where,
                       uint32_t *ret_checksum, struct image_error *error)
{
        struct iovec parts[2];
        char path[512];
        int r;

        *ret_checksum = list_parts(hashes, parts);
        r = image_file_write(directory, IMAGE_HASHES_FILE, parts, 2);
        if (r == 0 && fault_point("image.hashes"))
                r = -EIO;
        snprintf(path, sizeof(path), "%s/" IMAGE_HASHES_FILE, where);
        return r < 0 ? image_fail_file(error, r, "write", path) : 0;
}

static int check_file(int fd, const char *path, const struct image_hashes *hashes,
                      struct image_error *error)
{
        struct stat status;

        if (fstat(fd, &status) < 0)
                return image_fail_file(error, -errno, "look at", path);
        if (!S_ISREG(status.st_mode) ||
            (uint64_t)status.st_size != sizeof(hashes->key) + hashes->n * sizeof(*hashes->values))
                return image_fail(error, -EBADMSG, HINT_FULL,
                                  "%s is altered: it is no file of %zu hashes", path, hashes->n);
        if (!trust_user(status.st_uid))
                return image_fail(error, -EPERM, HINT_FULL,
                                  "%s belongs to user %u, who is neither root nor you", path,
                                  status.st_uid);
        if (status.st_mode & 077)
                return image_fail(error, -EPERM, HINT_FULL,
                                  "%s is open to other users, who could make changes that a "
                                  "comparison with it does not see",
                                  path);
        return 0;
}

int image_hashes_read(struct image_hashes *ret_hashes, int directory, const char *where, size_t n,
                      uint32_t checksum, struct image_error *error)
{
        CLEANUP(fd_closep)
        int fd = openat(directory, IMAGE_HASHES_FILE,
                        O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        struct iovec parts[2];
        char path[512];
        int r;

        snprintf(path, sizeof(path), "%s/" IMAGE_HASHES_FILE, where);
        if (fd < 0)
                return image_fail_file(error, -errno, "open", path);
        if (image_hashes_set_size(ret_hashes, n) < 0)
                return image_fail(error, -ENOMEM, "", "not enough memory for %zu hashes", n);
        r = check_file(fd, path, ret_hashes, error);
        if (r < 0)
                return r;
        (void)list_parts(ret_hashes, parts);
        for (size_t i = 0; i < 2; i++) {
                ssize_t n_read = image_file_read(fd, parts[i].iov_base, parts[i].iov_len);

                if (n_read < 0)
                        return image_fail_file(error, (int)n_read, "read", path);
        }
        if (list_parts(ret_hashes, parts) != checksum)
                return image_fail(error, -EBADMSG, HINT_FULL,
                                  "%s is altered: its checksum is not that of the manifest", path);
        return 0;
}
