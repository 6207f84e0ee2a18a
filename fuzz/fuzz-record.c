/* SPDX-License-Identifier: Apache-2.0 */
/* An answer of vgpud: what is read quickly from its text is what JSON's objects say, member by member. */
#include <assert.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fuzz/target.h"
#include "record/records.h"
#include "record/writer.h"

/* More than any record of these. */
union object {
        max_align_t first;
        char bytes[1024];
};

static char *write_out(const struct record *record, const union object *object)
{
        struct writer writer = { 0 };

        writer_begin_object(&writer, NULL);
        record_write(record, object, &writer);
        writer_end_object(&writer);
        return writer_take(&writer);
}

static void compare(const struct record *record, const char *text)
{
        CLEANUP(record_memory_deinit) struct record_memory quick_memory = { 0 }, memory = { 0 };
        union object quick = { 0 }, slow = { 0 };
        CLEANUP(json_decrefp) json_t *json = NULL;
        CLEANUP(freep) char *copy = strdup(text), *first = NULL, *second = NULL;
        const char *bad = NULL;
        char *at = copy;

        assert(record->size <= sizeof(quick));
        if (!copy || record_parse(record, &at, &quick, &quick_memory) < 0 || *at)
                return;
        json = json_loads(text, 0, NULL);
        assert(json);
        assert(record_read(record, json, &slow, &memory, &bad) == 0);
        first = write_out(record, &quick);
        second = write_out(record, &slow);
        assert(first && second && strcmp(first, second) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        CLEANUP(freep) char *text = strndup((const char *)data, size);

        if (!text)
                return 0;
        compare(&record_snapshot, text);
        compare(&record_instance_list, text);
        compare(&record_turns_log, text);
        compare(&record_report, text);
        return 0;
}
