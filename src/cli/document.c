/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/document.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "base/size.h"
#include "cli/instance-devices.h"
#include "cli/say.h"
#include "record/records.h"

json_t *document_from_devices(const struct vgpu_device_list *list)
{
        return record_make(&record_device_list, list);
}

json_t *document_from_instance(const struct vgpu_instance *instance)
{
        return json_pack("{so}", "vgpu", record_make(&record_instance, instance));
}

json_t *document_from_instances(const struct vgpu_instance *const *instances, size_t n)
{
        const struct vgpu_instance_list list = { .n_instances = n, .instances = instances };

        return record_make(&record_instance_list, &list);
}

json_t *document_from_report(const struct vgpu_operation_report *report)
{
        json_t *document = record_make(&record_report, report);

        if (document && !*report->lost)
                json_object_del(document, "lost");
        if (document && !*report->left_behind)
                json_object_del(document, "left_behind");
        return document;
}

json_t *document_from_turns(const struct vgpu_time_sharing *turns)
{
        return record_make(&record_turns, turns);
}

json_t *document_from_turns_log(const struct vgpu_time_sharing_log *log)
{
        return record_make(&record_turns_log, log);
}

json_t *document_from_manager(const struct vgpu_manager *manager)
{
        return record_make(&record_manager, manager);
}

/* What a double holds for sure: nine digits of a time since the epoch are ten seconds. */
#define DIGITS 15

int document_print(const struct arguments *arguments, json_t *document)
{
        CLEANUP(json_decrefp) json_t *owned = document;

        if (!owned || json_dumpf(owned, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(DIGITS)) < 0)
                return say_failure(arguments, EXIT_CODE_FAILED, "OutOfMemory", "",
                                   "cannot print the result");
        putchar('\n');
        return 0;
}

int document_print_instance(const struct arguments *arguments, const char *done,
                            const struct vgpu_instance *instance)
{
        char size[SIZE_TEXT_MAX], devices[INSTANCE_DEVICES_MAX];

        if (arguments->is_json)
                return document_print(arguments, document_from_instance(instance));
        printf("%s %s: %s on %s %s\n", done, instance->name,
               size_format(size, instance->frame_buffer),
               instance->n_parts > 1 ? "each of GPUs" : "GPU",
               instance_devices_format(devices, instance));
        return 0;
}
