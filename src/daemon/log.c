/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/log.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static struct {
        enum log_level level;
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

void log_init(enum log_level level)
{
        options.level = level;
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

void log_event(enum log_level level, const char *message, const char *fields, ...)
{
        char text[1024];
        va_list args;

        if (level > options.level)
                return;

        va_start(args, fields);
        vsnprintf(text, sizeof(text), fields, args);
        va_end(args);

        if (options.is_journal)
                fprintf(stderr, "<%d>%s%s%s\n", (int)level, message, *text ? " " : "", text);
        else
                fprintf(stderr, "vgpud: %s%s%s\n", message, *text ? " " : "", text);
}

const char *log_quote(char quoted[LOG_QUOTED_MAX], const char *text)
{
        size_t n = 0;

        quoted[n++] = '"';
        for (; *text && n < LOG_QUOTED_MAX - 2; text++)
                quoted[n++] = isprint((unsigned char)*text) && *text != '"' ? *text : '?';
        quoted[n++] = '"';
        quoted[n] = '\0';
        return quoted;
}
