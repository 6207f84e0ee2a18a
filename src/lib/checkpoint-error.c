/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/checkpoint-error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/text.h"

static const struct kind {
        int code;
        const char *name;
} kinds[] = {
        [VGPU_CHECKPOINT_ERROR_NONE] = { 0, "" },
        [VGPU_CHECKPOINT_ERROR_FAILED] = { -EIO, "Failed" },
        [VGPU_CHECKPOINT_ERROR_NO_CUDA] = { -ENXIO, "NoCuda" },
        [VGPU_CHECKPOINT_ERROR_NO_PROCESS] = { -ESRCH, "NoProcess" },
        [VGPU_CHECKPOINT_ERROR_PERMISSION] = { -EACCES, "PermissionDenied" },
        [VGPU_CHECKPOINT_ERROR_WRONG_STATE] = { -ESTALE, "WrongState" },
        [VGPU_CHECKPOINT_ERROR_TIMED_OUT] = { -ETIME, "TimedOut" },
        [VGPU_CHECKPOINT_ERROR_INVALID] = { -EINVAL, "InvalidParameter" },
        [VGPU_CHECKPOINT_ERROR_NO_ROOM] = { -ENOSPC, "NoRoom" },
        [VGPU_CHECKPOINT_ERROR_NOT_SUPPORTED] = { -EOPNOTSUPP, "NotSupported" },
        [VGPU_CHECKPOINT_ERROR_GUEST] = { -EBUSY, "Guest" },
        [VGPU_CHECKPOINT_ERROR_DANGEROUS] = { -EDEADLK, "Dangerous" },
        [VGPU_CHECKPOINT_ERROR_DRIVER_FAILED] = { -EREMOTEIO, "DriverFailed" },
        [VGPU_CHECKPOINT_ERROR_LOST] = { -EOWNERDEAD, "ProcessLost" },
        [VGPU_CHECKPOINT_ERROR_NO_DRIVER] = { -ENODEV, "NoDriver" },
        [VGPU_CHECKPOINT_ERROR_OUT_OF_MEMORY] = { -ENOMEM, "OutOfMemory" },
};

void checkpoint_error_clear(struct checkpoint_error *error)
{
        error->message[0] = error->hint[0] = error->driver_call[0] = error->driver_name[0] =
                error->driver_text[0] = '\0';
        error->value = (struct vgpu_checkpoint_error){
                .name = "",
                .message = error->message,
                .hint = error->hint,
                .driver_call = error->driver_call,
                .driver_name = error->driver_name,
                .driver_text = error->driver_text,
                .state_before = VGPU_CHECKPOINT_STATE_UNKNOWN,
                .state_after = VGPU_CHECKPOINT_STATE_UNKNOWN,
                .is_undone = true,
        };
}

static int begin(struct checkpoint_error *error, enum vgpu_checkpoint_error_kind kind)
{
        checkpoint_error_clear(error);
        error->value.kind = kind;
        error->value.code = kinds[kind].code;
        error->value.name = kinds[kind].name;
        return kinds[kind].code;
}

int checkpoint_error_set(struct checkpoint_error *error, enum vgpu_checkpoint_error_kind kind,
                         const char *hint, const char *message, ...)
{
        int code = begin(error, kind);
        va_list args;

        va_start(args, message);
        vsnprintf(error->message, sizeof(error->message), message, args);
        va_end(args);
        text_clean(error->hint, sizeof(error->hint), hint);
        return code;
}

int checkpoint_error_set_answer(struct checkpoint_error *error,
                                const struct checkpoint_wire_answer *answer)
{
        enum vgpu_checkpoint_error_kind kind = (enum vgpu_checkpoint_error_kind)answer->kind;
        int code = begin(error, kind);
        struct vgpu_checkpoint_error *value = &error->value;

        text_clean(error->message, sizeof(error->message), answer->message);
        text_clean(error->hint, sizeof(error->hint), answer->hint);
        text_clean(error->driver_call, sizeof(error->driver_call), answer->call);
        text_clean(error->driver_name, sizeof(error->driver_name), answer->driver_name);
        text_clean(error->driver_text, sizeof(error->driver_text), answer->driver_text);
        value->driver_code = answer->driver_code;
        value->is_undone = answer->is_undone != 0;
        value->pid = answer->pid;
        for (uint32_t i = 0; i < answer->n_processes; i++) {
                if (answer->process[i].pid != answer->pid)
                        continue;
                value->state_before = (enum vgpu_checkpoint_state)answer->process[i].state_before;
                value->state_after = (enum vgpu_checkpoint_state)answer->process[i].state;
        }
        return code;
}
