/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds and loads NVML, and makes one call of it.
 *
 * Each host opens the library for itself: NVML counts its users, and the dynamic linker counts those
 * that loaded it.
 */
#include "lib/host.h"

#include <dlfcn.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>

#include <openvgpu/manager.h>

#include "lib/client.h"
#include "lib/nvml-code.h"

#define SONAME             "libnvidia-ml.so.1"
#define MANAGER_TIMEOUT_MS 2000

DEFINE_CLEANUP(struct vgpu_client *, vgpu_client_free);
DEFINE_CLEANUP(struct vgpu_host *, vgpu_host_free);
DEFINE_CLEANUP(struct vgpu_manager *, vgpu_manager_free);

static const struct {
        const char *name, *since;
        size_t offset;
} calls[] = {
#define X(name, since) { #name, since, offsetof(struct nvml_calls, name) },
        NVML_CALLS(X)
#undef X
};

_Static_assert(sizeof(struct nvml_calls) == NVML_CALL_COUNT * sizeof(void *),
               "all of them are pointers");

void *vgpu_free(void *result)
{
        free(result);
        return NULL;
}

int vgpu_host_new(struct vgpu_host **ret_host, const char *library_path)
{
        CLEANUP(vgpu_host_freep) struct vgpu_host *host = calloc(1, sizeof(*host));
        const char *path = library_path ? library_path : secure_getenv("OPENVGPU_NVML");

        if (!host)
                return -ENOMEM;
        error_clear(&host->error);
        if (path && *path) {
                host->wanted_path = strdup(path);
                if (!host->wanted_path)
                        return -ENOMEM;
        }
        *ret_host = TAKE(host);
        return 0;
}

static void host_close(struct vgpu_host *host)
{
        if (!host->library)
                return;
        if (host->calls.nvmlShutdown)
                host->calls.nvmlShutdown();
        dlclose(host->library);
        host->library = NULL;
        memset(&host->calls, 0, sizeof(host->calls));
}

struct vgpu_host *vgpu_host_free(struct vgpu_host *host)
{
        if (!host)
                return NULL;

        host_close(host);
        free(host->wanted_path);
        free(host);
        return NULL;
}

const struct vgpu_error *vgpu_host_get_error(const struct vgpu_host *host)
{
        return &host->error.value;
}

static int describe(char *text, size_t room, struct about about)
{
        switch (about.kind) {
        case ABOUT_A_DEVICE:
                return snprintf(text, room, "device %u: ", about.id);
        case ABOUT_A_GPU_INSTANCE:
                return snprintf(text, room, "GPU instance %u of device %u: ", about.id, about.of);
        case ABOUT_AN_INSTANCE:
                return snprintf(text, room, "vGPU %u: ", about.id);
        case ABOUT_A_TYPE:
                return snprintf(text, room, "vGPU type %u: ", about.id);
        case ABOUT_A_PROCESS:
                return snprintf(text, room, "process %u of vGPU %u: ", about.id, about.of);
        case ABOUT_THE_HOST:
                break;
        }
        text[0] = '\0';
        return 0;
}

int host_set_error(struct vgpu_host *host, struct about about, enum vgpu_error_kind kind,
                   const char *hint, const char *message, ...)
{
        char text[384], subject[64];
        va_list args;

        describe(subject, sizeof(subject), about);
        va_start(args, message);
        vsnprintf(text, sizeof(text), message, args);
        va_end(args);
        return error_set(&host->error, kind, hint, "%s%s", subject, text);
}

int host_set_parameter(struct vgpu_host *host, struct about about, const char *parameter,
                       const char *message, ...)
{
        char text[384];
        va_list args;
        int r;

        va_start(args, message);
        vsnprintf(text, sizeof(text), message, args);
        va_end(args);
        r = host_set_error(host, about, VGPU_ERROR_INVALID_PARAMETER, "", "%s", text);
        snprintf(host->error.parameter, sizeof(host->error.parameter), "%s", parameter);
        return r;
}

