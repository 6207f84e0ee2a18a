/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of an answer only one thing counts: has it an `error`, and which? So it is not parsed
 * but walked: members of the outermost object one by one, values skipped as they come. Every step
 * stops at the text's NUL.
 */
#include "nvml/control-answer.h"

#include <stdbool.h>
#include <string.h>

#define PREFIX "org.openvgpu."

static const struct {
        const char *error;
        nvmlReturn_t code;
} codes[] = {
        { "PermissionDenied", NVML_ERROR_NO_PERMISSION },
        { "InvalidParameter", NVML_ERROR_INVALID_ARGUMENT },
        { "NoSuchDevice", NVML_ERROR_INVALID_ARGUMENT },
        { "NoSuchVgpu", NVML_ERROR_NOT_FOUND },
        { "InUse", NVML_ERROR_IN_USE },
        { "Unsupported", NVML_ERROR_NOT_SUPPORTED },
        { "MethodNotFound", NVML_ERROR_NOT_SUPPORTED },
};

static const char *skip_space(const char *at)
{
        return at + strspn(at, " \t\r\n");
}

/* Behind the string that begins at @at; NULL: it has no end, or is none. */
static const char *skip_string(const char *at)
{
        if (*at != '"')
                return NULL;
        for (at++; *at && *at != '"'; at++)
                if (*at == '\\' && *++at == '\0')
                        return NULL;
        return *at ? at + 1 : NULL;
}

/* Behind the value that begins at @at: up to the comma or brace of the object it is in. */
static const char *skip_value(const char *at)
{
        int depth = 0;

        while (at && *at && (depth > 0 || !strchr(",}", *at))) {
                if (*at == '"') {
                        at = skip_string(at);
                        continue;
                }
                depth += *at == '{' || *at == '[';
                depth -= *at == '}' || *at == ']';
                at++;
        }
        return at && *at ? at : NULL;
}

static bool is_key(const char *at, const char *end, const char *key)
{
        return (size_t)(end - at) == strlen(key) + 2 && strncmp(at + 1, key, strlen(key)) == 0;
}

static nvmlReturn_t get_code(const char *at)
{
        const char *end = skip_string(at);

        for (size_t i = 0; end && i < sizeof(codes) / sizeof(codes[0]); i++) {
                char name[64] = PREFIX;

                strcat(name, codes[i].error);
                if (is_key(at, end, name))
                        return codes[i].code;
        }
        return NVML_ERROR_UNKNOWN;
}

nvmlReturn_t control_answer_get_code(const char *answer)
{
        const char *at = skip_space(answer);

        if (*at != '{')
                return NVML_ERROR_UNKNOWN;
        at = skip_space(at + 1);
        while (*at != '}') {
                const char *end = skip_string(at);
                const char *value = end ? skip_space(end) : NULL;

                if (!value || *value != ':')
                        return NVML_ERROR_UNKNOWN;
                value = skip_space(value + 1);
                if (is_key(at, end, "error"))
                        return get_code(value);
                at = skip_value(value);
                if (!at)
                        return NVML_ERROR_UNKNOWN;
                if (*at == ',')
                        at = skip_space(at + 1);
        }
        return NVML_SUCCESS;
}
