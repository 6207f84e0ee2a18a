/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_OPERATION_H
#define CLI_OPERATION_H

/* Shared by suspend, resume and migrate. */

#include <jansson.h>

#include <openvgpu/operation.h>

#include "base/cleanup.h"
#include "cli/arguments.h"

DEFINE_CLEANUP(struct vgpu_operation_report *, vgpu_operation_report_free);

/* For their lists of options. */
#define OPERATION_OPTION_TIMEOUT                                                                    \
        {                                                                                           \
                .name = "timeout", .argument = "TIME",                                              \
                .help = "give up, and change nothing, if its programs are not at rest by then (10)" \
        }

#define OPERATION_OPTION_GROUP                                                                  \
        {                                                                                       \
                .name = "group",                                                                \
                .help = "also all vGPUs whose processes share memory with it, at the same time" \
        }

/*
 * operation_begin() - @options from the command line, with a progress bar, for the vGPU @name;
 * NULL: for several at once, without a bar. Returns an exit code.
 */
int operation_begin(const struct arguments *arguments, const char *name,
                    struct vgpu_operation_options *options);

/* operation_end() - the bar is wiped away; must follow whatever the operation's outcome. */
void operation_end(void);

/* operation_describe_time() - "0.61 s", "2.3 ms" into @text; returns @text. */
#define OPERATION_TIME_MAX 32
char *operation_describe_time(char *text, double seconds);

/*
 * operation_describe_copy() - "31.8 GiB out in 0.61 s (52.1 GB/s), context 0.35 s" into @text
 * @how:  "out", "back", "across"
 */
#define OPERATION_TEXT_MAX 128
char *operation_describe_copy(char *text, const struct vgpu_operation_report *report,
                              const char *how);

/*
 * operation_describe_whole() - ", 2.61 s in all" into @text of OPERATION_WHOLE_MAX bytes when
 * the person waited much longer than copy and context took, else "". It says how long host memory
 * was waited for, which is what that comes from after a start or a move.
 */
#define OPERATION_WHOLE_MAX (2 * OPERATION_TIME_MAX + 64)
char *operation_describe_whole(char *text, const struct vgpu_operation_report *report);

/* operation_describe_stop() - ", its programs stood still for 80 ms", where that is known; else "". */
#define OPERATION_STOP_MAX (OPERATION_TIME_MAX + 40)
char *operation_describe_stop(char *text, const struct vgpu_operation_report *report);

/* operation_describe_devices() - "GPUs 0,1", where its vGPU is; of one device: "GPU 0", which is @device. */
#define OPERATION_DEVICES_MAX 64
char *operation_describe_devices(char *text, const struct vgpu_operation_report *report,
                                 uint32_t device);

/* operation_tell_lost() - which processes did not come along, if any. */
void operation_tell_lost(const struct vgpu_operation_report *report);

/* operation_tell_resumed() - a resume's line, or its document. */
void operation_tell_resumed(const struct arguments *arguments,
                            const struct vgpu_operation_report *report, json_t **ret_document);

#endif
