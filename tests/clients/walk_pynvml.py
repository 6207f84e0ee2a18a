# SPDX-License-Identifier: Apache-2.0
"""Every vGPU binding of pynvml, called on a device, a type and a vGPU of make-state-page.c."""
import sys

import pynvml

VGPU = 3251634213

# What is right to answer other than with a value, on a machine of ours.
EXPECTED = {
    "nvmlVgpuInstanceGetFrameRateLimit": pynvml.NVML_ERROR_NOT_SUPPORTED,
    "nvmlVgpuTypeGetFrameRateLimit": pynvml.NVML_ERROR_NOT_SUPPORTED,
}

VALUES = {
    "nvmlVgpuInstanceGetUUID": "e5c1b1a0-0000-4000-8000-000000000000",
    "nvmlVgpuInstanceGetType": 0x233504,
    "nvmlVgpuInstanceGetMdevUUID": "a5c1b1a0-0000-4000-8000-000000000000",
    "nvmlVgpuInstanceGetVmDriverVersion": "570.86.10",
    "nvmlVgpuInstanceGetEncoderCapacity": 70,
    "nvmlVgpuInstanceGetEncoderStats": (1, 30, 2000),
    "nvmlVgpuInstanceGetAccountingMode": pynvml.NVML_FEATURE_ENABLED,
    "nvmlVgpuInstanceGetEccMode": pynvml.NVML_FEATURE_ENABLED,
    "nvmlVgpuInstanceGetGpuPciId": "00000000:02:04.0",
    "nvmlVgpuInstanceGetLicenseStatus": 1,
    "nvmlVgpuTypeGetName": "NVIDIA H200-35C",
    "nvmlVgpuTypeGetFramebufferSize": 35840 << 20,
    "nvmlDeviceGetActiveVgpus": [VGPU, VGPU + 1],
    "nvmlDeviceGetVirtualizationMode": pynvml.NVML_GPU_VIRTUALIZATION_MODE_HOST_VGPU,
}


def arguments(name, device, vgpu_type):
    """None: not asked here, since it changes something or wants a struct of ctypes."""
    special = {
        "nvmlVgpuTypeGetResolution": (vgpu_type,),
        "nvmlVgpuTypeGetMaxInstances": (device, vgpu_type),
        "nvmlVgpuTypeGetCapabilities": (vgpu_type, 0),
        "nvmlDeviceGetVgpuUtilization": (device, 0),
        "nvmlDeviceGetVgpuProcessUtilization": (device, 0),
        "nvmlDeviceGetVgpuInstancesUtilizationInfo": (device, 0),
        "nvmlDeviceGetVgpuProcessesUtilizationInfo": (device, 0),
        "nvmlDeviceGetVgpuTypeSupportedPlacements": (device, vgpu_type),
        "nvmlDeviceGetVgpuTypeCreatablePlacements": (device, vgpu_type),
        "nvmlVgpuInstanceGetAccountingStats": (VGPU, 4242),
        "nvmlDeviceGetVgpuCapabilities": (device, 0),
        "nvmlGetVgpuDriverCapabilities": (0,),
        "nvmlGetVgpuVersion": None,  # hands in NULLs, which the documents forbid
        "nvmlGetVgpuCompatibility": None,
        "nvmlVgpuInstanceGetFbUsage": None,  # has room for 4 of the 8 bytes
    }
    if name in special:
        return special[name]
    if "Set" in name or "Clear" in name:
        return None
    if name.startswith("nvmlVgpuInstance"):
        return (VGPU,)
    return (vgpu_type,) if name.startswith("nvmlVgpuType") else (device,)


def bindings():
    return sorted(name for name in dir(pynvml) if name.startswith("nvml") and "Vgpu" in name
                  and callable(getattr(pynvml, name)) and isinstance(getattr(pynvml, name), type(main))
                  or name == "nvmlDeviceGetVirtualizationMode")


def ask(name, args):
    try:
        return getattr(pynvml, name)(*args), pynvml.NVML_SUCCESS
    except pynvml.NVMLError as error:
        return None, error.value


def as_text(value):
    return value.decode() if isinstance(value, bytes) else value


def main():
    pynvml.nvmlInit()
    device = pynvml.nvmlDeviceGetHandleByIndex(0)
    vgpu_type = pynvml.nvmlVgpuInstanceGetType(VGPU)
    asked = wrong = 0
    for name in bindings():
        args = arguments(name, device, vgpu_type)
        if args is None:
            continue
        asked += 1
        value, code = ask(name, args)
        expected = EXPECTED.get(name, pynvml.NVML_SUCCESS)
        if code != expected or name in VALUES and as_text(value) != VALUES[name]:
            print(f"{name}{args}: {value}, code {code}, expected {VALUES.get(name, expected)}")
            wrong += 1
    pynvml.nvmlShutdown()
    print(f"{asked} bindings asked, {wrong} wrong")
    sys.exit(wrong > 0 or asked < 30)


if __name__ == "__main__":
    main()
