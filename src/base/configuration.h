/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CONFIGURATION_H
#define BASE_CONFIGURATION_H

/*
 * Configuration files: lines of `key = value` and, where the caller wants them, sections that begin
 * with `[name]`. Empty lines and lines that begin with # are ignored. Values are taken as they are:
 * there are no quotes and no continued lines.
 *
 * The drop-ins of FILE are FILE.d/NAME.conf. They are read after FILE, in the order of their names.
 * This module checks only the form of a file; the caller decides what a key means.
 */

#include <stdbool.h>
#include <stddef.h>

struct configuration_kind;

/* Where a setting stands; for messages. Texts are borrowed, for the length of the call. */
struct configuration_place {
        const struct configuration_kind *kind;
        void *userdata;
        const char *file;    /* NULL: the command line */
        unsigned int line;   /* from 1; 0: of the file as a whole */
        const char *section; /* NULL: none has begun */
        const char *key;     /* NULL: of the line as a whole */
};

/* What a file of some kind may have. */
struct configuration_kind {
        /* Takes a setting; false when it has said what is wrong with it. */
        bool (*set)(const struct configuration_place *place, const char *value, void *userdata);
        /* A section begins; false when it has said what is wrong. NULL: there are no sections. */
        bool (*begin)(const struct configuration_place *place, void *userdata);
        /* Shows what is wrong, one clean line; configuration_where() has the rest. */
        void (*complain)(const struct configuration_place *place, const char *message,
                         void *userdata);
};

/* configuration_complain() - what is wrong at @place. */
__attribute__((format(printf, 2, 3))) void
configuration_complain(const struct configuration_place *place, const char *message, ...);

/* configuration_where() - "FILE:3: key", of the command line "--key"; returns @text. */
#define CONFIGURATION_WHERE_MAX 640
const char *configuration_where(char text[CONFIGURATION_WHERE_MAX],
                                const struct configuration_place *place);

/*
 * configuration_read() - the settings of @path and of its drop-ins
 * @is_optional:  it is fine that @path does not exist
 * @ret_n_files:  how many were read; may be NULL
 *
 * Goes on after what is wrong, so that all of it is said. Returns whether all was right.
 */
bool configuration_read(const char *path, bool is_optional, const struct configuration_kind *kind,
                        void *userdata, size_t *ret_n_files);

/*
 * configuration_read_file() - the settings of @path alone; configuration_read_folder() - of the
 * NAME.conf in it, none if it does not exist. Return whether all was right.
 */
bool configuration_read_file(const char *path, const struct configuration_kind *kind,
                             void *userdata);
bool configuration_read_folder(const char *path, const struct configuration_kind *kind,
                               void *userdata, size_t *ret_n_files);

#endif
