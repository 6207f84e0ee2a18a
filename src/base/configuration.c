/* SPDX-License-Identifier: Apache-2.0 */
#include "base/configuration.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

/* Far more than there is to say; a longer one is no configuration. */
#define FILE_MAX_BYTES 65536

/* Of a key, and of a section, with its NUL. */
#define NAME_MAX_BYTES 128

static void file_close(FILE *file)
{
        if (file)
                (void)fclose(file);
}
DEFINE_CLEANUP(FILE *, file_close);

const char *configuration_where(char text[CONFIGURATION_WHERE_MAX],
                                const struct configuration_place *place)
{
        int n;

        if (!place->file) {
                snprintf(text, CONFIGURATION_WHERE_MAX, "--%s", place->key);
                return text;
        }
        n = snprintf(text, CONFIGURATION_WHERE_MAX, "%.500s", place->file);
        if (place->line)
                n += snprintf(text + n, CONFIGURATION_WHERE_MAX - (size_t)n, ":%u", place->line);
        if (place->line && place->key)
                snprintf(text + n, CONFIGURATION_WHERE_MAX - (size_t)n, ": %s", place->key);
        return text;
}

void configuration_complain(const struct configuration_place *place, const char *message, ...)
{
        char text[512], clean[512];
        va_list args;

        va_start(args, message);
        vsnprintf(text, sizeof(text), message, args);
        va_end(args);
        place->kind->complain(place, text_clean(clean, sizeof(clean), text), place->userdata);
}

/* Without the blanks at both ends; changes @text. */
static char *trim(char *text)
{
        size_t length;

        while (isspace((unsigned char)*text))
                text++;
        length = strlen(text);
        while (length > 0 && isspace((unsigned char)text[length - 1]))
                text[--length] = '\0';
        return text;
}

/* What a file has said so far. */
struct reading {
        struct configuration_place place;
        char section[NAME_MAX_BYTES];
        char key[NAME_MAX_BYTES];
};

static bool take_section(struct reading *reading, char *line)
{
        struct configuration_place *place = &reading->place;
        char *end = strchr(line, ']');

        place->section = NULL;
        if (!place->kind->begin) {
                configuration_complain(place, "there are no sections here");
                return false;
        }
        if (!end || end[1] != '\0') {
                configuration_complain(place, "'%.80s' is not '[name]'", line);
                return false;
        }
        *end = '\0';
        if (snprintf(reading->section, sizeof(reading->section), "%s", trim(line + 1)) >=
                    NAME_MAX_BYTES ||
            reading->section[0] == '\0') {
                configuration_complain(place, "there is no name in the '[]', or a long one");
                return false;
        }
        place->section = reading->section;
        return place->kind->begin(place, place->userdata);
}

static bool take_line(struct reading *reading, char *line)
{
        struct configuration_place *place = &reading->place;
        char *begin = trim(line), *equals = strchr(begin, '=');
        const char *value;

        place->key = NULL;
        if (*begin == '\0' || *begin == '#')
                return true;
        if (*begin == '[')
                return take_section(reading, begin);
        if (!equals) {
                configuration_complain(place, "'%.80s' is not 'key = value'", begin);
                return false;
        }
        *equals = '\0';
        value = trim(equals + 1);
        if (snprintf(reading->key, sizeof(reading->key), "%s", trim(begin)) >= NAME_MAX_BYTES ||
            reading->key[0] == '\0') {
                configuration_complain(place, "there is no key before the '=', or a long one");
                return false;
        }
        place->key = reading->key;
        if (*value != '\0')
                return place->kind->set(place, value, place->userdata);
        configuration_complain(place, "the value is missing");
        return false;
}

static bool take_lines(struct reading *reading, char *text)
{
        bool is_right = true;

        for (char *line; (line = strsep(&text, "\n"));) {
                reading->place.line++;
                is_right &= take_line(reading, line);
        }
        return is_right;
}

bool configuration_read_file(const char *path, const struct configuration_kind *kind,
                             void *userdata)
{
        struct reading reading = {
                .place = { .kind = kind, .userdata = userdata, .file = path },
        };
        /* Not to wait for whoever would write into a FIFO. */
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        CLEANUP(file_closep) FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
        CLEANUP(freep) char *text = malloc(FILE_MAX_BYTES + 1);
        size_t n;

        if (!file || !text) {
                configuration_complain(&reading.place, "%s", strerrordesc_np(errno));
                return false;
        }
        n = fread(text, 1, FILE_MAX_BYTES, file);
        if (ferror(file)) {
                configuration_complain(&reading.place, "%s", strerrordesc_np(errno));
                return false;
        }
        if (n == FILE_MAX_BYTES || memchr(text, '\0', n)) {
                configuration_complain(&reading.place, "it is no configuration file");
                return false;
        }
        text[n] = '\0';
        return take_lines(&reading, text);
}

/* Drop-ins. */

static void list_free(char **paths)
{
        for (size_t i = 0; paths && paths[i]; i++)
                free(paths[i]);
        free(paths);
}
DEFINE_CLEANUP(char **, list_free);

static int is_configuration(const struct dirent *entry)
{
        size_t length = strlen(entry->d_name);

        return entry->d_name[0] != '.' && length > 5 &&
               strcmp(entry->d_name + length - 5, ".conf") == 0;
}

/* As bytes: the order must not hang on a locale. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
        return strcmp((*a)->d_name, (*b)->d_name);
}

/* The whole paths of those in the folder @path, with a NULL at the end. Returns how many. */
static int list(const char *path, char ***ret_paths)
{
        CLEANUP(list_freep) char **paths = NULL;
        struct dirent **entries = NULL;
        int n = scandir(path, &entries, is_configuration, by_name), r = 0;

        if (n < 0 && errno != ENOENT)
                return -errno;
        n = n < 0 ? 0 : n;
        paths = calloc((size_t)n + 1, sizeof(*paths));
        for (int i = 0; i < n; i++) {
                if (paths && asprintf(&paths[i], "%s/%s", path, entries[i]->d_name) < 0) {
                        paths[i] = NULL;
                        r = -ENOMEM;
                }
                free(entries[i]);
        }
        free(entries);
        if (!paths || r < 0)
                return -ENOMEM;
        *ret_paths = TAKE(paths);
        return n;
}

bool configuration_read_folder(const char *path, const struct configuration_kind *kind,
                               void *userdata, size_t *ret_n_files)
{
        const struct configuration_place place = { .kind = kind,
                                                   .userdata = userdata,
                                                   .file = path };
        CLEANUP(list_freep) char **paths = NULL;
        bool is_right = true;
        int n = list(path, &paths);

        if (n < 0) {
                configuration_complain(&place, "%s", strerrordesc_np(-n));
                return false;
        }
        for (int i = 0; i < n; i++)
                is_right &= configuration_read_file(paths[i], kind, userdata);
        if (ret_n_files)
                *ret_n_files = (size_t)n;
        return is_right;
}

bool configuration_read(const char *path, bool is_optional, const struct configuration_kind *kind,
                        void *userdata, size_t *ret_n_files)
{
        bool is_right = true, is_there = !is_optional || access(path, F_OK) == 0;
        CLEANUP(freep) char *folder = NULL;
        size_t n = 0;

        if (asprintf(&folder, "%s.d", path) < 0) {
                folder = NULL;
                return false;
        }
        if (is_there)
                is_right = configuration_read_file(path, kind, userdata);
        is_right &= configuration_read_folder(folder, kind, userdata, &n);
        if (ret_n_files)
                *ret_n_files = n + is_there;
        return is_right;
}
