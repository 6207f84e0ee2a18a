/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_SEVERAL_H
#define CLI_SEVERAL_H

/*
 * Several vGPUs in one command. They are handled at the same time if they wait for operations, else one after
 * another; what is said is in their order. A name that is given twice counts once. A failure does not stop the rest. That no vgpud answers is said once.
 *
 * With --json, one name prints the usual document. Several names, or --all, print {"results":
 * [...]} of the successes. Each error is a document of its own.
 */

#include <jansson.h>

#include <openvgpu/instance.h>
#include <openvgpu/operation.h>

#include "cli/arguments.h"

/* For lists of options. */
#define SEVERAL_OPTION_ALL(help_)            \
        {                                    \
                .name = "all", .help = help_ \
        }

/* An operation on one of several vGPUs. */
struct several_operation {
        /* Waits for it, in a thread of its own, and says nothing. Returns what the library returned. */
        int (*run)(const struct arguments *arguments, struct vgpu_client *client, const char *name,
                   const struct vgpu_operation_options *options,
                   struct vgpu_operation_report **ret_report);
        /* Prints the outcome; with --json, gives it as a document (a new reference) instead. */
        void (*tell)(const struct arguments *arguments, const struct vgpu_operation_report *report,
                     json_t **ret_document);
};

struct several {
        /*
         * Does it to the vGPU @name and prints the outcome; with --json, gives it as a document (a
         * new reference) instead. Returns an exit code after it has said what is wrong. NULL if it is an operation.
         */
        int (*act)(const struct arguments *arguments, struct vgpu_client *client, const char *name,
                   json_t **ret_document);
        /* Which of the user's own vGPUs (root: of all) --all means. NULL: the command has no --all. */
        bool (*is_meant)(const struct vgpu_instance *instance);
        const char *none;                          /* what is said when --all means none */
        const struct several_operation *operation; /* NULL: it is none */
};

/* several_run() - the vGPUs that @arguments name. Returns 0, or the exit code of the first failure. */
int several_run(const struct arguments *arguments, struct vgpu_client *client,
                const struct several *several);

#endif
