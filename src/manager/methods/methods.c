/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/methods/methods.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "daemon/log.h"
#include "daemon/uuid.h"
#include "manager/control/control.h"
#include "manager/control/describe.h"
#include "manager/methods/instance-create.h"
#include "manager/methods/instance-resize.h"
#include "manager/methods/methods-history.h"
#include "manager/methods/methods-image.h"
#include "manager/methods/methods-meter.h"
#include "manager/methods/methods-mig.h"
#include "manager/methods/methods-scheduler.h"
#include "manager/methods/methods-setting.h"
#include "manager/model/account.h"
#include "manager/model/device.h"
#include "manager/model/instance-life.h"
#include "manager/model/instance.h"
#include "manager/model/launch.h"
#include "manager/model/manager.h"
#include "manager/model/place-text.h"
#include "manager/model/policy.h"
#include "manager/operation/gate-wait.h"
#include "manager/operation/group-start.h"
#include "manager/operation/operation-engine.h"
#include "manager/operation/operation.h"
#include "manager/operation/shared.h"
#include "manager/residency/residency.h"
#include "record/writer.h"

/* What a gate gets to drain when the client does not say. */
#define TIMEOUT_SECONDS 10.0

/* That its caller may use it has been checked. */
static struct instance *find_named(struct control_pending *pending, struct failure *failure)
{
        return instance_find(pending->manager, control_call_text(&pending->call, "name"), failure);
}

static int get_info(struct control_pending *pending, struct failure *failure)
{
        (void)failure;
        control_reply(pending, describe_manager(pending->manager));
        return 0;
}

static int list_devices(struct control_pending *pending, struct failure *failure)
{
        struct manager *manager = pending->manager;
        json_t *devices = json_array();

        (void)failure;
        for (size_t i = 0; i < manager->n_devices; i++)
                json_array_append_new(devices, describe_device(&manager->device[i]));
        control_reply(pending, json_pack("{so}", "devices", devices));
        return 0;
}

/* Names of containers are for those who see what programs in them use. */
static void write_vgpu(struct writer *writer, const struct instance *instance,
                       const struct control_pending *pending)
{
        describe_write_instance(writer, instance,
                                pending->sees_all || pending->uid == instance->owner);
}

static int list_vgpus(struct control_pending *pending, struct failure *failure)
{
        const char *name = control_call_text(&pending->call, "name");
        struct instance *instance = NULL;
        struct writer writer = { 0 };

        if (name) {
                instance = instance_find(pending->manager, name, failure);
                if (!instance)
                        return -ENOENT;
        }
        writer_begin_object(&writer, NULL);
        writer_begin_object(&writer, "parameters");
        writer_begin_array(&writer, "vgpus");
        if (instance)
                write_vgpu(&writer, instance, pending);
        else
                list_for_each(instance, &pending->manager->instances, link)
                        write_vgpu(&writer, instance, pending);
        writer_end_array(&writer);
        writer_end_object(&writer);
        writer_end_object(&writer);
        control_reply_text(pending, &writer);
        return 0;
}

/* Who may be another vGPU's successor could get what the pool still has of it. */
static int check_uuid(const struct control_pending *pending, const char *uuid,
                      struct failure *failure)
{
        struct failure none = { 0 };
        uint8_t bytes[16];

        if (!uuid)
                return 0;
        if (!account_is_operator(pending->uid))
                return failure_set(failure, -EPERM, "PermissionDenied", "do it as root",
                                   "only root chooses the UUID of a vGPU");
        if (strlen(uuid) != UUID_TEXT_MAX - 1 || uuid_parse(bytes, uuid) < 0)
                return failure_parameter(failure, "uuid", "", "'%.64s' is no UUID", uuid);
        if (instance_find(pending->manager, uuid, &none))
                return failure_set(failure, -EEXIST, "VgpuExists", "load it into that one",
                                   "there is a vGPU with UUID %s already", uuid);
        return 0;
}

/* In ms; 0: none was given. What is shorter than one ms is no "none". */
static uint64_t get_idle_after(const struct control_pending *pending)
{
        double seconds = control_call_seconds(&pending->call, "idle_after", 0);
        uint64_t ms = (uint64_t)(seconds * 1000 + 0.5);

        return seconds > 0 && ms == 0 ? 1 : ms;
}