int host_name_number(struct vgpu_host *host, int r, const char *parameter, int value)
{
        struct error failed = host->error;

        if (r == 0 || host->code != NVML_ERROR_INVALID_ARGUMENT)
                return r;
        return host_explain(host, &failed, parameter, "there is no %s %d", parameter, value);
}

int host_explain(struct vgpu_host *host, const struct error *failed, const char *parameter,
                 const char *message, ...)
{
        char text[sizeof(failed->message)];
        va_list args;

        va_start(args, message);
        vsnprintf(text, sizeof(text), message, args);
        va_end(args);
        host->error = *failed; /* its pointers are to the texts of host->error */
        snprintf(host->error.message, sizeof(host->error.message), "%.250s: %.250s", text,
                 failed->message);
        snprintf(host->error.parameter, sizeof(host->error.parameter), "%s", parameter);
        return host->error.value.code;
}

int host_set_no_memory(struct vgpu_host *host)
{
        return error_set_no_memory(&host->error);
}

int host_set_needs(struct vgpu_host *host, struct about about, const char *what, const char *since)
{
        char hint[256];

        snprintf(hint, sizeof(hint), "the driver is %s, its library %.120s",
                 *host->driver_version ? host->driver_version : "of an unknown version",
                 host->path);
        return host_set_error(host, about, VGPU_ERROR_NOT_IN_DRIVER, hint,
                              "%s is not in this driver (needs %s or newer)", what, since);
}

/* What the driver said, for who wants to know exactly. */
static int add_call(struct vgpu_host *host, int r, nvmlReturn_t code)
{
        snprintf(host->error.driver_call, sizeof(host->error.driver_call), "%s",
                 calls[host->call].name);
        host->error.value.driver_code = (int)code;
        return r;
}

int host_end(struct vgpu_host *host, nvmlReturn_t code)
{
        const char *name = calls[host->call].name;
        const struct nvml_code *explained = nvml_code_explain(code, host->about.kind, name);
        int r;

        host->code = code;
        if (code == NVML_SUCCESS)
                return 0;
        if (explained->kind == VGPU_ERROR_NOT_IN_DRIVER)
                r = host_set_needs(host, host->about, name, calls[host->call].since);
        else
                r = host_set_error(host, host->about, explained->kind, explained->hint,
                                   "%s (%s: %s, %d)", explained->meaning, name, explained->name,
                                   (int)code);
        return add_call(host, r, code);
}

int host_begin(struct vgpu_host *host, struct about about, enum nvml_call call)
{
        void *function;
        int r;

        error_clear(&host->error);
        host->code = NVML_SUCCESS;
        r = host_open(host);
        if (r < 0)
                return r;

        host->about = about;
        host->call = call;
        memcpy(&function, (const char *)&host->calls + calls[call].offset, sizeof(function));
        return function ? 0 : host_end(host, NVML_ERROR_FUNCTION_NOT_FOUND);
}

bool host_lacks(const struct vgpu_host *host, int r)
{
        return r < 0 && host->error.value.kind == VGPU_ERROR_NOT_IN_DRIVER;
}

static int load(struct vgpu_host *host, const char *path)
{
        host->library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
        return host->library ? 0 : -ELIBACC;
}

/* vgpud says where its library is. That it does not is no error: then the system's will do. */
static int load_from_manager(struct vgpu_host *host)
{
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = NULL;
        CLEANUP(vgpu_manager_freep) struct vgpu_manager *manager = NULL;
        char path[PATHS_MAX];
        int r;

        r = vgpu_client_new(&client, NULL);
        if (r < 0)
                return r;
        vgpu_client_set_timeout_ms(client, MANAGER_TIMEOUT_MS);
        r = vgpu_manager_lookup(client, &manager);
        if (r == 0 && !client_is_trusted(client)) /* the library is code */
                r = -EPERM;
        if (r < 0)
                return r;
        r = paths_join(path, manager->nvml_path, SONAME);
        return r < 0 ? r : load(host, path);
}

