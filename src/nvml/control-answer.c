/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two things count in an answer: its `error`, if it has one, and the number of the object that was made.
 * The code therefore does not parse the answer. It walks the members of the outermost object and skips
 * other values. Every step stops at the text's NUL.
 */
#include "nvml/control-answer.h"

#include <limits.h>
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
        { "NoRoom", NVML_ERROR_INSUFFICIENT_RESOURCES },
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

enum found { FOUND_MALFORMED, FOUND_NOTHING, FOUND };

/* The value of the member @key of the object that begins at @at. */
static enum found find_member(const char *at, const char *key, const char **ret_value)
{
        at = skip_space(at);
        if (*at != '{')
                return FOUND_MALFORMED;
        at = skip_space(at + 1);
        while (*at != '}') {
                const char *end = skip_string(at);
                const char *value = end ? skip_space(end) : NULL;

                if (!value || *value != ':')
                        return FOUND_MALFORMED;
                value = skip_space(value + 1);
                if (is_key(at, end, key)) {
                        *ret_value = value;
                        return FOUND;
                }
                at = skip_value(value);
                if (!at)
                        return FOUND_MALFORMED;
                if (*at == ',')
                        at = skip_space(at + 1);
        }
        return FOUND_NOTHING;
}

nvmlReturn_t control_answer_get_code(const char *answer)
{
        const char *value;

        switch (find_member(answer, "error", &value)) {
        case FOUND:
                return get_code(value);
        case FOUND_NOTHING:
                return NVML_SUCCESS;
        default:
                return NVML_ERROR_UNKNOWN;
        }
}

bool control_answer_get_id(const char *answer, unsigned int *ret_id)
{
        const char *parameters, *value;
        unsigned long id = 0;

        if (find_member(answer, "parameters", &parameters) != FOUND ||
            find_member(parameters, "id", &value) != FOUND || *value < '0' || *value > '9')
                return false;
        for (; *value >= '0' && *value <= '9' && id <= UINT_MAX; value++)
                id = id * 10 + (unsigned long)(*value - '0');
        *ret_id = (unsigned int)id;
        return id <= UINT_MAX;
}
