/* SPDX-License-Identifier: Apache-2.0 */
#include "image/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int image_fail(struct image_error *error, int code, const char *hint, const char *message, ...)
{
        va_list args;

        if (error->code)
                return code;
        va_start(args, message);
        vsnprintf(error->message, sizeof(error->message), message, args);
        va_end(args);
        snprintf(error->hint, sizeof(error->hint), "%s", hint);
        error->code = code;
        return code;
}

static const char *hint_for(int code)
{
        static const struct {
                int code;
                const char *hint;
        } hints[] = {
                { -ENOSPC, "make room on that file system, or choose another one" },
                { -EDQUOT, "make room in your quota, or choose another file system" },
                { -EFBIG, "raise the limit (ulimit -f), or choose another file system" },
                { -EACCES,
                  "choose a directory that you may write; an image is for its owner alone" },
                { -EROFS, "choose a file system that can be written" },
                { -ELOOP, "name the place itself: symbolic links in an image are not followed" },
                { -EIO, "the disk may be failing: look at the kernel's log" },
        };

        for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++)
                if (hints[i].code == code)
                        return hints[i].hint;
        return "";
}

/* Of a path that may end in one link at most, "Too many levels of symbolic links" is no reason. */
static const char *describe(int code)
{
        return code == -ELOOP ? "it is a symbolic link, or behind one that leads nowhere"
                              : strerrordesc_np(-code);
}

int image_fail_file(struct image_error *error, int code, const char *doing, const char *name)
{
        return image_fail(error, code, hint_for(code), "cannot %s %s: %s", doing, name,
                          describe(code));
}
