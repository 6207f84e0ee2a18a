/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels, as nvcc makes programs of them: constructors register what is in the program, and for
 * name<<<...>>>(...) the program asks for a handle and launches that.
 *
 * The simulated GPU runs no code. Its driver has a few kernels of its own, which a program gets for one
 * that has such a name (extern "C"); of any other the driver says that there is none, and the launch
 * fails.
 */

#include <pthread.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "cudart/runtime.h"

struct binary {
        void *wrapper;
        CUlibrary library; /* NULL: not loaded yet */
        struct kernel *kernels;
};

/* What a program has as a handle, too. */
struct kernel {
        struct kernel *next, *next_of_binary;
        struct binary *binary;
        const void *function; /* the host function beside it */
        const char *name;
        CUfunction found;
};

static struct {
        pthread_mutex_t lock;
        struct kernel *first;
} kernels = { .lock = PTHREAD_MUTEX_INITIALIZER };

static pthread_mutex_t *lock_kernels(void)
{
        (void)pthread_mutex_lock(&kernels.lock);
        return &kernels.lock;
}

static void unlockp(pthread_mutex_t **locked)
{
        (void)pthread_mutex_unlock(*locked);
}

#define KERNELS_LOCKED() \
        CLEANUP(unlockp) __attribute__((unused)) pthread_mutex_t *locked_ = lock_kernels()

/* A program cannot be told that there is no memory here: it goes on without the kernels. */
void **__cudaRegisterFatBinary(void *wrapper)
{
        struct binary *binary = calloc(1, sizeof(*binary));

        if (binary)
                binary->wrapper = wrapper;
        return (void **)binary;
}

void __cudaRegisterFatBinaryEnd(void **binary)
{
        (void)binary;
}

static void forget_locked(struct kernel *kernel)
{
        struct kernel **link = &kernels.first;

        while (*link != kernel)
                link = &(*link)->next;
        *link = kernel->next;
        free(kernel);
}

/* Called while the program ends, when the driver may be gone: the library is left to it. */
void __cudaUnregisterFatBinary(void **handle)
{
        struct binary *binary = (struct binary *)handle;
        KERNELS_LOCKED();

        while (binary && binary->kernels) {
                struct kernel *kernel = binary->kernels;

                binary->kernels = kernel->next_of_binary;
                forget_locked(kernel);
        }
        free(binary);
}

char __cudaInitModule(void **binary)
{
        return binary != NULL;
}

void __cudaRegisterFunction(void **handle, const char *function, char *device_function,
                            const char *name, int thread_limit, void *thread, void *block,
                            void *block_size, void *grid_size, int *warp_size)
{
        struct binary *binary = (struct binary *)handle;
        struct kernel *kernel = binary ? calloc(1, sizeof(*kernel)) : NULL;
        KERNELS_LOCKED();

        (void)device_function, (void)thread_limit, (void)thread, (void)block;
        (void)block_size, (void)grid_size, (void)warp_size;
        if (!kernel)
                return;
        *kernel = (struct kernel){ .next = kernels.first,
                                   .next_of_binary = binary->kernels,
                                   .binary = binary,
                                   .function = function,
                                   .name = name };
        kernels.first = binary->kernels = kernel;
}

/* Variables of device code: nothing runs that could use them, and nobody gets their address. */
void __cudaRegisterVar(void **binary, char *host, char *device, const char *name, int is_external,
                       size_t size, int is_constant, int is_global)
{
        (void)binary, (void)host, (void)device, (void)name;
        (void)is_external, (void)size, (void)is_constant, (void)is_global;
}

void __cudaRegisterHostVar(void **binary, const char *name, char *host, size_t size)
{
        (void)binary, (void)name, (void)host, (void)size;
}

/* The program itself goes by the pointer. */
void __cudaRegisterManagedVar(void **binary, void **host, char *device, const char *name,
                              int is_external, size_t size, int is_constant, int is_global)
{
        (void)binary, (void)device, (void)name;
        (void)is_external, (void)is_constant, (void)is_global;
        *host = calloc(1, size);
}

#define CONFIGURATIONS_MAX 16

static _Thread_local struct {
        struct configuration {
                struct dim3 grid, block;
                size_t shared_bytes;
                CUstream stream;
        } configuration[CONFIGURATIONS_MAX];
        unsigned int depth;
} launches;

/* Anything but 0 lets the program skip the launch. */
unsigned int __cudaPushCallConfiguration(struct dim3 grid, struct dim3 block, size_t shared_bytes,
                                         CUstream stream)
{
        if (launches.depth == CONFIGURATIONS_MAX)
                return 1;
        launches.configuration[launches.depth++] =
                (struct configuration){ grid, block, shared_bytes, stream };
        return 0;
}

cudaError_t __cudaPopCallConfiguration(struct dim3 *grid, struct dim3 *block, size_t *shared_bytes,
                                       void *stream)
{
        const struct configuration *top;

        if (launches.depth == 0)
                return runtime_leave(cudaErrorMissingConfiguration);
        top = &launches.configuration[--launches.depth];
        *grid = top->grid;
        *block = top->block;
        *shared_bytes = top->shared_bytes;
        *(CUstream *)stream = top->stream;
        return cudaSuccess;
}

static struct kernel *find_locked(const void *function)
{
        struct kernel *kernel = kernels.first;

        while (kernel && kernel->function != function && kernel != function)
                kernel = kernel->next;
        return kernel;
}

