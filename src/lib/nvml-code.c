/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/nvml-code.h"

#include <string.h>

#define ANSWER(code_, kind_, meaning_, hint_)                                           \
        {                                                                               \
                .code = NVML_ERROR_##code_, .name = #code_, .kind = VGPU_ERROR_##kind_, \
                .meaning = (meaning_), .hint = (hint_)                                  \
        }

#define UPGRADE "a newer driver may have it"

static const struct nvml_code codes[] = {
        ANSWER(UNINITIALIZED, FAILED, "somebody else has shut NVML down in this process", ""),
        ANSWER(INVALID_ARGUMENT, INVALID_PARAMETER, "not a valid value", ""),
        ANSWER(NOT_SUPPORTED, NOT_SUPPORTED, "not supported, or not in its present state", ""),
        ANSWER(NO_PERMISSION, PERMISSION_DENIED, "permission denied", "try it as root"),
        ANSWER(ALREADY_INITIALIZED, FAILED, "initialized twice", ""),
        ANSWER(NOT_FOUND, FAILED, "not found", ""),
        ANSWER(INSUFFICIENT_SIZE, DRIVER_FAILED, "the driver wants ever more room", ""),
        ANSWER(INSUFFICIENT_POWER, DRIVER_FAILED, "the device has too little power",
               "look at its power cables"),
        ANSWER(DRIVER_NOT_LOADED, NOT_LOADED, "the driver is not loaded",
               "load NVIDIA's driver, or start vgpud"),
        ANSWER(TIMEOUT, TIMED_OUT, "timed out", "try it again"),
        ANSWER(IRQ_ISSUE, DRIVER_FAILED, "the device's interrupts do not arrive",
               "see the kernel's log"),
        ANSWER(LIBRARY_NOT_FOUND, NO_LIBRARY, "a library that NVML needs is missing",
               "install the driver anew"),
        ANSWER(FUNCTION_NOT_FOUND, NOT_IN_DRIVER, "the driver lacks it", UPGRADE),
        ANSWER(CORRUPTED_INFOROM, DRIVER_FAILED, "the device's infoROM is damaged", ""),
        ANSWER(GPU_IS_LOST, DEVICE_LOST, "the device fell off the bus",
               "see the kernel's log; a reboot of the host may bring it back"),
        ANSWER(RESET_REQUIRED, RESET_REQUIRED, "a reset is required first",
               "reset the device, or reboot the host"),
        ANSWER(OPERATING_SYSTEM, DRIVER_FAILED, "the operating system refuses access",
               "see the device files and the control group of this process"),
        ANSWER(LIB_RM_VERSION_MISMATCH, DRIVER_FAILED,
               "the NVML library and the kernel's driver are of different versions",
               "reboot the host after a change of the driver"),
        ANSWER(IN_USE, BUSY, "in use by a vGPU", "end or move the vGPUs first"),
        ANSWER(MEMORY, OUT_OF_MEMORY, "out of memory", ""),
        ANSWER(NO_DATA, NOT_SUPPORTED, "nothing is recorded", ""),
        ANSWER(VGPU_ECC_NOT_SUPPORTED, NOT_SUPPORTED, "not while ECC is on",
               "switch ECC off, and reboot"),
        ANSWER(INSUFFICIENT_RESOURCES, NO_ROOM, "too little of the device is left", ""),
        ANSWER(FREQ_NOT_SUPPORTED, INVALID_PARAMETER, "not a frequency of this device", ""),
        ANSWER(ARGUMENT_VERSION_MISMATCH, NOT_IN_DRIVER, "the driver does not know this form of it",
               UPGRADE),
        ANSWER(DEPRECATED, NOT_SUPPORTED, "the driver has it no longer", ""),
        ANSWER(NOT_READY, WRONG_STATE, "not ready yet", "try it again"),
        ANSWER(GPU_NOT_FOUND, NO_SUCH_DEVICE, "there is no device", ""),
        ANSWER(INVALID_STATE, WRONG_STATE, "not in a state for that", ""),
        ANSWER(RESET_TYPE_NOT_SUPPORTED, NOT_SUPPORTED, "no reset of that kind", ""),
        ANSWER(UNKNOWN, DRIVER_FAILED, "the driver failed", "see the kernel's log"),
};

