/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_CONFIGURATION_H
#define DAEMON_CONFIGURATION_H

/*
 * Configuration files: lines of `key = value`. A line that is empty, or that begins with #, says nothing.
 * Values are taken as they are: no quotes, no sections, no continued lines.
 *
 * The drop-ins of FILE are FILE.d/NAME.conf, read after it in the order of their names. Only what is wrong
 * with the form is known here; what a key means is its caller's to say.
 */

#include <stdbool.h>
#include <stddef.h>

/* Where a setting stands; for messages. */
struct configuration_place {
        const char *file;  /* NULL: the command line */
        unsigned int line; /* from 1 */
        const char *key;
};

/* configuration_complain() - "vgpud: FILE:3: key: ...", or of the command line "vgpud: --key: ...". */
__attribute__((format(printf, 2, 3))) void
configuration_complain(const struct configuration_place *place, const char *message, ...);

/* Takes a setting; false when it has said what is wrong with it. @value is valid during the call only. */
typedef bool (*configuration_set)(const struct configuration_place *place, const char *value,
                                  void *userdata);

/*
 * configuration_read() - the settings of @path and of its drop-ins
 * @is_optional:  it is fine that @path does not exist
 * @ret_n_files:  how many were read; may be NULL
 *
 * Goes on after what is wrong, so that all of it is said. Returns whether all was right.
 */
bool configuration_read(const char *path, bool is_optional, configuration_set set, void *userdata,
                        size_t *ret_n_files);

/*
 * configuration_read_file() - the settings of @path alone. Returns whether all was right.
 */
bool configuration_read_file(const char *path, configuration_set set, void *userdata);

/*
 * configuration_list() - the NAME.conf in the folder @path, sorted by name; a folder that does not exist
 * is empty
 * @ret_paths:  whole paths, NULL-terminated; the caller frees it with configuration_list_free()
 *
 * Returns how many, or a negative errno.
 */
int configuration_list(const char *path, char ***ret_paths);
void configuration_list_free(char **paths);

#endif