static int find_named_devices(struct manager *manager, const char *list,
                              struct instance_request *request, struct failure *failure)
{
        struct place place;
        int r = place_find(manager, list, &place, failure);

        if (r < 0)
                return r;
        request->n_devices = place_count(&place);
        for (size_t i = 0; i < request->n_devices; i++)
                request->device[i] = place.device[i];
        return 0;
}

static int find_devices(const struct control_pending *pending, struct instance_request *request,
                        struct failure *failure)
{
        const char *list = control_call_text(&pending->call, "device");
        uint32_t n = control_call_number(&pending->call, "devices", 0);
        int r = list ? find_named_devices(pending->manager, list, request, failure) : 0;

        if (r < 0)
                return r;
        if (n > INSTANCE_PARTS_MAX)
                return failure_parameter(failure, "devices", "ask for fewer",
                                         "a vGPU has at most %d devices", INSTANCE_PARTS_MAX);
        if (list && n > 0 && n != request->n_devices)
                return failure_parameter(failure, "devices", "leave out one of them",
                                         "%u devices were asked for, and %zu are named", n,
                                         request->n_devices);
        if (!list)
                request->n_devices = n ? n : 1;
        return 0;
}

static int check_new_vgpu(struct control_pending *pending, const struct instance_request *request,
                          struct failure *failure)
{
        int r = instance_check_new(pending->manager, request, failure);

        if (r == 0)
                control_reply(pending, json_object());
        return r;
}

static int create_vgpu(struct control_pending *pending, struct failure *failure)
{
        struct instance_request request = {
                .name = control_call_text(&pending->call, "name"),
                .uuid = control_call_text(&pending->call, "uuid"),
                .frame_buffer = control_call_size(&pending->call, "frame_buffer"),
                .is_transient = control_call_bool(&pending->call, "transient"),
                .owner = control_call_number(&pending->call, "owner", pending->uid),
                .creator = pending->pid,
                .share = control_call_number(&pending->call, "share", 0),
                .class = control_call_text(&pending->call, "swap_class"),
                .pool_group = control_call_text(&pending->call, "pool_group"),
                .idle_after_ms = get_idle_after(pending),
                .idle_keeps_context = control_call_bool(&pending->call, "idle_keep_context"),
        };
        struct instance *instance;
        int r = check_uuid(pending, request.uuid, failure);

        if (r == 0 && request.owner != pending->uid && !account_is_operator(pending->uid))
                r = failure_set(failure, -EPERM, "PermissionDenied", "do it as root",
                                "only root makes vGPUs for other users");
        if (r == 0 && request.pool_group && !account_is_operator(pending->uid))
                r = failure_set(failure, -EPERM, "PermissionDenied",
                                "leave it out: your own vGPUs are of one group, or do it as root",
                                "only root says which vGPUs may know what others have in the pool");
        if (r == 0 && request.share)
                r = policy_check_share(pending->uid, failure);
        if (r == 0 && request.name)
                r = policy_check_name(pending->uid, request.name, failure);
        if (r < 0)
                return r;
        r = find_devices(pending, &request, failure);
        if (r < 0)
                return r;
        if (control_call_bool(&pending->call, "dry"))
                return check_new_vgpu(pending, &request, failure);
        r = instance_create(pending->manager, &request, &instance, failure);
        if (r < 0)
                return r;
        control_reply(pending, json_pack("{so}", "vgpu", describe_instance(instance)));
        return 0;
}

static int set_vgpu_idle(struct control_pending *pending, struct failure *failure)
{
        struct instance *instance = find_named(pending, failure);
        int r;

        if (!instance)
                return -ENOENT;
        r = residency_set(instance, get_idle_after(pending),
                          control_call_bool(&pending->call, "idle_keep_context"), failure);
        if (r < 0)
                return r;
        control_reply(pending, json_pack("{so}", "vgpu", describe_instance(instance)));
        return 0;
}

static int set_vgpu_class(struct control_pending *pending, struct failure *failure)
{
        struct instance *instance = find_named(pending, failure);
        int r = -ENOENT;

        if (instance)
                r = residency_record_set_class(
                        &instance->residency, instance->manager->store, instance->id,
                        control_call_text(&pending->call, "swap_class"), failure);
        if (r < 0)
                return r;
        observer_tell_changed(&instance->manager->observers);
        control_reply(pending, json_pack("{so}", "vgpu", describe_instance(instance)));
        return 0;
}

