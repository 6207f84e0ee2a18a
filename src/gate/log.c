/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "gate/child.h"
#include "gate/settings.h"

#define LINE_MAX_BYTES 512
#define SAID_MAX       32

static struct {
        pthread_mutex_t lock;
        size_t n_said;
        uint64_t said[SAID_MAX]; /* hashes of what the user has been told */
} log_state = { .lock = PTHREAD_MUTEX_INITIALIZER };

static uint64_t hash(const char *text)
{
        uint64_t hash = 0xcbf29ce484222325ull; /* FNV-1a */

        for (; *text; text++)
                hash = (hash ^ (unsigned char)*text) * 0x100000001b3ull;
        return hash;
}

static bool is_new(const char *line)
{
        uint64_t mine = hash(line);
        bool is_new = true;

        pthread_mutex_lock(&log_state.lock);
        for (size_t i = 0; i < log_state.n_said; i++)
                is_new = is_new && log_state.said[i] != mine;
        if (log_state.n_said == SAID_MAX)
                is_new = false; /* a program that fails in a loop is told no more */
        if (is_new)
                log_state.said[log_state.n_said++] = mine;
        pthread_mutex_unlock(&log_state.lock);
        return is_new;
}

__attribute__((format(printf, 2, 0))) static size_t format_line(char *line, const char *format,
                                                                va_list args)
{
        size_t n = (size_t)snprintf(line, LINE_MAX_BYTES, "openvgpu[%d]: ", getpid());
        int added = vsnprintf(line + n, LINE_MAX_BYTES - n - 1, format, args);

        n += added > 0 ? (size_t)added : 0;
        if (n > LINE_MAX_BYTES - 2)
                n = LINE_MAX_BYTES - 2;
        line[n++] = '\n';
        line[n] = '\0';
        return n;
}

static void write_to_file(const char *line, size_t size)
{
        CLEANUP(fd_closep) int fd = -1;

        if (!settings.log[0])
                return;
        /* Opened for each line: a descriptor kept open would be one more that the guest may close. */
        fd = open(settings.log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        if (fd >= 0 && write(fd, line, size) < 0)
                return;
}

void log_to_user(const char *format, ...)
{
        int saved_errno = errno;
        char line[LINE_MAX_BYTES];
        va_list args;
        size_t size;

        va_start(args, format);
        size = format_line(line, format, args);
        va_end(args);
        if (is_new(line)) {
                write_to_file(line, size);
                if (write(STDERR_FILENO, line, size) < 0)
                        errno = saved_errno;
        }
        errno = saved_errno;
}

void log_write(const char *format, ...)
{
        int saved_errno = errno;
        char line[LINE_MAX_BYTES];
        va_list args;
        size_t size;

        va_start(args, format);
        size = format_line(line, format, args);
        va_end(args);
        write_to_file(line, size);
        errno = saved_errno;
}

void log_forget(void)
{
        pthread_mutex_init(&log_state.lock, NULL);
        log_state.n_said = 0;
}
