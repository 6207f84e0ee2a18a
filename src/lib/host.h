/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIB_HOST_H
#define LIB_HOST_H

/*
 * The inside of a host: it makes one call of NVML, from the look-up of the function to an error that
 * names the subject of the call.
 *
 *     r = HOST_CALL(host, ABOUT_INSTANCE(id), nvmlVgpuInstanceGetFbUsage, id, &bytes);
 */

#include <openvgpu/host.h>

#include "base/cleanup.h"
#include "base/paths.h"
#include "lib/about.h"
#include "lib/error.h"
#include "lib/nvml-calls.h"

struct vgpu_host {
        char *wanted_path; /* NULL: search */
        void *library;     /* NULL: not open yet */
        char path[PATHS_MAX];
        char driver_version[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE];
        struct nvml_calls calls;
        struct error error;

        /* The call that runs or ran last. */
        struct about about;
        enum nvml_call call;
        nvmlReturn_t code;
};

/* host_open() - find and load the library, unless it is loaded. */
int host_open(struct vgpu_host *host);

/* host_begin() - before @call, forget the last error; fail if the driver lacks the call. */
int host_begin(struct vgpu_host *host, struct about about, enum nvml_call call);

/* host_end() - after the call, return its @code as 0 or a negative errno. */
int host_end(struct vgpu_host *host, nvmlReturn_t code);

#define HOST_CALL(host_, about_, name_, ...)                                       \
        __extension__({                                                            \
                int r_ = host_begin((host_), (about_), NVML_CALL_##name_);         \
                                                                                   \
                if (r_ == 0)                                                       \
                        r_ = host_end((host_), (host_)->calls.name_(__VA_ARGS__)); \
                r_;                                                                \
        })

/* host_lacks() - does @r say that the driver does not know the call, or its struct? Then try an older one. */
bool host_lacks(const struct vgpu_host *host, int r);

/* host_set_error() - set an error of @kind with @message about @about. Returns its errno. */
__attribute__((format(printf, 5, 6))) int host_set_error(struct vgpu_host *host, struct about about,
                                                         enum vgpu_error_kind kind,
                                                         const char *hint, const char *message,
                                                         ...);

/* host_set_needs() - set the error that @what needs a driver from @since on. Returns its errno. */
int host_set_needs(struct vgpu_host *host, struct about about, const char *what, const char *since);

/* host_set_parameter() - set VGPU_ERROR_INVALID_PARAMETER about @parameter of a call. Returns its errno. */
__attribute__((format(printf, 4, 5))) int host_set_parameter(struct vgpu_host *host,
                                                             struct about about,
                                                             const char *parameter,
                                                             const char *message, ...);

/*
 * host_name_number() - if @r says that the driver knew no such number as @value, the error is about
 * @parameter and says so: the driver does not. Returns @r.
 */
int host_name_number(struct vgpu_host *host, int r, const char *parameter, int value);

/*
 * host_explain() - make @failed the error again, about @parameter and with @message before its own. It is
 * the error of a call, after which further calls looked for the cause. Returns its code.
 */
__attribute__((format(printf, 4, 5))) int host_explain(struct vgpu_host *host,
                                                       const struct error *failed,
                                                       const char *parameter, const char *message,
                                                       ...);

int host_set_no_memory(struct vgpu_host *host);

/* host_device() - get the handle of the device with the index @device. */
int host_device(struct vgpu_host *host, uint32_t device, nvmlDevice_t *ret_handle);

/* host_gpu_instance() - get the handle of a GPU instance of a device. */
int host_gpu_instance(struct vgpu_host *host, uint32_t device, uint32_t gpu_instance,
                      nvmlGpuInstance_t *ret_handle);

/* Names a number by a table; a number that the table lacks is "unknown". */
#define HOST_NAME(names_, number_)                                                       \
        ((size_t)(number_) < sizeof(names_) / sizeof((names_)[0]) && (names_)[(number_)] \
                 ? (names_)[(number_)]                                                   \
                 : "unknown")

#endif
