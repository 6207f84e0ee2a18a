/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/failure.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

__attribute__((format(printf, 4, 0))) static void
fill(struct failure *failure, const char *name, const char *hint, const char *message, va_list args)
{
        failure->name = name;
        vsnprintf(failure->message, sizeof(failure->message), message, args);
        snprintf(failure->hint, sizeof(failure->hint), "%s", hint ? hint : "");
        /* A client's text may be in there, cut in the middle of a character: JSON takes only whole ones. */
        text_mend(failure->message);
        text_mend(failure->hint);
}

int failure_set(struct failure *failure, int error, const char *name, const char *hint,
                const char *message, ...)
{
        va_list args;

        if (failure->name)
                return error;
        va_start(args, message);
        fill(failure, name, hint, message, args);
        va_end(args);
        return error;
}

int failure_parameter(struct failure *failure, const char *parameter, const char *hint,
                      const char *message, ...)
{
        va_list args;

        if (failure->name)
                return -EINVAL;
        va_start(args, message);
        fill(failure, "InvalidParameter", hint, message, args);
        va_end(args);
        snprintf(failure->parameter, sizeof(failure->parameter), "%s", parameter);
        text_mend(failure->parameter);
        return -EINVAL;
}

int failure_from_errno(struct failure *failure, int error, const char *what)
{
        return failure_set(failure, error, "Failed", "the log of vgpud has more", "%s: %s", what,
                           strerror(-error));
}
