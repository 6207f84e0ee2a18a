/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/methods/methods-image.h"

#include <errno.h>

#include "manager/image/image.h"
#include "manager/model/instance.h"

static int call(struct control_pending *pending, struct failure *failure,
                int (*function)(struct control_pending *pending, struct instance *instance,
                                struct failure *failure))
{
        struct instance *instance =
                instance_find(pending->manager, control_call_text(&pending->call, "name"), failure);

        return instance ? function(pending, instance, failure) : -ENOENT;
}

static int open_memory(struct control_pending *pending, struct failure *failure)
{
        return call(pending, failure, image_open);
}

static int replace_memory(struct control_pending *pending, struct failure *failure)
{
        return call(pending, failure, image_replace);
}

static int get_slabs(struct control_pending *pending, struct failure *failure)
{
        return call(pending, failure, image_get_slabs);
}

static int commit_memory(struct control_pending *pending, struct failure *failure)
{
        return call(pending, failure, image_commit);
}

static int close_memory(struct control_pending *pending, struct failure *failure)
{
        return call(pending, failure, image_close);
}

static const struct control_parameter name_parameters[] = { { "name", CONTROL_TEXT, true }, { 0 } };
static const struct control_parameter open_parameters[] = {
        { "name", CONTROL_TEXT, true },
        { "detach", CONTROL_BOOL, false },
        { 0 },
};
static const struct control_parameter replace_parameters[] = {
        { "name", CONTROL_TEXT, true },
        { "processes", CONTROL_LIST, false },
        { 0 },
};
static const struct control_parameter slabs_parameters[] = {
        { "name", CONTROL_TEXT, true },
        { "first", CONTROL_NUMBER, false },
        { 0 },
};

const struct control_method methods_image[] = {
        { "OpenMemory", CONTROL_OWNER, open_memory, open_parameters },
        { "ReplaceMemory", CONTROL_OWNER, replace_memory, replace_parameters },
        { "GetSlabs", CONTROL_OWNER, get_slabs, slabs_parameters },
        { "CommitMemory", CONTROL_OWNER, commit_memory, name_parameters },
        { "CloseMemory", CONTROL_OWNER, close_memory, name_parameters },
};
const size_t n_methods_image = sizeof(methods_image) / sizeof(methods_image[0]);
