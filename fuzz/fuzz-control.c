/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client sends to the control socket: framing, JSON, the check against a method's table, and
 * the error that names what was wrong. The first byte says in how large pieces the bytes arrive.
 */
#include <assert.h>
#include <string.h>

#include "daemon/control-call.h"
#include "fuzz/target.h"

static const struct control_parameter table[] = {
        { "name", CONTROL_TEXT, true },
        { "frame_buffer", CONTROL_SIZE, false },
        { "timeout", CONTROL_SECONDS, false },
        { "transient", CONTROL_BOOL, false },
        { 0 },
};

static void use(const struct control_call *call)
{
        const char *name = control_call_text(call, "name");
        double seconds = control_call_seconds(call, "timeout", 1);

        assert(name && strlen(name) <= 512);
        assert(seconds > 0 && seconds <= 86400);
        assert(control_call_size(call, "frame_buffer") <= INT64_MAX);
        (void)control_call_bool(call, "transient");
}

static void answer(const struct failure *failure)
{
        CLEANUP_JSON json_t *error = control_error_json(failure);
        CLEANUP(freep) char *text = error ? json_dumps(error, JSON_COMPACT) : NULL;

        assert(text);
}

static void take(const char *text, size_t size)
{
        struct failure failure = { 0 };
        struct control_call call;

        if (control_call_parse(&call, text, size) < 0)
                return;
        if (control_call_check(&call, table, &failure) < 0)
                answer(&failure);
        else
                use(&call);
        control_call_deinit(&call);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct control_buffer buffer = { 0 };
        size_t piece = size ? data[0] + 1u : 1;

        for (size_t at = 1; at < size; at += piece) {
                size_t n = size - at < piece ? size - at : piece;
                const char *text;
                size_t length;

                if (control_buffer_append(&buffer, (const char *)data + at, n) < 0)
                        break;
                while ((text = control_buffer_next(&buffer, &length)))
                        take(text, length);
        }
        control_buffer_deinit(&buffer);
        return 0;
}