static int remove_vgpu(struct control_pending *pending, struct failure *failure)
{
        const char *name = control_call_text(&pending->call, "name");
        struct instance *instance;
        json_t *was;
        int r;

        (void)instance_find_settled(pending->manager, name, failure);
        instance = find_named(pending, failure);
        if (!instance)
                return -ENOENT;
        launch_drop(instance, pending->pid); /* it asks, so it is no other program */
        was = describe_instance(instance);
        r = instance_remove(instance, failure);
        if (r < 0) {
                json_decref(was);
                return r;
        }
        control_reply(pending, json_pack("{so}", "vgpu", was));
        return 0;
}

static int rename_vgpu(struct control_pending *pending, struct failure *failure)
{
        struct instance *instance = find_named(pending, failure);
        const char *to = control_call_text(&pending->call, "to");
        int r;

        if (!instance)
                return -ENOENT;
        r = policy_check_name(pending->uid, instance->name, failure);
        if (r == 0)
                r = policy_check_name(pending->uid, to, failure);
        if (r == 0)
                r = instance_rename(instance, to, failure);
        if (r < 0)
                return r;
        control_reply(pending, json_pack("{so}", "vgpu", describe_instance(instance)));
        return 0;
}

static int resize_vgpu(struct control_pending *pending, struct failure *failure)
{
        struct instance *instance = find_named(pending, failure);
        int r;

        if (!instance)
                return -ENOENT;
        r = instance_resize(instance, control_call_size(&pending->call, "frame_buffer"), failure);
        if (r < 0)
                return r;
        control_reply(pending, json_pack("{so}", "vgpu", describe_instance(instance)));
        return 0;
}

/* How much of @path names its folder. */
static int folder_length(const char *path)
{
        const char *end = strrchr(path, '/');

        return end ? (int)(end - path) : 0;
}

/*
 * The gate's folder is there for scripts and tools that put their own LD_PRELOAD in the place of ours. A simulated GPU
 * has a CUDA runtime of its own, beside its driver (src/cudart/runtime.h).
 */
static json_t *make_library_path(const struct manager *manager)
{
        return json_sprintf("%.*s:%s%s%.*s", folder_length(manager->gate_path), manager->gate_path,
                            manager->nvml_path, manager->simulation[0] ? ":" : "",
                            manager->simulation[0] ? folder_length(manager->driver_path) : 0,
                            manager->driver_path);
}

#define UUIDS_MAX (INSTANCE_PARTS_MAX * MOVER_UUID_MAX)

static const char *list_uuids(const struct instance *instance, char text[UUIDS_MAX])
{
        size_t length = 0;

        for (size_t i = 0; i < instance->n_parts; i++)
                length += (size_t)snprintf(text + length, UUIDS_MAX - length, i ? ",%s" : "%s",
                                           instance->part[i].device->uuid);
        return text;
}

static json_t *make_environment(const struct instance *instance)
{
        const struct manager *manager = instance->manager;
        char devices[UUIDS_MAX];
        json_t *environment = json_pack(
                "{ss, so, ss, ss, ss, ss}", "LD_PRELOAD", manager->gate_path, "LD_LIBRARY_PATH",
                make_library_path(manager), "OPENVGPU_VGPU", instance->uuid, "OPENVGPU_RUN",
                manager->options->run_directory, "OPENVGPU_DRIVER", manager->driver_path,
                "CUDA_VISIBLE_DEVICES", list_uuids(instance, devices));

        if (manager->simulation[0])
                json_object_set_new(environment, "OPENVGPU_SIM", json_string(manager->simulation));
        return environment;
}

static int prepare_run(struct control_pending *pending, struct failure *failure)
{
        struct instance *instance = find_named(pending, failure);
        int r = 0;

        if (!instance)
                return -ENOENT;
        if (access(pending->manager->gate_path, R_OK) < 0)
                return failure_set(failure, -errno, "Failed", "install OpenVGPU again",
                                   "the gate %.200s cannot be read: %s",
                                   pending->manager->gate_path, strerror(errno));
        if (instance_is_off(instance) && !instance_is_away(instance) &&
            control_call_bool(&pending->call, "usable"))
                return failure_set(failure, -EHOSTDOWN, "WrongState", "vgpu resume it first",
                                   "vGPU %s is %s", instance->name,
                                   instance_state_name(instance->state));
        if (control_call_bool(&pending->call, "becomes"))
                r = launch_add(instance, pending->pid, pending->uid, failure);
        if (r < 0)
                return r;
        control_reply(pending, json_pack("{so, so}", "vgpu", describe_instance(instance),
                                         "environment", make_environment(instance)));
        return 0;
}