static int find(struct vgpu_host *host)
{
        const char *why;

        if (host->wanted_path) {
                if (load(host, host->wanted_path) == 0)
                        return 0;
                why = dlerror();
                return error_set(&host->error, VGPU_ERROR_NO_LIBRARY,
                                 "name an NVML library, or none to have one found",
                                 "cannot load the NVML library: %s", why);
        }
        if (load_from_manager(host) == 0 || load(host, SONAME) == 0)
                return 0;
        why = dlerror();
        return error_set(
                &host->error, VGPU_ERROR_NO_LIBRARY,
                "start vgpud, whose library is in the package openvgpu-nvml, or install NVIDIA's "
                "driver, or set OPENVGPU_NVML to its " SONAME,
                "there is no NVML library: %s", why);
}

/* As the linker knows it: a library that lacks functions has a path too. */
static void note_path(struct vgpu_host *host)
{
        struct link_map *map;

        if (dlinfo(host->library, RTLD_DI_LINKMAP, &map) == 0)
                snprintf(host->path, sizeof(host->path), "%s", map->l_name);
}

static void fill_calls(struct vgpu_host *host)
{
        for (size_t i = 0; i < NVML_CALL_COUNT; i++) {
                void *function = dlsym(host->library, calls[i].name);

                memcpy((char *)&host->calls + calls[i].offset, &function, sizeof(function));
        }
}

/* The oldest form will do where it is all that there is. */
static nvmlReturn_t initialize(struct vgpu_host *host)
{
        host->about = ABOUT_HOST;
        host->call = host->calls.nvmlInit_v2 ? NVML_CALL_nvmlInit_v2 : NVML_CALL_nvmlInit;
        if (host->calls.nvmlInit_v2)
                return host->calls.nvmlInit_v2();
        return host->calls.nvmlInit ? host->calls.nvmlInit() : NVML_ERROR_FUNCTION_NOT_FOUND;
}

int host_open(struct vgpu_host *host)
{
        nvmlReturn_t code;
        int r;

        if (host->library)
                return 0;
        error_clear(&host->error);
        r = find(host);
        if (r < 0)
                return r;

        fill_calls(host);
        note_path(host);
        code = initialize(host);
        if (code != NVML_SUCCESS) {
                r = host_end(host, code);
                host->calls.nvmlShutdown = NULL; /* nothing to take back */
                host_close(host);
                return r;
        }
        if (!host->calls.nvmlSystemGetDriverVersion ||
            host->calls.nvmlSystemGetDriverVersion(host->driver_version,
                                                   sizeof(host->driver_version)) != NVML_SUCCESS)
                host->driver_version[0] = '\0';
        return 0;
}

int host_device(struct vgpu_host *host, uint32_t device, nvmlDevice_t *ret_handle)
{
        struct about about = ABOUT_DEVICE(device);
        int r;

        r = HOST_CALL(host, about, nvmlDeviceGetHandleByIndex_v2, device, ret_handle);
        if (host_lacks(host, r))
                r = HOST_CALL(host, about, nvmlDeviceGetHandleByIndex, device, ret_handle);
        if (r < 0 && host->code == NVML_ERROR_INVALID_ARGUMENT)
                r = host_set_error(host, about, VGPU_ERROR_NO_SUCH_DEVICE,
                                   "'vgpu devices' and 'nvidia-smi -L' list them",
                                   "there is no such device");
        return r;
}

int host_gpu_instance(struct vgpu_host *host, uint32_t device, uint32_t gpu_instance,
                      nvmlGpuInstance_t *ret_handle)
{
        nvmlDevice_t handle;
        int r;

        r = host_device(host, device, &handle);
        if (r < 0)
                return r;
        return HOST_CALL(host, ABOUT_GPU_INSTANCE(gpu_instance, device),
                         nvmlDeviceGetGpuInstanceById, handle, gpu_instance, ret_handle);
}
