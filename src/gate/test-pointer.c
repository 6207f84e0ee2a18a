/* SPDX-License-Identifier: Apache-2.0 */
/* What a program learns of a pointer: as of ordinary memory. */
#include <stdio.h>

#include "base/size.h"
#include "base/test.h"
#include "gate/entry.h"
#include "gate/fake-guest.h"

/* The driver's answers for an ordinary allocation, of which ours must not be told apart. */
static void compare_answers(CUdeviceptr ours, CUdeviceptr native, size_t size)
{
        static const CUpointer_attribute alike[] = {
                CU_POINTER_ATTRIBUTE_CONTEXT,        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                CU_POINTER_ATTRIBUTE_IS_MANAGED,     CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                CU_POINTER_ATTRIBUTE_RANGE_SIZE,     CU_POINTER_ATTRIBUTE_MAPPED,
                CU_POINTER_ATTRIBUTE_HOST_POINTER,   CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES,
                CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
        };
        CUdeviceptr base;
        size_t range;

        for (size_t i = 0; i < sizeof(alike) / sizeof(alike[0]); i++) {
                uint64_t a = 0, b = 0;

                check(cuPointerGetAttribute(&a, alike[i], ours) ==
                      DRIVER(cuPointerGetAttribute)(&b, alike[i], native));
                if (a != b)
                        fprintf(stderr, "attribute %d: %lx, native %lx\n", alike[i], a, b);
                check(a == b);
        }
        for (size_t offset = 0; offset < size; offset += size / 3 + 1) {
                check(cuMemGetAddressRange_v2(&base, &range, ours + offset) == CUDA_SUCCESS);
                check(base == ours && range == size);
                check(cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                            ours + offset) == CUDA_SUCCESS);
                check(base == ours);
        }
}

FAKE_TEST(test_questions_about_a_pointer_are_answered_as_for_ordinary_memory)
{
        static const size_t sizes[] = { 1, 300, 4096, 700000, MIB, 2 * MIB, 4 * MIB + 12345 };

        fake_guest_start(GIB);
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
                CUdeviceptr ours, native, base;
                uint64_t value;
                size_t range;

                check(cuMemAlloc_v2(&ours, sizes[i]) == CUDA_SUCCESS);
                check(DRIVER(cuMemAlloc_v2)(&native, sizes[i]) == CUDA_SUCCESS);
                compare_answers(ours, native, sizes[i]);
                check(cuMemGetAddressRange_v2(&base, &range, ours + sizes[i]) ==
                      CUDA_ERROR_NOT_FOUND);
                check(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                            ours + sizes[i]) == CUDA_ERROR_INVALID_VALUE);
                check(cuMemFree_v2(ours) == CUDA_SUCCESS);
                check(cuMemGetAddressRange_v2(&base, &range, ours) != CUDA_SUCCESS);
        }
}

FAKE_TEST(test_several_attributes_at_once_are_corrected_as_well)
{
        CUpointer_attribute attributes[] = { CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                                             CU_POINTER_ATTRIBUTE_CONTEXT,
                                             CU_POINTER_ATTRIBUTE_RANGE_START_ADDR };
        CUdeviceptr pointer, range_start;
        CUcontext context, current;
        size_t size;
        void *data[] = { &size, &context, &range_start };

        fake_guest_start(GIB);
        check(cuCtxGetCurrent(&current) == CUDA_SUCCESS);
        check(cuMemAlloc_v2(&pointer, 777) == CUDA_SUCCESS);
        check(cuPointerGetAttributes(3, attributes, data, pointer + 5) == CUDA_SUCCESS);
        check(size == 777 && context == current && range_start == pointer);
}

FAKE_TEST(test_each_allocation_has_a_buffer_id_of_its_own)
{
        unsigned long long id[3];
        CUdeviceptr pointer[3];

        fake_guest_start(GIB);
        for (int i = 0; i < 3; i++) {
                check(cuMemAlloc_v2(&pointer[i], i < 2 ? 512 : 4 * MIB) == CUDA_SUCCESS);
                check(cuPointerGetAttribute(&id[i], CU_POINTER_ATTRIBUTE_BUFFER_ID, pointer[i]) ==
                      CUDA_SUCCESS);
        }
        check(id[0] != id[1] && id[1] != id[2] && id[0] != id[2]);
}

FAKE_TEST(test_what_is_wrong_with_ordinary_memory_is_wrong_with_ours)
{
        const CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 }, 3 };
        CUmemGenericAllocationHandle handle;
        CUdeviceptr pointer;

        fake_guest_start(GIB);
        check(cuMemAlloc_v2(&pointer, 4 * MIB) == CUDA_SUCCESS);
        check(cuMemFree_v2(pointer + 512) == CUDA_ERROR_INVALID_VALUE);
        check(cuMemUnmap(pointer, 4 * MIB) == CUDA_ERROR_INVALID_VALUE);
        check(cuMemAddressFree(pointer, 4 * MIB) == CUDA_ERROR_INVALID_VALUE);
        check(cuMemSetAccess(pointer, 4 * MIB, &access, 1) == CUDA_ERROR_INVALID_VALUE);
        check(cuMemRetainAllocationHandle(&handle, (void *)pointer) == CUDA_ERROR_INVALID_VALUE);
        check(cuMemsetD8_v2(pointer, 1, 4 * MIB) == CUDA_SUCCESS); /* all still there */
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
        check(cuMemFree_v2(pointer) == CUDA_ERROR_INVALID_VALUE);
        check(cuMemFree_v2(0) == CUDA_SUCCESS);
        check(cuMemAlloc_v2(&pointer, 0) == CUDA_ERROR_INVALID_VALUE);
        check(cuMemAlloc_v2(NULL, 1) == CUDA_ERROR_INVALID_VALUE);
        check(cuMemAlloc_v2(&pointer, SIZE_MAX) == CUDA_ERROR_OUT_OF_MEMORY);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(
                        test_questions_about_a_pointer_are_answered_as_for_ordinary_memory),
                cmocka_unit_test(test_several_attributes_at_once_are_corrected_as_well),
                cmocka_unit_test(test_each_allocation_has_a_buffer_id_of_its_own),
                cmocka_unit_test(test_what_is_wrong_with_ordinary_memory_is_wrong_with_ours),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
