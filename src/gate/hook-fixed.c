/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that take device memory which only the driver can move: counted, and tried again where others leave for it.
 *
 * What is charged: the bytes that were asked for. Arrays are an estimate: see array_bytes().
 */
#include "gate/current.h"
#include "gate/entry.h"
#include "gate/holding.h"
#include "gate/hook.h"
#include "gate/memory.h"
#include "gate/quota.h"
#include "wire/gate.h"

/*
 * Each time that the driver has too little all the same, the manager makes more room than was asked for: what an
 * array really takes is not known. See quota_is_in_vain().
 */
#define TRIES 16

/* A call that takes memory. */
struct request {
        enum holding_kind kind;
        uint64_t bytes;
        CUresult (*call)(const struct request *request, uint64_t *ret_key);
        void *made; /* where the program gets its handle or address */
        const void *descriptor;
        unsigned int levels;
};

static CUresult take_once(const struct request *request)
{
        struct holding *holding = holding_new(request->kind, request->bytes, 0);
        uint64_t key = 0;
        CUresult result;

        if (!holding)
                return CUDA_ERROR_OUT_OF_MEMORY;
        result = request->call(request, &key);
        return holding_keep(holding, result, key);
}

/* What pools hold idle goes before others leave. */
static CUresult take_of_idle(const struct request *request)
{
        const CUdevice device = current_device();
        unsigned int n_tries = 0;
        CUresult result;

        do
                result = take_once(request);
        while (result == CUDA_ERROR_OUT_OF_MEMORY &&
               memory_make_room(device, request->bytes, &n_tries));
        return result;
}

/* Nothing is charged while it waits: its vGPU may leave meanwhile, and takes along what is there. */
static CUresult take_patiently(const struct request *request)
{
        struct quota_want want = { .device = current_device(),
                                   .bytes = request->bytes,
                                   .is_limited = true,
                                   .n_tries = TRIES };
        CUresult result;

        quota_begin_wait(&want);
        do
                result = take_of_idle(request);
        while (result == CUDA_ERROR_OUT_OF_MEMORY && quota_wait_for_room(&want));
        quota_end_wait(&want);
        return result;
}

static uint64_t key_of(const void *handle)
{
        return (uint64_t)(uintptr_t)handle;
}

/* Bytes of one element of one channel; formats that we do not know are taken for 4 bytes. */
static uint64_t format_bytes(CUarray_format format)
{
        switch (format) {
        case CU_AD_FORMAT_UNSIGNED_INT8:
        case CU_AD_FORMAT_SIGNED_INT8:
                return 1;
        case CU_AD_FORMAT_UNSIGNED_INT16:
        case CU_AD_FORMAT_SIGNED_INT16:
        case CU_AD_FORMAT_HALF:
                return 2;
        default:
                return 4;
        }
}

static uint64_t times(uint64_t a, uint64_t b)
{
        uint64_t product;

        return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t at_least_one(uint64_t n)
{
        return n ? n : 1;
}

/*
 * Width x height x depth x channels x bytes of the format, over all levels; each level halves the
 * extents, but not the number of layers. Without the driver's padding. Sparse arrays and those that
 * are mapped later take no memory here.
 */
static uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *array, unsigned int levels)
{
        uint64_t width = at_least_one(array->Width), height = at_least_one(array->Height);
        uint64_t depth = at_least_one(array->Depth), sum = 0;

        if (array->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))
                return 0;
        for (unsigned int i = 0; i < levels && i < 64; i++) {
                uint64_t elements = times(times(width, height), depth);
                uint64_t bytes =
                        times(times(elements, array->NumChannels), format_bytes(array->Format));

                sum = sum + bytes < sum ? UINT64_MAX : sum + bytes;
                width = at_least_one(width / 2);
                height = at_least_one(height / 2);
                if (!(array->Flags & CUDA_ARRAY3D_LAYERED))
                        depth = at_least_one(depth / 2);
        }
        return sum;
}

static CUresult create_array(const struct request *request, uint64_t *ret_key)
{
        CUarray *array = request->made;
        CUresult result = DRIVER(cuArrayCreate_v2)(array, request->descriptor);

        *ret_key = key_of(*array);
        return result;
}

CUresult our_cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *descriptor)
{
        CUDA_ARRAY3D_DESCRIPTOR flat = { .Depth = 0 };
        struct request request = {
                .kind = HOLDING_ARRAY, .call = create_array, .made = array, .descriptor = descriptor
        };

        if (!array || !descriptor)
                return DRIVER(cuArrayCreate_v2)(array, descriptor);
        flat.Width = descriptor->Width;
        flat.Height = descriptor->Height;
        flat.Format = descriptor->Format;
        flat.NumChannels = descriptor->NumChannels;
        request.bytes = array_bytes(&flat, 1);
        return take_patiently(&request);
}

