/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "daemon/log-json.h"
#include "daemon/log-limit.h"

static struct {
        _Atomic enum log_level level; /* changes when the configuration is read again */
        _Atomic bool is_json;         /* likewise */
        int is_journal;
} options = { .level = LOG_LEVEL_INFO };

static const struct {
        const char *name;
        enum log_level level;
} levels[] = {
        { "error", LOG_LEVEL_ERROR },   { "warning", LOG_LEVEL_WARNING },
        { "notice", LOG_LEVEL_NOTICE }, { "info", LOG_LEVEL_INFO },
        { "debug", LOG_LEVEL_DEBUG },
};

/* systemd names the journal's socket by its device and inode, so that a redirection is noticed. */
static int stderr_is_journal(void)
{
        const char *stream = getenv("JOURNAL_STREAM");
        unsigned long long device, inode;
        struct stat status;

        return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
               fstat(2, &status) == 0 && status.st_dev == device && status.st_ino == inode;
}

void log_init(enum log_level level, bool is_json)
{
        options.level = level;
        options.is_json = is_json;
        options.is_journal = stderr_is_journal();
}

int log_level_parse(enum log_level *ret_level, const char *name)
{
        for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
                if (strcmp(name, levels[i].name) == 0) {
                        *ret_level = levels[i].level;
                        return 0;
                }
        return -EINVAL;
}

static const char *get_name(enum log_level level)
{
        size_t i = 0;

        while (levels[i].level != level)
                i++;
        return levels[i].name;
}

static void write_json(enum log_level level, const char *message, const char *fields)
{
        char line[LOG_JSON_MAX];

        (void)log_json_format(line, clock_now(CLOCK_REALTIME) / 1000000, get_name(level), message,
                              fields);
        if (options.is_journal)
                fprintf(stderr, "<%d>%s\n", (int)level, line);
        else
                fprintf(stderr, "%s\n", line);
}

__attribute__((format(printf, 3, 0))) static void
write_event(enum log_level level, const char *message, const char *fields, va_list args)
{
        char text[1024];

        vsnprintf(text, sizeof(text), fields, args);
        if (options.is_json)
                write_json(level, message, text);
        else if (options.is_journal)
                fprintf(stderr, "<%d>%s%s%s\n", (int)level, message, *text ? " " : "", text);
        else
                fprintf(stderr, "vgpud: %s%s%s\n", message, *text ? " " : "", text);
}

void log_event(enum log_level level, const char *message, const char *fields, ...)
{
        va_list args;

        if (level > options.level)
                return;
        va_start(args, fields);
        write_event(level, message, fields, args);
        va_end(args);
}

/* Says so, once, when lines are left out, and afterwards how many. */
static bool is_limited(uid_t user)
{
        return user != 0 && user != geteuid();
}

static bool may_write(uid_t user)
{
        static struct log_limit limit;
        enum log_limit_answer answer;
        uint32_t n_left_out;

        if (!is_limited(user))
                return true;
        answer = log_limit_take(&limit, user, clock_now(CLOCK_MONOTONIC), &n_left_out);
        if (n_left_out > 0)
                log_event(LOG_LEVEL_NOTICE, "left out lines about what a user did",
                          "uid=%u lines=%u", user, n_left_out);
        if (answer == LOG_LIMIT_FULL)
                log_event(LOG_LEVEL_NOTICE, "leaving out more lines about what a user does",
                          "uid=%u limit=%d seconds=%d", user, LOG_LIMIT_LINES, LOG_LIMIT_SECONDS);
        return answer == LOG_LIMIT_WRITE;
}

void log_event_of(uid_t user, enum log_level level, const char *message, const char *fields, ...)
{
        va_list args;

        if (level > options.level || !may_write(user))
                return;
        va_start(args, fields);
        write_event(level, message, fields, args);
        va_end(args);
}

static bool program_may_write(const struct log_program *program)
{
        static struct log_limit limit; /* of vGPUs, by their numbers */
        enum log_limit_answer answer;
        uint32_t n_left_out;

        if (is_limited(program->user))
                return may_write(program->user);
        answer = log_limit_take(&limit, program->vgpu, clock_now(CLOCK_MONOTONIC), &n_left_out);
        if (n_left_out > 0)
                log_event(LOG_LEVEL_NOTICE, "left out lines about programs of a vGPU",
                          "vgpu=%s lines=%u", program->name, n_left_out);
        if (answer == LOG_LIMIT_FULL)
                log_event(LOG_LEVEL_NOTICE, "leaving out more lines about programs of a vGPU",
                          "vgpu=%s limit=%d seconds=%d", program->name, LOG_LIMIT_LINES,
                          LOG_LIMIT_SECONDS);
        return answer == LOG_LIMIT_WRITE;
}

void log_event_of_program(const struct log_program *program, enum log_level level,
                          const char *message, const char *fields, ...)
{
        va_list args;

        if (level > options.level || !program_may_write(program))
                return;
        va_start(args, fields);
        write_event(level, message, fields, args);
        va_end(args);
}

const char *log_quote(char quoted[LOG_QUOTED_MAX], const char *text)
{
        size_t n = 0;

        quoted[n++] = '"';
        text_clean(quoted + n, LOG_QUOTED_MAX - 2, text);
        for (; quoted[n]; n++)
                if (quoted[n] == '"')
                        quoted[n] = '?';
        quoted[n++] = '"';
        quoted[n] = '\0';
        return quoted;
}
