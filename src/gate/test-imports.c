/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory of other processes one can have, what it is told at the end of that, and that it can go on. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/packet.h"
#include "base/size.h"
#include "base/test.h"
#include "gate/entry.h"
#include "gate/fake-guest.h"
#include "gate/ticket.h"

static CUmemGenericAllocationHandle handles[GATE_IMPORTS_MAX];
static uint32_t n_real; /* pieces that the driver believes to be imported */

/* Of the driver all are one, without a descriptor for each: those are not what is counted here. */
static CUresult import_one(CUmemGenericAllocationHandle *handle, void *shareable, int type)
{
        (void)shareable, (void)type;
        *handle = 1;
        n_real++;
        return CUDA_SUCCESS;
}

static CUresult release_one(CUmemGenericAllocationHandle handle)
{
        check(handle == 1 && n_real > 0);
        n_real--;
        return CUDA_SUCCESS;
}

/* The manager: whatever is asked for is given. */
static void *give(void *userdata)
{
        const struct gate_import *question;
        char message[PACKET_SIZE_MAX];
        size_t size;
        (void)userdata;

        while (fake_receive(message, &size) == 0) {
                question = (const struct gate_import *)message;
                struct gate_imported answer = { .header = { GATE_WIRE_MAGIC, GATE_WIRE_VERSION,
                                                            GATE_IMPORTED },
                                                .number = question->number };
                int fd = memfd_create("piece", MFD_CLOEXEC);

                if (question->header.message == GATE_IMPORT)
                        check(fake_send(&answer, sizeof(answer), &fd, 1) == 0);
                close(fd);
        }
        return NULL;
}

/* A ticket of another process, for the piece @number. */
static CUresult import(CUmemGenericAllocationHandle *ret_handle, uint32_t number)
{
        struct gate_ticket ticket = { .size = 2 * MIB };
        CUresult result;
        int fd;

        check(ticket_identify(&ticket));
        ticket.process.start_time++;
        memcpy(ticket.name, &number, sizeof(number));
        fd = ticket_to_fd(&ticket);
        check(fd >= 0);
        result = cuMemImportFromShareableHandle(ret_handle, (void *)(intptr_t)fd,
                                                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
        close(fd);
        return result;
}

/* What it has said on its standard error since the last time. */
static size_t read_said(int pipe, char *said, size_t room)
{
        ssize_t n = read(pipe, said, room - 1);

        said[n > 0 ? n : 0] = '\0';
        return strlen(said);
}

FAKE_TEST(test_a_process_can_have_so_many_pieces_and_is_told_at_the_end)
{
        CUmemGenericAllocationHandle one_more;
        char said[4096];
        pthread_t manager;
        int ends[2];

        fake_guest_start(GIB);
        entry_real[ENTRY_cuMemImportFromShareableHandle] = (entry_function)import_one;
        entry_real[ENTRY_cuMemRelease] = (entry_function)release_one;
        check(pthread_create(&manager, NULL, give, NULL) == 0);
        for (uint32_t i = 0; i < GATE_IMPORTS_MAX; i++)
                check_answer(import(&handles[i], i), CUDA_SUCCESS);
        check(n_real == GATE_IMPORTS_MAX);

        check(pipe2(ends, O_NONBLOCK | O_CLOEXEC) == 0 && dup2(ends[1], STDERR_FILENO) >= 0);
        check_answer(import(&one_more, GATE_IMPORTS_MAX), CUDA_ERROR_OUT_OF_MEMORY);
        check(read_said(ends[0], said, sizeof(said)) > 0 && strstr(said, "has 65536 pieces of"));
        check_answer(import(&one_more, GATE_IMPORTS_MAX), CUDA_ERROR_OUT_OF_MEMORY);
        check(read_said(ends[0], said, sizeof(said)) == 0); /* once is enough */
        check(n_real == GATE_IMPORTS_MAX);

        check_answer(cuMemRelease(handles[17]), CUDA_SUCCESS);
        check_answer(import(&handles[17], GATE_IMPORTS_MAX), CUDA_SUCCESS);
        check_answer(import(&one_more, 17), CUDA_ERROR_OUT_OF_MEMORY);
        for (uint32_t i = 0; i < GATE_IMPORTS_MAX; i++)
                check_answer(cuMemRelease(handles[i]), CUDA_SUCCESS);
        check(n_real == 0);
        check_answer(import(&one_more, 17), CUDA_SUCCESS);
        _exit(EXIT_SUCCESS); /* the manager waits for more */
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_process_can_have_so_many_pieces_and_is_told_at_the_end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
