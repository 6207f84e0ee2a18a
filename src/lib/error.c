/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <openvgpu/base.h>

#include "base/text.h"

static const struct kind {
        enum vgpu_error_kind kind;
        int code;
        const char *name;
        const char *message;
} kinds[] = {
        { VGPU_ERROR_FAILED, -EIO, "Failed", "the manager failed" },
        { VGPU_ERROR_NO_SUCH_VGPU, -ENOENT, "NoSuchVgpu", "there is no such vGPU" },
        { VGPU_ERROR_NO_SUCH_DEVICE, -ENODEV, "NoSuchDevice", "there is no such device" },
        { VGPU_ERROR_VGPU_EXISTS, -EEXIST, "VgpuExists", "a vGPU of that name exists" },
        { VGPU_ERROR_INVALID_PARAMETER, -EINVAL, "InvalidParameter", "a parameter is not valid" },
        { VGPU_ERROR_NO_ROOM, -ENOSPC, "NoRoom", "the device has too little memory left" },
        { VGPU_ERROR_POOL_TOO_SMALL, -EDQUOT, "PoolTooSmall",
          "the pool of host memory is too small" },
        { VGPU_ERROR_WRONG_STATE, -ESTALE, "WrongState", "the vGPU is in the wrong state" },
        { VGPU_ERROR_BUSY, -EBUSY, "Busy", "the vGPU is in use" },
        { VGPU_ERROR_BUSY, -EBUSY, "InUse", "vGPUs are active" }, /* of a setting */
        { VGPU_ERROR_TIMED_OUT, -ETIME, "TimedOut", "the guest did not come to rest in time" },
        { VGPU_ERROR_NOT_MOVABLE, -EOPNOTSUPP, "NotMovable", "the guest cannot be suspended" },
        { VGPU_ERROR_DRIVER_FAILED, -EREMOTEIO, "DriverFailed", "a driver call failed" },
        { VGPU_ERROR_GUEST_LOST, -ESRCH, "GuestLost", "a guest process died" },
        { VGPU_ERROR_PERMISSION_DENIED, -EACCES, "PermissionDenied", "permission denied" },
        { VGPU_ERROR_METHOD_NOT_FOUND, -ENOSYS, "MethodNotFound", "the manager is too old" },
        { VGPU_ERROR_NO_CUDA, -ENXIO, "NoCuda", "the process does not use CUDA" },
        { VGPU_ERROR_NO_MANAGER, -ECONNREFUSED, "NoManager", "no manager answers" },
        { VGPU_ERROR_NO_ANSWER, -ETIMEDOUT, "NoAnswer", "the manager does not answer" },
        { VGPU_ERROR_CONNECTION_LOST, -ECONNRESET, "ConnectionLost", "the manager went away" },
        { VGPU_ERROR_BAD_ANSWER, -EPROTO, "BadAnswer",
          "the manager's answer cannot be understood" },
        { VGPU_ERROR_OUT_OF_MEMORY, -ENOMEM, "OutOfMemory", "out of memory" },
        { VGPU_ERROR_NO_LIBRARY, -ELIBACC, "NoLibrary", "there is no NVML library" },
        { VGPU_ERROR_NOT_IN_DRIVER, -ENOSYS, "NotInDriver", "it is not in this driver" },
        { VGPU_ERROR_NOT_SUPPORTED, -EOPNOTSUPP, "Unsupported", "it is not supported" },
        { VGPU_ERROR_NO_SUCH_TYPE, -ENOENT, "NoSuchType", "there is no such vGPU type" },
        { VGPU_ERROR_NO_SUCH_PROCESS, -ENOENT, "NoSuchProcess", "there is no such process" },
        { VGPU_ERROR_NOT_LOADED, -ENODEV, "NotLoaded", "the driver does not run" },
        { VGPU_ERROR_DEVICE_LOST, -ENXIO, "DeviceLost", "the device fell off the bus" },
        { VGPU_ERROR_RESET_REQUIRED, -EIO, "ResetRequired", "a reset is required" },
};

