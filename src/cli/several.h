/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_SEVERAL_H
#define CLI_SEVERAL_H

/*
 * Several vGPUs in one command. They are handled one after another, and a failure does not stop the
 * rest. Only if no vgpud answers, the rest is not tried.
 *
 * With --json, one name prints the usual document. Several names, or --all, print {"results":
 * [...]} of the successes. Each error is a document of its own.
 */

#include <jansson.h>

#include <openvgpu/instance.h>

#include "cli/arguments.h"

/* For lists of options. */
#define SEVERAL_OPTION_ALL(help_)            \
        {                                    \
                .name = "all", .help = help_ \
        }

struct several {
        /*
         * Does it to the vGPU @name and prints the outcome; with --json, gives it as a document (a
         * new reference) instead. Returns an exit code after it has said what is wrong.
         */
        int (*act)(const struct arguments *arguments, struct vgpu_client *client, const char *name,
                   json_t **ret_document);
        /* Which of the user's own vGPUs (root: of all) --all means. NULL: the command has no --all. */
        bool (*is_meant)(const struct vgpu_instance *instance);
        const char *none; /* what is said when --all means none */
};

/* several_run() - the vGPUs that @arguments name. Returns 0, or the exit code of the first failure. */
int several_run(const struct arguments *arguments, struct vgpu_client *client,
                const struct several *several);

#endif