static CUresult look_up_locked(struct kernel *kernel)
{
        struct binary *binary = kernel->binary;
        CUkernel found;
        CUresult result = CUDA_SUCCESS;

        if (!binary->library)
                result = driver.cuLibraryLoadData(&binary->library, binary->wrapper, NULL, NULL, 0,
                                                  NULL, NULL, 0);
        if (result == CUDA_SUCCESS)
                result = driver.cuLibraryGetKernel(&found, binary->library, kernel->name);
        if (result == CUDA_SUCCESS)
                result = driver.cuKernelGetFunction(&kernel->found, found);
        return result;
}

/* The driver has said on standard error why a kernel is not there: it is code, which nothing here runs. */
static cudaError_t find_function(CUfunction *ret_function, const void *function)
{
        struct kernel *kernel;
        CUresult result = CUDA_SUCCESS;
        KERNELS_LOCKED();

        kernel = find_locked(function);
        if (!kernel)
                return cudaErrorInvalidDeviceFunction;
        if (!kernel->found)
                result = look_up_locked(kernel);
        if (result == CUDA_SUCCESS)
                *ret_function = kernel->found;
        return result == CUDA_ERROR_NOT_FOUND ? cudaErrorNotSupported : (cudaError_t)result;
}

cudaError_t runtime_cudaGetKernel(void **ret_kernel, const void *function)
{
        struct kernel *kernel;
        KERNELS_LOCKED();

        kernel = find_locked(function);
        if (!ret_kernel || !kernel)
                return ret_kernel ? cudaErrorInvalidDeviceFunction : cudaErrorInvalidValue;
        *ret_kernel = kernel;
        return cudaSuccess;
}

cudaError_t runtime___cudaGetKernel(void **kernel, const void *function)
{
        return runtime_cudaGetKernel(kernel, function);
}

cudaError_t runtime_cudaGetFuncBySymbol(CUfunction *ret_function, const void *function)
{
        return ret_function ? find_function(ret_function, function) : cudaErrorInvalidValue;
}

cudaError_t runtime_cudaLaunchKernel(const void *function, struct dim3 grid, struct dim3 block,
                                     void **arguments, size_t shared_bytes, CUstream stream)
{
        CUfunction found;
        cudaError_t error = find_function(&found, function);

        if (error != cudaSuccess)
                return error;
        return (cudaError_t)driver.cuLaunchKernel(found, grid.x, grid.y, grid.z, block.x, block.y,
                                                  block.z, (unsigned int)shared_bytes,
                                                  runtime_stream(stream), arguments, NULL);
}

cudaError_t runtime___cudaLaunchKernel(void *kernel, struct dim3 grid, struct dim3 block,
                                       void **arguments, size_t shared_bytes, CUstream stream)
{
        return runtime_cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, stream);
}

cudaError_t runtime_cudaLaunchKernelExC(const struct cudaLaunchConfig *config, const void *function,
                                        void **arguments)
{
        if (!config)
                return cudaErrorInvalidValue;
        return runtime_cudaLaunchKernel(function, config->gridDim, config->blockDim, arguments,
                                        config->dynamicSmemBytes, config->stream);
}

cudaError_t runtime_cudaLaunchCooperativeKernel(const void *function, struct dim3 grid,
                                                struct dim3 block, void **arguments,
                                                size_t shared_bytes, CUstream stream)
{
        CUfunction found;
        cudaError_t error = find_function(&found, function);

        if (error != cudaSuccess)
                return error;
        return (cudaError_t)driver.cuLaunchCooperativeKernel(
                found, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                (unsigned int)shared_bytes, runtime_stream(stream), arguments);
}

/* In the order of the driver's numbers. */
cudaError_t runtime_cudaFuncGetAttributes(struct cudaFuncAttributes *attributes,
                                          const void *function)
{
        int value[10];
        CUfunction found;
        CUresult result = CUDA_SUCCESS;
        cudaError_t error = find_function(&found, function);

        if (error != cudaSuccess || !attributes)
                return error ? error : cudaErrorInvalidValue;
        for (int i = 0; i < 10 && result == CUDA_SUCCESS; i++)
                result = driver.cuFuncGetAttribute(&value[i], i, found);
        if (result != CUDA_SUCCESS)
                return (cudaError_t)result;
        *attributes = (struct cudaFuncAttributes){ .maxThreadsPerBlock = value[0],
                                                   .sharedSizeBytes = (size_t)value[1],
                                                   .constSizeBytes = (size_t)value[2],
                                                   .localSizeBytes = (size_t)value[3],
                                                   .numRegs = value[4],
                                                   .ptxVersion = value[5],
                                                   .binaryVersion = value[6],
                                                   .cacheModeCA = value[7],
                                                   .maxDynamicSharedSizeBytes = value[8],
                                                   .preferredShmemCarveout = value[9] };
        return cudaSuccess;
}

cudaError_t runtime_cudaFuncSetAttribute(const void *function, int attribute, int value)
{
        CUfunction found;
        cudaError_t error = find_function(&found, function);

        return error ? error : (cudaError_t)driver.cuFuncSetAttribute(found, attribute, value);
}

cudaError_t runtime_cudaFuncSetCacheConfig(const void *function, int config)
{
        CUfunction found;
        cudaError_t error = find_function(&found, function);

        return error ? error : (cudaError_t)driver.cuFuncSetCacheConfig(found, config);
}

cudaError_t runtime_cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        int *blocks, const void *function, int block_size, size_t shared_bytes, unsigned int flags)
{
        (void)flags; /* of caches, which there are none of */
        return runtime_cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_size,
                                                                     shared_bytes);
}

cudaError_t runtime_cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function,
                                                                  int block_size,
                                                                  size_t shared_bytes)
{
        CUfunction found;
        cudaError_t error = find_function(&found, function);

        if (error != cudaSuccess)
                return error;
        return (cudaError_t)driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                blocks, found, block_size, shared_bytes);
}