static CUresult create_array_3d(const struct request *request, uint64_t *ret_key)
{
        CUarray *array = request->made;
        CUresult result = DRIVER(cuArray3DCreate_v2)(array, request->descriptor);

        *ret_key = key_of(*array);
        return result;
}

CUresult our_cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
        struct request request = { .kind = HOLDING_ARRAY,
                                   .call = create_array_3d,
                                   .made = array,
                                   .descriptor = descriptor };

        if (!array || !descriptor)
                return DRIVER(cuArray3DCreate_v2)(array, descriptor);
        request.bytes = array_bytes(descriptor, 1);
        return take_patiently(&request);
}

CUresult our_cuArrayDestroy(CUarray array)
{
        struct holding *holding = holding_take(HOLDING_ARRAY, key_of(array));

        return holding_settle(holding, DRIVER(cuArrayDestroy)(array));
}

static CUresult create_mipmapped(const struct request *request, uint64_t *ret_key)
{
        CUmipmappedArray *array = request->made;
        CUresult result =
                DRIVER(cuMipmappedArrayCreate)(array, request->descriptor, request->levels);

        *ret_key = key_of(*array);
        return result;
}

CUresult our_cuMipmappedArrayCreate(CUmipmappedArray *array,
                                    const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned int levels)
{
        struct request request = { .kind = HOLDING_MIPMAP,
                                   .call = create_mipmapped,
                                   .made = array,
                                   .descriptor = descriptor,
                                   .levels = levels };

        if (!array || !descriptor)
                return DRIVER(cuMipmappedArrayCreate)(array, descriptor, levels);
        request.bytes = array_bytes(descriptor, levels);
        return take_patiently(&request);
}

CUresult our_cuMipmappedArrayDestroy(CUmipmappedArray array)
{
        struct holding *holding = holding_take(HOLDING_MIPMAP, key_of(array));

        return holding_settle(holding, DRIVER(cuMipmappedArrayDestroy)(array));
}

static CUresult allocate_managed(CUdeviceptr *pointer, size_t size, unsigned int flags)
{
        struct holding *holding = holding_new(HOLDING_POINTER, size, GATE_HOLDS_MANAGED);
        CUresult result;

        if (!holding)
                return CUDA_ERROR_OUT_OF_MEMORY;
        result = DRIVER(cuMemAllocManaged)(pointer, size, flags);
        return holding_keep(holding, result, *pointer);
}

/* It waits for no others: where the device is full, the driver gives memory of the host. */
CUresult our_cuMemAllocManaged(CUdeviceptr *pointer, size_t size, unsigned int flags)
{
        unsigned int n_tries = 0;
        CUresult result;

        if (!pointer)
                return DRIVER(cuMemAllocManaged)(pointer, size, flags);
        do
                result = allocate_managed(pointer, size, flags);
        while (result == CUDA_ERROR_OUT_OF_MEMORY &&
               memory_make_room(current_device(), size, &n_tries));
        return result;
}

CUresult hook_free_of_driver(CUdeviceptr pointer)
{
        struct holding *holding = holding_take(HOLDING_POINTER, pointer);

        return holding_settle(holding, DRIVER(cuMemFree_v2)(pointer));
}

static CUresult allocate_of_driver(const struct request *request, uint64_t *ret_key)
{
        CUdeviceptr *pointer = request->made;
        CUresult result = DRIVER(cuMemAlloc_v2)(pointer, request->bytes);

        *ret_key = *pointer;
        return result;
}

CUresult hook_allocate_of_driver(CUdeviceptr *pointer, size_t size)
{
        const struct request request = {
                .kind = HOLDING_POINTER, .bytes = size, .call = allocate_of_driver, .made = pointer
        };

        return take_patiently(&request);
}

/* The interface before CUDA 3.2, with addresses of 32 bits: nothing counts what it takes. */

CUresult our_cuMemAlloc(unsigned int *pointer, unsigned int size)
{
        (void)pointer;
        (void)size;
        return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult our_cuMemAllocPitch(unsigned int *pointer, unsigned int *pitch, unsigned int width,
                             unsigned int height, unsigned int element_size)
{
        (void)pointer;
        (void)pitch;
        (void)width;
        (void)height;
        (void)element_size;
        return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult our_cuArrayCreate(CUarray *array, const void *descriptor)
{
        (void)array;
        (void)descriptor;
        return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult our_cuArray3DCreate(CUarray *array, const void *descriptor)
{
        (void)array;
        (void)descriptor;
        return CUDA_ERROR_NOT_SUPPORTED;
}