static const struct kind *find_kind(enum vgpu_error_kind kind)
{
        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
                if (kinds[i].kind == kind)
                        return &kinds[i];
        return &kinds[0];
}

/* An error that only a newer manager knows is a plain failure, with the manager's own words. */
static const struct kind *find_kind_by_name(const char *name)
{
        const char *last = strrchr(name, '.');

        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
                if (strcmp(kinds[i].name, last ? last + 1 : name) == 0)
                        return &kinds[i];
        return &kinds[0];
}

static void clear_with(struct error *error, const char *name)
{
        error->message[0] = error->hint[0] = error->parameter[0] = error->driver_call[0] = '\0';
        error->value = (struct vgpu_error){ .name = name,
                                            .message = error->message,
                                            .hint = error->hint,
                                            .parameter = error->parameter,
                                            .driver_call = error->driver_call };
}

void error_clear(struct error *error)
{
        clear_with(error, "");
}

static int begin(struct error *error, const struct kind *kind)
{
        clear_with(error, kind->name);
        error->value.kind = kind->kind;
        error->value.code = kind->code;
        return kind->code;
}

__attribute__((format(printf, 2, 0))) static void say(struct error *error, const char *message,
                                                      va_list args)
{
        char text[sizeof(error->message)];

        vsnprintf(text, sizeof(text), message, args);
        text_clean(error->message, sizeof(error->message), text);
}

int error_set(struct error *error, enum vgpu_error_kind kind, const char *hint, const char *message,
              ...)
{
        int code = begin(error, find_kind(kind));
        va_list args;

        va_start(args, message);
        say(error, message, args);
        va_end(args);
        text_clean(error->hint, sizeof(error->hint), hint);
        return code;
}

int error_set_parameter(struct error *error, const char *parameter, const char *message, ...)
{
        int code = begin(error, find_kind(VGPU_ERROR_INVALID_PARAMETER));
        va_list args;

        va_start(args, message);
        say(error, message, args);
        va_end(args);
        text_clean(error->parameter, sizeof(error->parameter), parameter);
        return code;
}

int error_set_no_memory(struct error *error)
{
        return error_set(error, VGPU_ERROR_OUT_OF_MEMORY, "", "out of memory");
}

static void take_text(char *to, size_t room, const json_t *parameters, const char *key,
                      const char *otherwise)
{
        const char *text = json_string_value(json_object_get(parameters, key));

        text_clean(to, room, text && *text ? text : otherwise);
}

static int take_int(const json_t *parameters, const char *key)
{
        return (int)json_integer_value(json_object_get(parameters, key));
}

int error_set_answer(struct error *error, const char *name, const json_t *parameters)
{
        const struct kind *kind = find_kind_by_name(name);

        if (kind->kind == VGPU_ERROR_METHOD_NOT_FOUND)
                return error_set(error, kind->kind, "upgrade vgpud and restart it",
                                 "vgpud does not know this request: it is older than this program "
                                 "(%s)",
                                 OPENVGPU_VERSION);

        begin(error, kind);
        take_text(error->message, sizeof(error->message), parameters, "message", kind->message);
        take_text(error->hint, sizeof(error->hint), parameters, "hint", "");
        take_text(error->parameter, sizeof(error->parameter), parameters, "parameter", "");
        take_text(error->driver_call, sizeof(error->driver_call), parameters, "call", "");
        error->value.driver_code = take_int(parameters, "code");
        error->value.process = take_int(parameters, "process");
        return kind->code;
}

int error_copy_options(struct error *error, void *to, size_t to_size, const void *from,
                       size_t from_size)
{
        const char *bytes = from;
        size_t known = from_size < to_size ? from_size : to_size;

        if (from_size < sizeof(size_t))
                return error_set_parameter(error, "size", "the options were not initialized");
        for (size_t i = known; i < from_size; i++)
                if (bytes[i] != 0)
                        return error_set_parameter(
                                error, "size", "the program asks for more than libopenvgpu %s can",
                                OPENVGPU_VERSION);

        memset(to, 0, to_size);
        memcpy(to, from, known);
        return 0;
}