/* Where the same code means something finer. */
static const struct {
        enum about_kind about;
        struct nvml_code code;
} finer[] = {
        { ABOUT_A_DEVICE, ANSWER(NOT_FOUND, NO_SUCH_DEVICE, "there is no such device", "") },
        { ABOUT_A_GPU_INSTANCE, ANSWER(NOT_FOUND, NO_SUCH_DEVICE, "there is no such GPU instance",
                                       "'nvidia-smi mig -lgi' lists them") },
        { ABOUT_A_TYPE, ANSWER(INVALID_ARGUMENT, NO_SUCH_TYPE, "there is no such vGPU type",
                               "'vgpu nvml types' lists them") },
        { ABOUT_A_TYPE, ANSWER(NOT_FOUND, NO_SUCH_TYPE, "there is no such vGPU type",
                               "'vgpu nvml types' lists them") },
        { ABOUT_AN_INSTANCE, ANSWER(NOT_FOUND, NO_SUCH_VGPU, "there is no such active vGPU",
                                    "'vgpu ls' lists all; a suspended one is not active") },
        { ABOUT_AN_INSTANCE, ANSWER(INVALID_ARGUMENT, NO_SUCH_VGPU, "there is no such active vGPU",
                                    "'vgpu ls' lists all; a suspended one is not active") },
        { ABOUT_AN_INSTANCE, ANSWER(DRIVER_NOT_LOADED, NOT_LOADED,
                                    "the driver in its guest does not run", "start the guest") },
        { ABOUT_A_PROCESS,
          ANSWER(NOT_FOUND, NO_SUCH_PROCESS, "nothing is recorded of the process", "") },
        { ABOUT_A_PROCESS, ANSWER(DRIVER_NOT_LOADED, NOT_LOADED,
                                  "the driver in its guest does not run", "start the guest") },
};

#define FREE_FIRST "remove, suspend or move its vGPUs first"
#define NO_SCHEDULER                                                                           \
        "not while a vGPU is active, nor with a policy or engine that is not there, nor of a " \
        "whole device in MIG mode"
#define NO_HOST       "the device hosts no vGPUs"
#define NO_ACCOUNTING "accounting is off in the vGPU, or it has none"

