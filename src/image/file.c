/* SPDX-License-Identifier: Apache-2.0 */
#include "image/file.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>

#include "base/cleanup.h"

static void fill_with_signal(sigset_t *size_signal)
{
        sigemptyset(size_signal);
        sigaddset(size_signal, SIGXFSZ);
}

void image_file_block_signal(sigset_t *ret_before)
{
        sigset_t size_signal;

        fill_with_signal(&size_signal);
        pthread_sigmask(SIG_BLOCK, &size_signal, ret_before);
}

void image_file_restore_signal(const sigset_t *before)
{
        const struct timespec none = { 0 };
        sigset_t size_signal;

        fill_with_signal(&size_signal);
        if (!sigismember(before, SIGXFSZ))
                while (sigtimedwait(&size_signal, NULL, &none) == SIGXFSZ)
                        ;
        pthread_sigmask(SIG_SETMASK, before, NULL);
}

static int write_all(int fd, const char *bytes, size_t size)
{
        while (size > 0) {
                ssize_t n = write(fd, bytes, size);

                if (n < 0 && errno != EINTR)
                        return -errno;
                bytes += n > 0 ? n : 0;
                size -= n > 0 ? (size_t)n : 0;
        }
        return 0;
}

int image_file_write(int directory, const char *name, const struct iovec *parts, size_t n)
{
        CLEANUP(fd_closep)
        int fd = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        sigset_t before;
        int r = fd < 0 ? -errno : 0;

        image_file_block_signal(&before);
        for (size_t i = 0; r == 0 && i < n; i++)
                r = write_all(fd, parts[i].iov_base, parts[i].iov_len);
        image_file_restore_signal(&before);
        if (r == 0 && fsync(fd) < 0)
                r = -errno;
        return r;
}

ssize_t image_file_read(int fd, void *bytes, size_t size)
{
        size_t done = 0;

        while (done < size) {
                ssize_t n = read(fd, (char *)bytes + done, size - done);

                if (n < 0 && errno != EINTR)
                        return -errno;
                if (n == 0)
                        break;
                done += n > 0 ? (size_t)n : 0;
        }
        return (ssize_t)done;
}
