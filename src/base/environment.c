/* SPDX-License-Identifier: Apache-2.0 */
#include "base/environment.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define ENVIRONMENT_MAX ((size_t)1 << 20)

/* NUL between, and two at the end. */
char *environment_read(pid_t pid)
{
        CLEANUP(freep) char *text = calloc(1, ENVIRONMENT_MAX + 2);
        CLEANUP(fd_closep) int fd = -1;
        size_t size = 0;
        char path[32];
        ssize_t n;

        snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || !text)
                return NULL;
        while (size < ENVIRONMENT_MAX && (n = read(fd, text + size, ENVIRONMENT_MAX - size)) > 0)
                size += (size_t)n;
        return TAKE(text);
}

const char *environment_get(const char *environment, const char *name)
{
        size_t length = strlen(name);

        for (const char *one = environment; *one; one += strlen(one) + 1)
                if (strncmp(one, name, length) == 0 && one[length] == '=')
                        return one + length + 1;
        return NULL;
}
