/* SPDX-License-Identifier: Apache-2.0 */
#include "exporter/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define FILE_MAX 65536

void tls_deinit(struct tls *tls)
{
        if (tls->key)
                explicit_bzero(tls->key, strlen(tls->key));
        free(tls->certificate);
        free(tls->key);
        *tls = (struct tls){ 0 };
}

/* All of it, as text. */
static int read_file(int fd, char **ret_text)
{
        CLEANUP(freep) char *text = calloc(1, FILE_MAX + 1);
        size_t size = 0;
        ssize_t n = 1;

        if (!text)
                return -ENOMEM;
        while (n > 0 && size < FILE_MAX) {
                n = read(fd, text + size, FILE_MAX - size);
                if (n < 0 && errno != EINTR)
                        return -errno;
                size += n > 0 ? (size_t)n : 0;
        }
        if (size == FILE_MAX || strlen(text) != size)
                return -EINVAL;
        *ret_text = TAKE(text);
        return 0;
}

/* What is asked is the file that is read, whatever its name means meanwhile. */
static int load(char **ret_text, const char *path, const char *what, char *why, size_t room)
{
        CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        bool is_key = strcmp(what, "PRIVATE KEY") == 0;
        struct stat st;
        int r = fd < 0 || fstat(fd, &st) < 0 ? -errno : 0;

        if (r == 0 && !S_ISREG(st.st_mode))
                r = -EINVAL;
        if (r == 0)
                r = read_file(fd, ret_text);
        if (r == -EINVAL || (r == 0 && !strstr(*ret_text, what))) {
                snprintf(why, room, "%s: has no %s in PEM", path,
                         is_key ? "private key" : "certificate");
                return -EINVAL;
        }
        if (r == 0 && is_key && (st.st_mode & S_IRWXO)) {
                snprintf(why, room, "%s: others may read the key; try: chmod 600", path);
                return -EACCES;
        }
        if (r < 0)
                snprintf(why, room, "%s: %s", path, strerrordesc_np(-r));
        return r;
}

int tls_load(struct tls *ret_tls, const char *certificate_path, const char *key_path, char *why,
             size_t room)
{
        struct tls tls = { .certificate = NULL };
        int r = load(&tls.certificate, certificate_path, "CERTIFICATE", why, room);

        if (r == 0)
                r = load(&tls.key, key_path, "PRIVATE KEY", why, room);
        if (r < 0) {
                tls_deinit(&tls);
                return r;
        }
        *ret_tls = tls;
        return 0;
}
