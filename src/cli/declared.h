/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_DECLARED_H
#define CLI_DECLARED_H

/*
 * Declared vGPUs: files in which a section is a vGPU, and its keys are the options of 'vgpu create':
 *
 *     [train]
 *     fb = 40G
 *     owner = alice
 */

#include <stdbool.h>
#include <stdint.h>

#include "cli/arguments.h"

/* Of the machine: they exist after each start of vgpud's unit. */
#define DECLARED_FOLDER "/etc/openvgpu/vgpu.d"

#define DECLARED_KEYS 9

struct declared {
        struct declared *next;
        char *file; /* where it stands */
        unsigned int line;
        char *name;
        char *device;       /* where it is made, NULL: anywhere */
        uint32_t n_devices; /* 0: one, or as many as @device names */
        uint64_t frame_buffer;
        bool has_share, has_owner, has_idle;
        uint32_t share, owner;
        double idle_after; /* as of 'vgpu idle' */
        bool idle_keeps_context;
        char *swap_class; /* NULL: whatever it is */
        char *pool_group; /* NULL: whatever it is, that of its owner for a new one */
        unsigned int key_line[DECLARED_KEYS]; /* where each key stands; 0: it does not */
};

struct declared_list {
        const struct arguments *arguments; /* for what is said of a file */
        struct declared *first, **end;     /* in the order of the files */
        size_t n_files;
};

void declared_list_init(struct declared_list *list, const struct arguments *arguments);
void declared_list_deinit(struct declared_list *list);

/*
 * declared_list_read() - the vGPUs of a file, or of all files NAME.conf in a folder
 *
 * Returns an exit code, after it has said all that is wrong.
 */
int declared_list_read(struct declared_list *list, const char *path);

/* declared_parse_user() - a user's name or number. Errors: -ESRCH. */
int declared_parse_user(uint32_t *ret_user, const char *text);

#endif
