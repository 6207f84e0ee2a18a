/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFORMANCE_ROWS_H
#define CONFORMANCE_ROWS_H

/*
 * The words in which the rows of the conformance test are written:
 *
 *     ROW(function, CODE, SITUATION, (arguments), condition...)
 *
 * The function is called with the arguments in the situation and must answer the code; then the
 * condition must hold. Arguments and conditions speak of the scene `s` and of the scratch `o`:
 * OUT(field) is a place for an answer, IN(field, value) one that is filled before the call, NOW() what is
 * there after it. A call that fails must leave all of them as they were, but for INSUFFICIENT_SIZE.
 */

#include <stdbool.h>

#include "conformance/scene.h"

/* A place for each kind of answer. */
struct answers {
        unsigned int number, number2, number3, count, size;
        unsigned long long wide, wide2;
        char text[256];
        unsigned int ids[16], pids[4000];
        nvmlEnableState_t state;
        nvmlGpuVirtualizationMode_t virtualization;
        nvmlHostVgpuMode_t host_mode;
        nvmlVgpuVmIdType_t vm_id_type;
        nvmlValueType_t value_type;
        nvmlVgpuHeterogeneousMode_v1_t mixing;
        nvmlVgpuPlacementId_v1_t placement;
        nvmlVgpuPlacementList_v1_t places_v1;
        nvmlVgpuPlacementList_v2_t places;
        nvmlVgpuCreatablePlacementInfo_v1_t places_gi;
        nvmlVgpuRuntimeState_v1_t runtime;
        nvmlVgpuTypeBar1Info_v1_t bar1;
        nvmlVgpuTypeIdInfo_v1_t types;
        nvmlVgpuTypeMaxInstance_v1_t most;
        nvmlActiveVgpuInstanceInfo_v1_t active;
        nvmlGridLicensableFeatures_v1_t features_v1;
        nvmlGridLicensableFeatures_v2_t features_v2;
        nvmlGridLicensableFeatures_v3_t features_v3;
        nvmlGridLicensableFeatures_t features;
        nvmlVgpuLicenseInfo_v1_t licence_v1;
        nvmlVgpuLicenseInfo_t licence;
        nvmlEncoderSessionInfo_t encoders[4];
        nvmlFBCSessionInfo_t captures[4];
        nvmlFBCStats_t capture_stats;
        nvmlAccountingStats_t stats;
        nvmlVgpuSchedulerCapabilities_t scheduler_caps;
        nvmlVgpuSchedulerGetState_t scheduler;
        nvmlVgpuSchedulerStateInfo_v1_t scheduler_gi;
        nvmlVgpuSchedulerStateInfo_v2_t scheduler_v2;
        nvmlVgpuSchedulerLog_t log;
        nvmlVgpuSchedulerLogInfo_v1_t log_gi;
        nvmlVgpuSchedulerLogInfo_v2_t log_v2;
        nvmlVgpuVersion_t supported, current;
        nvmlVgpuPgpuCompatibility_t compatibility;
        unsigned char blob[1024];
        nvmlVgpuInstanceUtilizationSample_t samples[8];
        nvmlVgpuInstanceUtilizationInfo_v1_t info[8];
        nvmlVgpuInstancesUtilizationInfo_v1_t infos;
        nvmlVgpuProcessUtilizationSample_t process_samples[8];
        nvmlVgpuProcessUtilizationInfo_v1_t process_info[8];
        nvmlVgpuProcessesUtilizationInfo_v1_t process_infos;
};

struct scratch {
        struct answers now;
        struct answers before; /* what a call that fails must leave */
};

/* One run through all rows. */
struct run;

/* row_begin() - set the scene; false: this row is not played. row_end() - judge what came. */
void row_begin(struct run *run, const char *function, enum situation situation,
               const struct scene **ret_scene, struct scratch **ret_scratch);
void row_end(struct run *run, nvmlReturn_t expected, nvmlReturn_t got, bool condition,
             const char *text, int line);

