/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/configuration.h"

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
#include "base/paths.h"
#include "base/text.h"

/* Far more than there is to say; a longer one is no configuration. */
#define FILE_MAX_BYTES 65536

#define KEY_MAX 64

static void file_close(FILE *file)
{
        if (file)
                (void)fclose(file);
}
DEFINE_CLEANUP(FILE *, file_close);
DEFINE_CLEANUP(char **, configuration_list_free);

void configuration_complain(const struct configuration_place *place, const char *message, ...)
{
        char text[512], clean[512];
        va_list args;

        va_start(args, message);
        vsnprintf(text, sizeof(text), message, args);
        va_end(args);
        text_clean(clean, sizeof(clean), text);
        if (!place->file)
                fprintf(stderr, "vgpud: --%s: %s\n", place->key, clean);
        else if (place->key)
                fprintf(stderr, "vgpud: %s:%u: %s: %s\n", place->file, place->line, place->key,
                        clean);
        else if (place->line)
                fprintf(stderr, "vgpud: %s:%u: %s\n", place->file, place->line, clean);
        else
                fprintf(stderr, "vgpud: %s: %s\n", place->file, clean);
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

static bool take_line(struct configuration_place *place, char *line, configuration_set set,
                      void *userdata)
{
        char *key = trim(line), *equals = strchr(key, '=');
        char name[KEY_MAX];
        const char *value;

        place->key = NULL;
        if (*key == '\0' || *key == '#')
                return true;
        if (!equals) {
                configuration_complain(place, "'%.80s' is not 'key = value'", key);
                return false;
        }
        *equals = '\0';
        value = trim(equals + 1);
        if (snprintf(name, sizeof(name), "%s", trim(key)) >= KEY_MAX || name[0] == '\0') {
                configuration_complain(place, "there is no key before the '='");
                return false;
        }
        place->key = name;
        if (*value != '\0')
                return set(place, value, userdata);
        configuration_complain(place, "the value is missing");
        return false;
}

static bool take_lines(const char *path, char *text, configuration_set set, void *userdata)
{
        struct configuration_place place = { .file = path };
        bool is_right = true;

        for (char *line; (line = strsep(&text, "\n"));) {
                place.line++;
                is_right &= take_line(&place, line, set, userdata);
        }
        return is_right;
}

bool configuration_read_file(const char *path, configuration_set set, void *userdata)
{
        const struct configuration_place place = { .file = path };
        /* Not to wait for whoever would write into a FIFO. */
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        CLEANUP(file_closep) FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
        CLEANUP(freep) char *text = malloc(FILE_MAX_BYTES + 1);
        size_t n;

        if (!file || !text) {
                configuration_complain(&place, "%s", strerrordesc_np(errno));
                return false;
        }
        n = fread(text, 1, FILE_MAX_BYTES, file);
        if (ferror(file) || n == FILE_MAX_BYTES || memchr(text, '\0', n)) {
                configuration_complain(&place,
                                       ferror(file) ? "it cannot be read: %s"
                                                    : "it is no configuration file",
                                       strerrordesc_np(errno));
                return false;
        }
        text[n] = '\0';
        return take_lines(path, text, set, userdata);
}

/* Drop-ins. */

static int is_configuration(const struct dirent *entry)
{
        size_t length = strlen(entry->d_name);

        return entry->d_name[0] != '.' && length > 5 &&
               strcmp(entry->d_name + length - 5, ".conf") == 0;
}

void configuration_list_free(char **paths)
{
        for (size_t i = 0; paths && paths[i]; i++)
                free(paths[i]);
        free(paths);
}

/* As bytes: the order must not hang on a locale. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
        return strcmp((*a)->d_name, (*b)->d_name);
}

int configuration_list(const char *path, char ***ret_paths)
{
        CLEANUP(configuration_list_freep) char **paths = NULL;
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

bool configuration_read(const char *path, bool is_optional, configuration_set set, void *userdata,
                        size_t *ret_n_files)
{
        CLEANUP(configuration_list_freep) char **paths = NULL;
        struct configuration_place place = { 0 };
        char folder[PATHS_MAX];
        bool is_right = true, is_there = !is_optional || access(path, F_OK) == 0;
        int n;

        if (is_there)
                is_right = configuration_read_file(path, set, userdata);
        place.file = folder;
        n = snprintf(folder, sizeof(folder), "%s.d", path) < PATHS_MAX
                    ? configuration_list(folder, &paths)
                    : -ENAMETOOLONG;
        if (n < 0) {
                configuration_complain(&place, "%s", strerrordesc_np(-n));
                return false;
        }
        for (int i = 0; i < n; i++)
                is_right &= configuration_read_file(paths[i], set, userdata);
        if (ret_n_files)
                *ret_n_files = (size_t)n + is_there;
        return is_right;
}
