/* SPDX-License-Identifier: Apache-2.0 */
/* What strangers send to the live page's server: what is accepted is exactly what may be asked. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "exporter/host-name.h"
#include "exporter/question.h"
#include "exporter/token.h"
#include "fuzz/target.h"

static void check_token(const char *text)
{
        static const char right[] = "Bearer 0123456789abcdef0123456789abcdef";
        struct token token, given;

        assert(token_parse(&token, right + strlen("Bearer ")));
        assert(!token_matches(&token, text) || strncasecmp(text, right, strlen(right)) == 0);
        if (token_parse(&given, text))
                assert(given.size >= TOKEN_MIN && given.size <= TOKEN_MAX &&
                       strlen(given.text) == given.size);
}

static void check_question(const char *text)
{
        struct question question = { .kind = QUESTION_VGPU };
        const struct host_names names = { .names = { "gpu01" }, .n = 1 };

        if (question_parse_uuid(&question, text))
                assert(strcmp(question.vgpu, text) == 0 && strlen(text) == 36);
        if (question_parse_month(&question, text))
                assert(question.until - question.since >= 27 * 86400.0 &&
                       question.until - question.since <= 32 * 86400.0);
        (void)host_name_is_allowed(&names, text);
}

static void check_action(const uint8_t *data, size_t size)
{
        struct question question = { .kind = QUESTION_ACT };

        if (question_parse_action(&question, (const char *)data, size))
                return;
        assert(size <= QUESTION_BODY_MAX && question.action < ACTIONS && question.percent <= 100);
        assert(strlen(question.vgpu) == 36);
        assert(!strpbrk(question.device, "/. \"\\"));
        assert(question.action != ACTION_MIGRATE || *question.device);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        CLEANUP(freep) char *text = strndup((const char *)data, size);

        if (!text)
                return 0;
        check_token(text);
        check_question(text);
        check_action(data, size);
        return 0;
}
