/* SPDX-License-Identifier: Apache-2.0 */
#include "exporter/question.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"

#define UUID_LENGTH 36
#define YEAR_MIN    2000
#define YEAR_MAX    2999
#define PERCENT_MAX 100

static const char *const action_names[ACTIONS] = { "suspend", "resume", "migrate", "share" };

const char *question_get_action_name(enum question_action action)
{
        return action_names[action];
}

bool question_parse_uuid(struct question *question, const char *text)
{
        if (!text || strlen(text) != UUID_LENGTH ||
            strspn(text, "0123456789abcdefABCDEF-") != UUID_LENGTH)
                return false;
        memcpy(question->vgpu, text, UUID_LENGTH + 1);
        return true;
}

static bool get_number(const char *text, size_t n, int *ret_number)
{
        int number = 0;

        for (size_t i = 0; i < n; i++) {
                if (text[i] < '0' || text[i] > '9')
                        return false;
                number = 10 * number + (text[i] - '0');
        }
        *ret_number = number;
        return true;
}

static double get_start_of_month(int year, int month)
{
        struct tm local = {
                .tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = 1, .tm_isdst = -1
        };

        return (double)mktime(&local);
}

bool question_parse_month(struct question *question, const char *text)
{
        int year, month;

        if (!text || strlen(text) != 7 || text[4] != '-' || !get_number(text, 4, &year) ||
            !get_number(text + 5, 2, &month))
                return false;
        if (year < YEAR_MIN || year > YEAR_MAX || month < 1 || month > 12)
                return false;
        question->since = get_start_of_month(year, month);
        question->until = get_start_of_month(year, month + 1);
        return question->until > question->since;
}

/* An index or a UUID, as vgpud knows devices; of a vGPU of several: "2,3". */
static bool is_device(const char *text)
{
        size_t n = strlen(text);

        return n > 0 && n < QUESTION_DEVICE_MAX &&
               strspn(text, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-,") ==
                       n;
}

static bool find_action(struct question *question, const char *name)
{
        for (int i = 0; name && i < ACTIONS; i++)
                if (strcmp(action_names[i], name) == 0) {
                        question->action = (enum question_action)i;
                        return true;
                }
        return false;
}

static const char *check_members(const json_t *root)
{
        const char *key;
        json_t *value;

        json_object_foreach((json_t *)(uintptr_t)root, key,
                            value) if (strcmp(key, "action") != 0 && strcmp(key, "vgpu") != 0 &&
                                       strcmp(key, "device") != 0 &&
                                       strcmp(key, "percent") !=
                                               0) return "there is a member that is not known";
        return NULL;
}

static const char *read_action(struct question *question, const json_t *root)
{
        const char *device = json_string_value(json_object_get(root, "device"));
        const json_t *percent = json_object_get(root, "percent");
        const char *wrong = check_members(root);

        if (wrong)
                return wrong;
        if (!find_action(question, json_string_value(json_object_get(root, "action"))))
                return "\"action\" is suspend, resume, migrate or share";
        if (!question_parse_uuid(question, json_string_value(json_object_get(root, "vgpu"))))
                return "\"vgpu\" is the UUID of a vGPU";
        if (json_object_get(root, "device") && (!device || !is_device(device)))
                return "\"device\" is the index or the UUID of a GPU, as text; of several: \"2,3\"";
        if (!device && question->action == ACTION_MIGRATE)
                return "\"device\" is missing";
        if (question->action == ACTION_SHARE &&
            (!json_is_integer(percent) || json_integer_value(percent) < 0 ||
             json_integer_value(percent) > PERCENT_MAX))
                return "\"percent\" is a number from 0 to 100";
        (void)snprintf(question->device, sizeof(question->device), "%s", device ? device : "");
        question->percent = (uint32_t)json_integer_value(percent);
        return NULL;
}

const char *question_parse_action(struct question *question, const char *body, size_t size)
{
        CLEANUP(json_decrefp)
        json_t *root = size <= QUESTION_BODY_MAX
                               ? json_loadb(body, size, JSON_REJECT_DUPLICATES, NULL)
                               : NULL;

        if (!json_is_object(root))
                return "the body is one JSON object of at most 1,024 bytes";
        return read_action(question, root);
}