/* Where NVML's documents give a reason for what a call answers. The beginning of a name is enough. */
static const struct {
        const char *call;
        struct nvml_code code;
} of_call[] = {
        { "nvmlDeviceSetVgpuSchedulerState",
          ANSWER(NOT_SUPPORTED, NOT_SUPPORTED, NO_SCHEDULER, FREE_FIRST) },
        { "nvmlGpuInstanceSetVgpuSchedulerState",
          ANSWER(NOT_SUPPORTED, NOT_SUPPORTED, NO_SCHEDULER, FREE_FIRST) },
        { "nvmlDeviceGetVgpuSchedulerState",
          ANSWER(NOT_SUPPORTED, NOT_SUPPORTED, "the device hosts no vGPUs, or is in MIG mode",
                 "in MIG mode, name a GPU instance") },
        { "nvmlDeviceGetVgpuSchedulerLog",
          ANSWER(NOT_SUPPORTED, NOT_SUPPORTED, "the device hosts no vGPUs, or is in MIG mode",
                 "in MIG mode, name a GPU instance") },
        { "nvmlDeviceGetGpuInstance",
          ANSWER(NOT_SUPPORTED, NOT_SUPPORTED, "the device has no GPU instances (MIG)", "") },
        { "nvmlDeviceGetVgpuHeterogeneousMode",
          ANSWER(NOT_SUPPORTED, NOT_SUPPORTED,
                 "the device hosts no vGPUs, or none of different sizes, or is in MIG mode", "") },
        { "nvmlDeviceGetVgpuType",
          ANSWER(NOT_SUPPORTED, NOT_SUPPORTED,
                 "the device hosts no vGPUs, or has no such placements, or is in MIG mode", "") },
        { "nvmlDeviceGetVgpu", ANSWER(NOT_SUPPORTED, NOT_SUPPORTED, NO_HOST, "") },
        { "nvmlDeviceGetSupportedVgpus", ANSWER(NOT_SUPPORTED, NOT_SUPPORTED, NO_HOST, "") },
        { "nvmlDeviceGetCreatableVgpus", ANSWER(NOT_SUPPORTED, NOT_SUPPORTED, NO_HOST, "") },
        { "nvmlDeviceGetActiveVgpus", ANSWER(NOT_SUPPORTED, NOT_SUPPORTED, NO_HOST, "") },
        { "nvmlDeviceGetHostVgpuMode", ANSWER(NOT_SUPPORTED, NOT_SUPPORTED, NO_HOST, "") },
        { "nvmlVgpuInstanceGetEccMode",
          ANSWER(NOT_SUPPORTED, NOT_SUPPORTED, "the vGPU has no ECC", "") },
        { "nvmlDeviceSetVgpuHeterogeneousMode",
          ANSWER(NOT_SUPPORTED, NOT_SUPPORTED,
                 "vGPUs of different sizes cannot share the device, or it is in MIG mode", "") },
        { "nvmlDeviceSetVgpuCapabilities",
          ANSWER(NOT_SUPPORTED, NOT_SUPPORTED,
                 "not one that can be set here, or not while a vGPU is active", FREE_FIRST) },
        { "nvmlVgpuInstanceGetAccountingMode",
          ANSWER(NOT_SUPPORTED, NOT_SUPPORTED, "the vGPU has no accounting", "") },
        { "nvmlVgpuInstanceGetAccounting",
          ANSWER(NOT_SUPPORTED, NOT_SUPPORTED, NO_ACCOUNTING, "it is switched on in the guest") },
        { "nvmlVgpuInstanceClearAccountingPids",
          ANSWER(NOT_SUPPORTED, NOT_SUPPORTED, NO_ACCOUNTING, "it is switched on in the guest") },
        { "nvmlVgpuInstanceGetMdevUUID",
          ANSWER(NOT_SUPPORTED, NOT_SUPPORTED, "there is no mediated device below it", "") },
        { "nvmlVgpuInstanceGetFrameRateLimit",
          ANSWER(NOT_SUPPORTED, NOT_SUPPORTED, "there is no limit of its frame rate", "") },
        { "nvmlVgpuTypeGetFrameRateLimit",
          ANSWER(NOT_SUPPORTED, NOT_SUPPORTED, "there is no limit of its frame rate", "") },
        { "nvmlVgpuTypeGetMaxInstancesPerGpuInstance",
          ANSWER(NOT_SUPPORTED, NOT_SUPPORTED, "it is time-sliced: no GPU instance hosts it", "") },
        { "nvmlVgpuTypeGetMaxInstances", ANSWER(NOT_SUPPORTED, NOT_SUPPORTED, NO_HOST, "") },
        { "nvmlSetVgpuVersion",
          ANSWER(INVALID_ARGUMENT, INVALID_PARAMETER, "not within the versions that are supported",
                 "'vgpu nvml version-range' shows them") },
        { "nvmlSetVgpuVersion", ANSWER(IN_USE, BUSY, "not while a vGPU is active",
                                       "remove or suspend all vGPUs of the host first") },
};

static const struct nvml_code strange = { .name = "?",
                                          .kind = VGPU_ERROR_DRIVER_FAILED,
                                          .meaning = "the driver answers what nobody knows",
                                          .hint = "" };

const struct nvml_code *nvml_code_explain(nvmlReturn_t code, enum about_kind about,
                                          const char *call)
{
        for (size_t i = 0; i < sizeof(of_call) / sizeof(of_call[0]); i++)
                if (of_call[i].code.code == code &&
                    strncmp(of_call[i].call, call, strlen(of_call[i].call)) == 0)
                        return &of_call[i].code;
        for (size_t i = 0; i < sizeof(finer) / sizeof(finer[0]); i++)
                if (finer[i].about == about && finer[i].code.code == code)
                        return &finer[i].code;
        for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
                if (codes[i].code == code)
                        return &codes[i];
        return &strange;
}
