/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/residency-record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

/* The settings of an instance in the store. */
#define IDLE  "idle"
#define LEFT  "left"
#define CLASS "class"

#define KEEPS_CONTEXT "keep-context"

#define AFTER_MIN_MS 100u
#define AFTER_MAX_MS (24ull * 3600 * 1000)

static int put(struct store *store, uint32_t id, uint64_t after_ms, bool keeps_context)
{
        char value[48];

        snprintf(value, sizeof(value), "%" PRIu64 " %s", after_ms,
                 keeps_context ? KEEPS_CONTEXT : "suspend");
        return store_put_setting(store, IDLE, id, value);
}

static int fail_to_store(struct failure *failure, int error)
{
        return failure_set(failure, error, "Failed",
                           "free room on the disk of vgpud's state directory; its log says more",
                           "the state database takes no writes (%s)", strerror(-error));
}

int residency_record_set(struct residency_instance *record, struct store *store, uint32_t id,
                         uint64_t after_ms, bool keeps_context, struct failure *failure)
{
        int r;

        if (after_ms && (after_ms < AFTER_MIN_MS || after_ms > AFTER_MAX_MS))
                return failure_parameter(failure, "idle_after", "0 means never",
                                         "a vGPU leaves after 0.1 to 86400 seconds without work, "
                                         "not after %.6g seconds",
                                         (double)after_ms / 1000);
        r = put(store, id, after_ms, keeps_context);
        if (r < 0)
                return fail_to_store(failure, r);
        record->after_ns = after_ms * NS_PER_MS;
        record->keeps_context = keeps_context;
        return 0;
}

int residency_record_set_class(struct residency_instance *record, struct store *store, uint32_t id,
                               const char *class, struct failure *failure)
{
        bool is_interactive = strcmp(class, residency_record_get_class(true)) == 0;
        int r;

        if (!is_interactive && strcmp(class, residency_record_get_class(false)) != 0)
                return failure_parameter(failure, "swap_class", "interactive or batch",
                                         "there is no class '%.32s'", class);
        r = store_put_setting(store, CLASS, id, class);
        if (r < 0)
                return fail_to_store(failure, r);
        record->is_interactive = is_interactive;
        return 0;
}

const char *residency_record_get_class(bool is_interactive)
{
        return is_interactive ? "interactive" : "batch";
}

int residency_record_put_left(const struct residency_instance *record, struct store *store,
                              uint32_t id, bool has_left)
{
        return record->has_left == has_left
                       ? 0
                       : store_put_setting(store, LEFT, id, has_left ? "1" : "0");
}

void residency_record_restore(struct residency_instance *record, const char *name,
                              const char *value)
{
        uint64_t after_ms = 0;
        char how[16] = "";

        if (strcmp(name, CLASS) == 0)
                record->is_interactive = strcmp(value, residency_record_get_class(true)) == 0;
        if (strcmp(name, LEFT) == 0)
                record->has_left = strcmp(value, "1") == 0;
        if (strcmp(name, IDLE) != 0 || sscanf(value, "%" SCNu64 " %15s", &after_ms, how) != 2 ||
            after_ms > AFTER_MAX_MS)
                return;
        record->after_ns = after_ms * NS_PER_MS;
        record->keeps_context = strcmp(how, KEEPS_CONTEXT) == 0;
}
