/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_DOCUMENT_H
#define CLI_DOCUMENT_H

/*
 * What --json prints: the results of the library, in the names and shapes of
 * docs/control-protocol.md, which scripts may rely on.
 *
 * Makers return a new reference, NULL when out of memory.
 */

#include <jansson.h>

#include <openvgpu/device.h>
#include <openvgpu/instance.h>
#include <openvgpu/manager.h>
#include <openvgpu/operation.h>
#include <openvgpu/time-sharing.h>

#include "cli/arguments.h"

json_t *document_from_devices(const struct vgpu_device_list *list);
json_t *document_from_instance(const struct vgpu_instance *instance); /* {"vgpu": ...} */
json_t *document_from_instances(const struct vgpu_instance *const *instances, size_t n);
json_t *document_from_report(const struct vgpu_operation_report *report);
json_t *document_from_turns(const struct vgpu_time_sharing *turns);
json_t *document_from_turns_log(const struct vgpu_time_sharing_log *log);
json_t *document_from_manager(const struct vgpu_manager *manager);

/* document_print() - takes the reference @document, which may be NULL. Returns an exit code. */
int document_print(const struct arguments *arguments, json_t *document);

/*
 * document_print_instance() - {"vgpu": ...} with --json, else what was done: "@done train: 40 GiB on GPU 0".
 * Returns the exit code.
 */
int document_print_instance(const struct arguments *arguments, const char *done,
                            const struct vgpu_instance *instance);

#endif
