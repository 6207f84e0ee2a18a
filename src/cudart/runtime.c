/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver below, and what the runtime keeps of a thread: its device, its last error.
 *
 * The context of a thread is the driver's business. A thread that has none gets the primary context of
 * its device with the first call that needs one, and a context that the program made itself with the
 * driver API is used as it is, as NVIDIA's runtime does.
 */

#include "cudart/runtime.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "abi/sim-table.h"
#include "base/cleanup.h"
#include "base/loader.h"

struct runtime_driver driver;

static _Thread_local struct {
        int device;
        cudaError_t last_error;
        bool is_per_thread;
} thread;

static struct {
        pthread_once_t once;
        cudaError_t error; /* of the start */
        int n_devices;
        pthread_mutex_t lock;
        CUcontext primary[RUNTIME_DEVICES_MAX]; /* NULL: not retained; under the lock */
} runtime = { .once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER };

static pthread_mutex_t *lock_devices(void)
{
        (void)pthread_mutex_lock(&runtime.lock);
        return &runtime.lock;
}

static void unlockp(pthread_mutex_t **locked)
{
        (void)pthread_mutex_unlock(*locked);
}

#define DEVICES_LOCKED() \
        CLEANUP(unlockp) __attribute__((unused)) pthread_mutex_t *locked_ = lock_devices()

static const struct loader_function functions[] = {
#define ENTRY(name) { #name, offsetof(struct runtime_driver, name), false },
        RUNTIME_DRIVER(ENTRY)
#undef ENTRY
};

/*
 * As NVIDIA's runtime: it does not start where what stands before the driver shows other devices than the driver
 * has.
 */
static cudaError_t compare_devices(void)
{
        const struct sim_table *table = NULL;
        CUuuid id;
        int n = -1;

        memcpy(&id, SIM_TABLE_ID, sizeof(id));
        if (driver.cuGetExportTable((const void **)&table, &id) != CUDA_SUCCESS ||
            table->get_device_count(&n) != CUDA_SUCCESS || n != runtime.n_devices) {
                (void)fprintf(stderr,
                              "simulated CUDA runtime: %d devices are shown, the driver has %d\n",
                              runtime.n_devices, n);
                return cudaErrorSoftwareValidityNotEstablished;
        }
        return cudaSuccess;
}

/* The library stays: it may not go while the program still has objects of it. */
static cudaError_t start(void)
{
        const char *missing;
        int r = loader_load("libcuda.so.1", functions, sizeof(functions) / sizeof(functions[0]),
                            &driver, &missing);
        CUresult result;

        if (r == -ENOSYS)
                (void)fprintf(stderr, "simulated CUDA runtime: libcuda.so.1 has no %s\n", missing);
        else if (r < 0)
                (void)fprintf(stderr, "simulated CUDA runtime: no CUDA driver: %s\n", dlerror());
        if (r < 0)
                return cudaErrorInsufficientDriver;
        result = driver.cuInit(0);
        if (result == CUDA_SUCCESS)
                result = driver.cuDeviceGetCount(&runtime.n_devices);
        return result ? (cudaError_t)result : compare_devices();
}

static void start_once(void)
{
        runtime.error = start();
}

cudaError_t runtime_start(void)
{
        (void)pthread_once(&runtime.once, start_once);
        return runtime.error;
}

static cudaError_t retain_locked(int device)
{
        if (runtime.primary[device])
                return cudaSuccess;
        return (cudaError_t)driver.cuDevicePrimaryCtxRetain(&runtime.primary[device], device);
}

cudaError_t runtime_context(CUcontext *ret_context, int device)
{
        cudaError_t error;
        DEVICES_LOCKED();

        if (device < 0 || device >= runtime.n_devices || device >= RUNTIME_DEVICES_MAX)
                return cudaErrorInvalidDevice;
        error = retain_locked(device);
        if (error == cudaSuccess)
                *ret_context = runtime.primary[device];
        return error;
}

cudaError_t runtime_get_device(int *ret_device)
{
        CUcontext context = NULL;

        (void)driver.cuCtxGetCurrent(&context);
        if (!context || driver.cuCtxGetDevice(ret_device) != CUDA_SUCCESS)
                *ret_device = thread.device;
        return cudaSuccess;
}

cudaError_t runtime_set_device(int device)
{
        CUcontext context;
        cudaError_t error = runtime_context(&context, device);

        if (error != cudaSuccess)
                return error;
        thread.device = device;
        return (cudaError_t)driver.cuCtxSetCurrent(context);
}

/* Also of one that another thread has reset since: its handle is the same when it comes back. */
static cudaError_t make_current(void)
{
        CUcontext context = NULL;
        CUdevice device;

        (void)driver.cuCtxGetCurrent(&context);
        if (context && driver.cuCtxGetDevice(&device) == CUDA_SUCCESS)
                return cudaSuccess;
        return runtime_set_device(thread.device);
}

cudaError_t runtime_enter(bool needs_context, bool is_per_thread)
{
        cudaError_t error = runtime_start();

        thread.is_per_thread = is_per_thread;
        return error || !needs_context ? error : make_current();
}

cudaError_t runtime_leave(cudaError_t error)
{
        thread.is_per_thread = false;
        if (error != cudaSuccess && error != cudaErrorNotReady)
                thread.last_error = error;
        return error;
}

CUstream runtime_stream(CUstream stream)
{
        return stream || !thread.is_per_thread ? stream : CU_STREAM_PER_THREAD;
}

cudaError_t runtime_reset(void)
{
        int device;
        DEVICES_LOCKED();

        (void)runtime_get_device(&device);
        thread.device = device;
        if (device < RUNTIME_DEVICES_MAX)
                runtime.primary[device] = NULL;
        return (cudaError_t)driver.cuDevicePrimaryCtxReset_v2(device);
}

cudaError_t runtime_refuse(const char *name)
{
        static atomic_flag is_told = ATOMIC_FLAG_INIT;

        if (!atomic_flag_test_and_set(&is_told))
                (void)fprintf(stderr,
                              "simulated CUDA runtime: %s is not there: memory, copies, streams, "
                              "events and captured graphs are (docs/simulated-gpu.md)\n",
                              name);
        return runtime_leave(cudaErrorNotSupported);
}

cudaError_t cudaGetLastError(void)
{
        cudaError_t error = thread.last_error;

        thread.last_error = cudaSuccess;
        return error;
}

cudaError_t cudaPeekAtLastError(void)
{
        return thread.last_error;
}
