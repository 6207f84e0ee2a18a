/* SPDX-License-Identifier: Apache-2.0 */
#include "exporter/token.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define RANDOM_BYTES 32

bool token_parse(struct token *ret_token, const char *text)
{
        size_t size = strcspn(text, "\r\n");

        if (size < TOKEN_MIN || size > TOKEN_MAX || text[size + strspn(text + size, "\r\n")])
                return false;
        for (size_t i = 0; i < size; i++)
                if (text[i] <= ' ' || text[i] > '~')
                        return false;
        *ret_token = (struct token){ .size = size };
        memcpy(ret_token->text, text, size);
        return true;
}

/* What is compared is as long for all, so that time tells nothing of where two differ. */
static bool is_equal(const struct token *one, const struct token *other)
{
        unsigned int difference = one->size != other->size;

        for (size_t i = 0; i < sizeof(one->text); i++)
                difference |= (unsigned char)one->text[i] ^ (unsigned char)other->text[i];
        return difference == 0;
}

bool token_matches(const struct token *token, const char *authorization)
{
        static const char scheme[] = "Bearer ";
        struct token given;
        bool is_right;

        if (!authorization || strncasecmp(authorization, scheme, sizeof(scheme) - 1) != 0)
                return false;
        if (!token_parse(&given, authorization + sizeof(scheme) - 1))
                return false;
        is_right = is_equal(token, &given);
        explicit_bzero(&given, sizeof(given));
        return is_right;
}

/* Its file. */

static int make(const char *path)
{
        unsigned char bytes[RANDOM_BYTES];
        char text[2 * RANDOM_BYTES + 2];
        int fd, r = 0;

        if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
                return -EIO;
        for (size_t i = 0; i < RANDOM_BYTES; i++)
                (void)snprintf(text + 2 * i, 3, "%02x", bytes[i]);
        memcpy(text + sizeof(text) - 2, "\n", 2);
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return -errno;
        if (write(fd, text, sizeof(text) - 1) != sizeof(text) - 1)
                r = -EIO;
        if (close(fd) < 0 && r == 0)
                r = -errno;
        explicit_bzero(text, sizeof(text));
        explicit_bzero(bytes, sizeof(bytes));
        if (r < 0)
                (void)unlink(path);
        return r;
}

static int open_or_make(const char *path)
{
        const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
        int fd = open(path, flags), r;

        if (fd >= 0 || errno != ENOENT)
                return fd < 0 ? -errno : fd;
        r = make(path);
        if (r < 0 && r != -EEXIST)
                return r;
        fd = open(path, flags);
        return fd < 0 ? -errno : fd;
}

/* systemd hands credentials over in a folder of the unit's own, with a group that stands for an access list. */
static bool is_credential(const char *path)
{
        const char *folder = getenv("CREDENTIALS_DIRECTORY");
        size_t n = folder ? strlen(folder) : 0;

        return n > 0 && strncmp(path, folder, n) == 0 && path[n] == '/';
}

static bool others_may(const struct stat *st, const char *path)
{
        mode_t mode = st->st_mode & (S_IRWXG | S_IRWXO);

        if (st->st_uid != 0 && st->st_uid != geteuid())
                return true;
        return mode != 0 && !(mode == S_IRGRP && st->st_uid == 0 && is_credential(path));
}

static int read_token(int fd, struct token *ret_token)
{
        char text[TOKEN_MAX + 3] = "";
        ssize_t n = read(fd, text, sizeof(text) - 1);
        int r = n < 0 ? -errno : 0;

        if (r == 0 && (strlen(text) != (size_t)n || !token_parse(ret_token, text)))
                r = -EINVAL;
        explicit_bzero(text, sizeof(text));
        return r;
}

int token_load(struct token *ret_token, const char *path, char *why, size_t room)
{
        int fd = open_or_make(path);
        struct stat st;
        int r = fd < 0 ? fd : fstat(fd, &st) < 0 ? -errno : 0;

        if (r == 0 && !S_ISREG(st.st_mode))
                r = -EINVAL;
        if (r == 0 && others_may(&st, path)) {
                r = -EACCES;
                snprintf(why, room,
                         "%s: others may read or change the token; try: chown it, and chmod 600",
                         path);
        } else {
                if (r == 0)
                        r = read_token(fd, ret_token);
                if (r == -EINVAL)
                        snprintf(why, room,
                                 "%s: has no token: one line of %d to %d printable characters",
                                 path, TOKEN_MIN, TOKEN_MAX);
                else if (r < 0)
                        snprintf(why, room, "%s: %s", path, strerrordesc_np(-r));
        }
        if (fd >= 0)
                fd_close(fd);
        return r;
}