/* As an example of a place: of a vGPU of several devices, it is another one than its own. */
static struct place reverse(struct place place)
{
        struct place reversed = place_nowhere;
        size_t n = place_count(&place);

        for (size_t i = 0; i < n; i++)
                reversed.device[i] = place.device[n - 1 - i];
        return reversed;
}

/* As many as it has: the first for its first part. */
static int find_target(const struct instance *instance, const char *list, struct place *ret_place,
                       struct failure *failure)
{
        int r = place_find(instance->manager, list, ret_place, failure);
        const struct place other = reverse(instance_place(instance));
        char hint[96], text[PLACE_TEXT_MAX];
        size_t n = place_count(ret_place);

        if (r < 0 || n == instance->n_parts)
                return r;
        snprintf(hint, sizeof(hint), "name %zu device%s, for example --device %s",
                 instance->n_parts, instance->n_parts > 1 ? "s" : "", place_describe(&other, text));
        return failure_parameter(failure, "device", hint,
                                 "vGPU %s has %zu device%s, and %zu %s named", instance->name,
                                 instance->n_parts, instance->n_parts > 1 ? "s" : "", n,
                                 n > 1 ? "are" : "is");
}

static int start_operation(struct control_pending *pending, const struct operation_kind *kind,
                           struct failure *failure)
{
        const char *device = control_call_text(&pending->call, "device");
        struct instance *instance = find_named(pending, failure);
        struct operation_request request = {
                .keep_context = control_call_bool(&pending->call, "keep_context"),
                .must_verify = control_call_bool(&pending->call, "verify"),
                .will_detach = control_call_bool(&pending->call, "detach"),
                .pre_copies = control_call_bool(&pending->call, "pre_copy"),
                .timeout_ms = (uint32_t)(1000 * control_call_seconds(&pending->call, "timeout",
                                                                     TIMEOUT_SECONDS)),
                .pending = pending,
        };
        int r = 0;

        if (!instance)
                return -ENOENT;
        if (device)
                r = find_target(instance, device, &request.target, failure);
        if (r < 0)
                return r;
        if (request.timeout_ms == 0)
                request.timeout_ms = 1;
        if (control_call_bool(&pending->call, "group"))
                return group_start(instance, kind, &request, failure);
        r = operation_start(instance, kind, &request, failure);
        if (r == -EAGAIN) /* a manager that has just started cannot tell yet */
                r = gate_wait_begin(instance, shared_find_unheard, pending, request.timeout_ms,
                                    failure);
        return r;
}

/* One that has left by itself is off its device already: it stays there. */
static int suspend_vgpu(struct control_pending *pending, struct failure *failure)
{
        struct instance *instance = find_named(pending, failure);
        int r;

        if (!instance)
                return -ENOENT;
        if (!instance_is_away(instance) || instance->operation)
                return start_operation(pending, &operation_suspend, failure);
        r = instance_check_no_image(instance, failure);
        if (r == 0)
                r = residency_keep_off(instance, failure);
        if (r < 0)
                return r;
        control_reply(pending, operation_report_left(instance));
        return 0;
}

static int resume_vgpu(struct control_pending *pending, struct failure *failure)
{
        return start_operation(pending, &operation_resume, failure);
}

/* What is off its device moves by coming back elsewhere. */
static int migrate_vgpu(struct control_pending *pending, struct failure *failure)
{
        struct instance *instance = find_named(pending, failure);

        if (!instance)
                return -ENOENT;
        return start_operation(pending,
                               instance_is_off(instance) ? &operation_resume : &operation_migrate,
                               failure);
}

static const struct control_parameter no_parameters[] = { { 0 } };
static const struct control_parameter list_parameters[] = { { "name", CONTROL_TEXT, false },
                                                            { 0 } };
static const struct control_parameter name_parameters[] = { { "name", CONTROL_TEXT, true }, { 0 } };
static const struct control_parameter rename_parameters[] = { { "name", CONTROL_TEXT, true },
                                                              { "to", CONTROL_TEXT, true },
                                                              { 0 } };
