/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/fake-guest.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/size.h"

struct instance_page *fake_guest_start(uint64_t quota)
{
        struct instance_page *page;

        fake_host("1xH200:2G");
        page = fake_manager_start(quota);
        fake_context();
        return page;
}

#define PIECES 60
static struct piece {
        CUdeviceptr pointer;
        size_t size;
} pieces[PIECES];

uint64_t fake_guest_used(const struct instance_page *page)
{
        const struct instance_page_slot *slot = &page->slot[FAKE_SLOT];

        return slot->used[INSTANCE_PAGE_MOVABLE] + slot->used[INSTANCE_PAGE_FIXED];
}

void fake_guest_fill(void)
{
        for (int i = 0; i < PIECES; i++) {
                pieces[i].size = i % 3 ? (size_t)(i * 1000 + 1) : MIB * (size_t)(1 + i % 5) + 77;
                check(cuMemAlloc_v2(&pieces[i].pointer, pieces[i].size) == CUDA_SUCCESS);
                check(cuMemsetD8_v2(pieces[i].pointer, (unsigned char)(i + 1), pieces[i].size) ==
                      CUDA_SUCCESS);
        }
}

void fake_guest_check(void)
{
        unsigned char *contents = malloc(8 * MIB);

        check(contents);
        for (int i = 0; i < PIECES; i++) {
                check(cuMemcpyDtoH_v2(contents, pieces[i].pointer, pieces[i].size) == CUDA_SUCCESS);
                for (size_t byte = 0; byte < pieces[i].size; byte++)
                        check(contents[byte] == i + 1);
        }
        free(contents);
}

void fake_guest_free(void)
{
        for (int i = 0; i < PIECES; i++)
                check(cuMemFree_v2(pieces[i].pointer) == CUDA_SUCCESS);
}

void fake_guest_close(void)
{
        struct gate_closed closed = fake_close(FAKE_GUEST_TIMEOUT_MS);

        if (closed.error)
                fprintf(stderr, "close: %d %s %d\n", closed.error, closed.call, closed.driver_code);
        check(closed.error == 0);
}

void fake_guest_command(enum gate_message command)
{
        struct gate_result result = fake_command(command);

        if (result.error)
                fprintf(stderr, "%d: %d %s %d\n", command, result.error, result.call,
                        result.driver_code);
        check(result.error == 0);
}

void fake_guest_move(void)
{
        void *contents;

        fake_guest_close();
        fake_guest_command(GATE_EXPORT);
        contents = fake_copy_out();
        fake_guest_command(GATE_RELEASE);
        fake_guest_command(GATE_CREATE);
        fake_copy_in(contents);
        free(contents);
        fake_guest_command(GATE_OPEN);
}