#define ROW(function, code, situation, arguments, ...)                                      \
        do {                                                                                \
                const struct scene *s;                                                      \
                struct scratch *o;                                                          \
                nvmlReturn_t r_;                                                            \
                row_begin(run, #function, situation, &s, &o);                               \
                r_ = function arguments;                                                    \
                row_end(run, CODE_##code, r_, true __VA_OPT__(&&(__VA_ARGS__)), #arguments, \
                        __LINE__);                                                          \
        } while (0);

#define CODE_SUCCESS                   NVML_SUCCESS
#define CODE_UNINITIALIZED             NVML_ERROR_UNINITIALIZED
#define CODE_INVALID_ARGUMENT          NVML_ERROR_INVALID_ARGUMENT
#define CODE_NOT_SUPPORTED             NVML_ERROR_NOT_SUPPORTED
#define CODE_NO_PERMISSION             NVML_ERROR_NO_PERMISSION
#define CODE_NOT_FOUND                 NVML_ERROR_NOT_FOUND
#define CODE_INSUFFICIENT_SIZE         NVML_ERROR_INSUFFICIENT_SIZE
#define CODE_DRIVER_NOT_LOADED         NVML_ERROR_DRIVER_NOT_LOADED
#define CODE_GPU_IS_LOST               NVML_ERROR_GPU_IS_LOST
#define CODE_RESET_REQUIRED            NVML_ERROR_RESET_REQUIRED
#define CODE_IN_USE                    NVML_ERROR_IN_USE
#define CODE_ARGUMENT_VERSION_MISMATCH NVML_ERROR_ARGUMENT_VERSION_MISMATCH
#define CODE_UNKNOWN                   NVML_ERROR_UNKNOWN

#define OUT(field) (&o->now.field)
#define NOW(field) (o->now.field)
#define IN(field, ...)                                         \
        (o->now.field = (__typeof__(o->now.field))__VA_ARGS__, \
         o->before.field = (__typeof__(o->now.field))__VA_ARGS__, &o->now.field)

/* Those that every function of a vGPU, of a type or of a device answers in the same way. */
#define INSTANCE_ROWS(function, ...)                                                \
        ROW(function, INVALID_ARGUMENT, HOST, (0 __VA_OPT__(, ) __VA_ARGS__))       \
        ROW(function, NOT_FOUND, HOST, (SCENE_NOBODY __VA_OPT__(, ) __VA_ARGS__))   \
        ROW(function, NOT_FOUND, HOST, (FIXTURE_ASLEEP __VA_OPT__(, ) __VA_ARGS__)) \
        ROW(function, NOT_FOUND, GUEST, (FIXTURE_INFER __VA_OPT__(, ) __VA_ARGS__)) \
        ROW(function, SUCCESS, GUEST, (FIXTURE_TRAIN __VA_OPT__(, ) __VA_ARGS__))   \
        ROW(function, SUCCESS, HOST, (FIXTURE_TRAIN __VA_OPT__(, ) __VA_ARGS__))
#define TYPE_ROWS(function, ...)                                                          \
        ROW(function, INVALID_ARGUMENT, HOST, (0 __VA_OPT__(, ) __VA_ARGS__))             \
        ROW(function, INVALID_ARGUMENT, HOST, (SCENE_NO_TYPE __VA_OPT__(, ) __VA_ARGS__)) \
        ROW(function, SUCCESS, HOST, (s->type __VA_OPT__(, ) __VA_ARGS__))                \
        ROW(function, SUCCESS, HOST, (SCENE_MIG_TYPE __VA_OPT__(, ) __VA_ARGS__))
#define DEVICE_ROWS(function, ...)                                               \
        ROW(function, INVALID_ARGUMENT, HOST, (NULL __VA_OPT__(, ) __VA_ARGS__)) \
        ROW(function, INVALID_ARGUMENT, HOST,                                    \
            ((nvmlDevice_t)(uintptr_t)1 __VA_OPT__(, ) __VA_ARGS__))             \
        ROW(function, GPU_IS_LOST, HOST, (s->lost __VA_OPT__(, ) __VA_ARGS__))
#define HOSTING_ROWS(function, ...)                                              \
        DEVICE_ROWS(function __VA_OPT__(, ) __VA_ARGS__)                         \
        ROW(function, NOT_SUPPORTED, HOST, (s->bare __VA_OPT__(, ) __VA_ARGS__)) \
        ROW(function, NOT_SUPPORTED, GUEST, (s->device __VA_OPT__(, ) __VA_ARGS__))
#define GPU_INSTANCE_ROWS(function, ...)                                         \
        ROW(function, INVALID_ARGUMENT, HOST, (NULL __VA_OPT__(, ) __VA_ARGS__)) \
        ROW(function, INVALID_ARGUMENT, HOST,                                    \
            ((nvmlGpuInstance_t)(uintptr_t)1 __VA_OPT__(, ) __VA_ARGS__))        \
        ROW(function, INVALID_ARGUMENT, HOST, (s->gi, NULL))                     \
        ROW(function, NOT_SUPPORTED, HOST, (s->gi_bare __VA_OPT__(, ) __VA_ARGS__))
/* The manager's answers to a change. */
#define CHANGE_ROWS(function, ...)                           \
        ROW(function, SUCCESS, ACCEPTS, (__VA_ARGS__))       \
        ROW(function, NO_PERMISSION, DENIES, (__VA_ARGS__))  \
        ROW(function, NOT_SUPPORTED, REFUSES, (__VA_ARGS__)) \
        ROW(function, UNKNOWN, BROKEN, (__VA_ARGS__))

/* The chapters. */
void play_types(struct run *run);
void play_instances(struct run *run);
void play_devices(struct run *run);
void play_migration(struct run *run);
void play_schedulers(struct run *run);
void play_utilization(struct run *run);
void play_gpu_instances(struct run *run);

#endif