static const struct control_parameter resize_parameters[] = {
        { "name", CONTROL_TEXT, true },
        { "frame_buffer", CONTROL_SIZE, true },
        { 0 },
};
static const struct control_parameter run_parameters[] = {
        { "name", CONTROL_TEXT, true },
        { "becomes", CONTROL_BOOL, false },
        { "usable", CONTROL_BOOL, false },
        { 0 },
};
static const struct control_parameter create_parameters[] = {
        { "name", CONTROL_TEXT, false },          { "uuid", CONTROL_TEXT, false },
        { "frame_buffer", CONTROL_SIZE, true },   { "device", CONTROL_TEXT, false },
        { "devices", CONTROL_NUMBER, false },     { "transient", CONTROL_BOOL, false },
        { "share", CONTROL_NUMBER, false },       { "owner", CONTROL_NUMBER, false },
        { "idle_after", CONTROL_SECONDS, false }, { "idle_keep_context", CONTROL_BOOL, false },
        { "swap_class", CONTROL_TEXT, false },    { "pool_group", CONTROL_TEXT, false },
        { "dry", CONTROL_BOOL, false },           { 0 },
};
static const struct control_parameter class_parameters[] = { { "name", CONTROL_TEXT, true },
                                                             { "swap_class", CONTROL_TEXT, true },
                                                             { 0 } };
static const struct control_parameter idle_parameters[] = {
        { "name", CONTROL_TEXT, true },
        { "idle_after", CONTROL_SECONDS, false },
        { "idle_keep_context", CONTROL_BOOL, false },
        { 0 },
};
static const struct control_parameter scheduler_parameters[] = { { "device", CONTROL_TEXT, true },
                                                                 { 0 } };
static const struct control_parameter log_parameters[] = { { "device", CONTROL_TEXT, true },
                                                           { "from", CONTROL_SIZE, false },
                                                           { 0 } };
static const struct control_parameter suspend_parameters[] = {
        { "name", CONTROL_TEXT, true },          { "timeout", CONTROL_SECONDS, false },
        { "keep_context", CONTROL_BOOL, false }, { "verify", CONTROL_BOOL, false },
        { "group", CONTROL_BOOL, false },        { "detach", CONTROL_BOOL, false },
        { "pre_copy", CONTROL_BOOL, false },     { 0 },
};
static const struct control_parameter resume_parameters[] = {
        { "name", CONTROL_TEXT, true },
        { "device", CONTROL_TEXT, false },
        { "timeout", CONTROL_SECONDS, false },
        { "group", CONTROL_BOOL, false },
        { 0 },
};
static const struct control_parameter migrate_parameters[] = {
        { "name", CONTROL_TEXT, true },
        { "device", CONTROL_TEXT, true },
        { "timeout", CONTROL_SECONDS, false },
        { 0 },
};

static const struct control_method methods[] = {
        { "GetInfo", CONTROL_ANYBODY, get_info, no_parameters },
        { "ListDevices", CONTROL_ANYBODY, list_devices, no_parameters },
        { "ListVgpus", CONTROL_ANYBODY, list_vgpus, list_parameters },
        { "CreateVgpu", CONTROL_ANYBODY, create_vgpu, create_parameters },
        { "RemoveVgpu", CONTROL_OWNER_WAITS, remove_vgpu, name_parameters },
        { "RenameVgpu", CONTROL_OWNER_WAITS, rename_vgpu, rename_parameters },
        { "ResizeVgpu", CONTROL_OWNER_WAITS, resize_vgpu, resize_parameters },
        { "SetVgpuIdle", CONTROL_OWNER, set_vgpu_idle, idle_parameters },
        { "SetVgpuClass", CONTROL_OWNER, set_vgpu_class, class_parameters },
        { "PrepareRun", CONTROL_OWNER, prepare_run, run_parameters },
        { "SuspendVgpu", CONTROL_OWNER_STEWARD_WAITS, suspend_vgpu, suspend_parameters },
        { "ResumeVgpu", CONTROL_OWNER_STEWARD_WAITS, resume_vgpu, resume_parameters },
        { "MigrateVgpu", CONTROL_OWNER_STEWARD_WAITS, migrate_vgpu, migrate_parameters },
        { "GetScheduler", CONTROL_ANYBODY, methods_get_scheduler, scheduler_parameters },
        { "GetSchedulerLog", CONTROL_ANYBODY, methods_get_scheduler_log, log_parameters },
};

static void refuse(struct control_pending *pending, struct failure *failure, int error)
{
        char quoted[LOG_QUOTED_MAX], method[LOG_QUOTED_MAX];

        (void)failure_from_errno(failure, error, pending->call.method);
        log_event_of(pending->uid, LOG_LEVEL_NOTICE, "refused a request",
                     "method=%s uid=%u error=%s reason=%s", log_quote(method, pending->call.method),
                     pending->uid, failure->name, log_quote(quoted, failure->message));
        control_fail(pending, failure);
}

static const struct control_method *find(const struct control_method *table, size_t n,
                                         const char *name)
{
        for (size_t i = 0; i < n; i++)
                if (strcmp(table[i].name, name) == 0)
                        return &table[i];
        return NULL;
}

static int check_operator(const struct control_pending *pending, struct failure *failure)
{
        if (account_is_operator(pending->uid))
                return 0;
        return failure_set(failure, -EACCES, "PermissionDenied", "try it as root, with sudo",
                           "only root may do this; you are user %u", pending->uid);
}

static int check_steward(const struct control_pending *pending, struct failure *failure)
{
        if (pending->moves_all)
                return 0;
        return failure_set(failure, -EACCES, "PermissionDenied", "try it as root, with sudo",
                           "only root and stewards (vgpud --stewards) may do this; you are user %u",
                           pending->uid);
}

static int check_owner(const struct control_pending *pending, struct failure *failure)
{
        const char *name = control_call_text(&pending->call, "name");

        return instance_find_own(pending->manager, name, pending->uid, failure) ? 0 : -ENOENT;
}

/* Before its parameters are known to be right. */
static int check_user(const struct control_pending *pending, enum control_caller caller,
                      struct failure *failure)
{
        if (caller == CONTROL_OPERATOR)
                return check_operator(pending, failure);
        return caller == CONTROL_STEWARD ? check_steward(pending, failure) : 0;
}

/* Whoever may ask for every vGPU learns from the method itself that there is none of that name. */
static bool must_own(const struct control_pending *pending, enum control_caller caller)
{
        if (caller == CONTROL_OWNER_STEWARD_WAITS)
                return !pending->moves_all;
        return caller == CONTROL_OWNER || caller == CONTROL_OWNER_WAITS;
}

static bool waits(enum control_caller caller)
{
        return caller == CONTROL_OWNER_WAITS || caller == CONTROL_OWNER_STEWARD_WAITS;
}

/* 1: it waits, and is made again. */
static int wait_for_operation(struct control_pending *pending, struct failure *failure)
{
        struct instance *instance = find_named(pending, failure);

        if (!instance)
                return -ENOENT;
        return operation_call_after(instance, pending);
}

static const struct control_method *find_method(const char *name)
{
        const struct {
                const struct control_method *methods;
                size_t n;
        } tables[] = {
                { methods, sizeof(methods) / sizeof(methods[0]) },
                { methods_history, n_methods_history },
                { methods_image, n_methods_image },
                { methods_meter, n_methods_meter },
                { methods_setting, n_methods_setting },
                { methods_mig, n_methods_mig },
        };
        const struct control_method *method = NULL;

        for (size_t i = 0; !method && i < sizeof(tables) / sizeof(tables[0]); i++)
                method = find(tables[i].methods, tables[i].n, name);
        return method;
}

static int call(struct control_pending *pending, struct failure *failure)
{
        const struct control_method *method = find_method(pending->call.method);
        int r = 0;

        if (!method)
                return failure_set(failure, -ENOSYS, "MethodNotFound",
                                   "upgrade vgpud and start it again",
                                   "this vgpud (%s) has no method %.64s", OPENVGPU_VERSION,
                                   pending->call.method);
        r = check_user(pending, method->caller, failure);
        if (r == 0)
                r = control_call_check(&pending->call, method->parameters, failure);
        if (r == 0 && must_own(pending, method->caller))
                r = check_owner(pending, failure);
        if (r == 0 && waits(method->caller))
                r = wait_for_operation(pending, failure);
        if (r != 0)
                return r < 0 ? r : 0;
        return method->function(pending, failure);
}

void methods_call(struct control_pending *pending)
{
        struct failure failure = { 0 };
        int r = call(pending, &failure);

        if (r < 0)
                refuse(pending, &failure, r);
}
