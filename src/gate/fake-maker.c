/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/fake-maker.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/packet.h"
#include "gate/entry.h"
#include "gate/ticket.h"

struct fake_maker fake_maker;

static void make_piece(CUdevice device)
{
        const CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, device },
                                         CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
        const CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                           .requestedHandleTypes =
                                                   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                           .location = { CU_MEM_LOCATION_TYPE_DEVICE, device } };

        check(DRIVER(cuMemCreate)(&fake_maker.handle, FAKE_PIECE, &prop, 0) == CUDA_SUCCESS);
        check(DRIVER(cuMemExportToShareableHandle)(&fake_maker.fd, fake_maker.handle,
                                                   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                                   0) == CUDA_SUCCESS);
        check(DRIVER(cuMemAddressReserve)(&fake_maker.at, FAKE_PIECE, 0, 0, 0) == CUDA_SUCCESS);
        check(DRIVER(cuMemMap)(fake_maker.at, FAKE_PIECE, 0, fake_maker.handle, 0) == CUDA_SUCCESS);
        check(DRIVER(cuMemSetAccess)(fake_maker.at, FAKE_PIECE, &access, 1) == CUDA_SUCCESS);
}

static __typeof__(&cuMemMap) real_map;
static __typeof__(&cuMemUnmap) real_unmap;

static CUresult count_map(CUdeviceptr pointer, size_t size, size_t offset,
                          CUmemGenericAllocationHandle handle, unsigned long long flags)
{
        CUresult result = real_map(pointer, size, offset, handle, flags);

        fake_maker.n_mapped += result == CUDA_SUCCESS && size == FAKE_PIECE;
        return result;
}

static CUresult count_unmap(CUdeviceptr pointer, size_t size)
{
        CUresult result = real_unmap(pointer, size);

        fake_maker.n_mapped -= result == CUDA_SUCCESS && size == FAKE_PIECE;
        return result;
}

static void watch(void)
{
        real_map = DRIVER(cuMemMap);
        real_unmap = DRIVER(cuMemUnmap);
        entry_real[ENTRY_cuMemMap] = (entry_function)count_map;
        entry_real[ENTRY_cuMemUnmap] = (entry_function)count_unmap;
}

void fake_maker_start(CUdevice device)
{
        make_piece(device);
        watch();
}

void fake_maker_write(uint64_t offset, unsigned char value)
{
        check(DRIVER(cuMemsetD8_v2)(fake_maker.at + offset, value, 1) == CUDA_SUCCESS);
}

unsigned char fake_maker_read(CUdeviceptr pointer)
{
        unsigned char value;

        check(cuMemcpyDtoH_v2(&value, pointer, 1) == CUDA_SUCCESS);
        return value;
}

/* It goes at one of the next waits: the agent, too, may be asking the driver something. */
void fake_maker_wait_until_mapped(int n)
{
        while (fake_maker.n_mapped != n) { /* what hangs is ended by the time-out of the test */
                check(cuCtxSynchronize() == CUDA_SUCCESS);
                usleep(1000);
        }
}

/* The manager: answers questions for memory, and hears whose memory we have. */

static pthread_t manager;

void fake_maker_answer(const struct gate_import *question)
{
        struct gate_imported imported = { .header = { GATE_WIRE_MAGIC, GATE_WIRE_VERSION,
                                                      GATE_IMPORTED },
                                          .number = question->number,
                                          .error = fake_maker.error };

        check(question->ticket.offset == 0 && question->ticket.size == FAKE_PIECE);
        atomic_fetch_add(&fake_maker.n_asked, 1);
        check(fake_send(&imported, sizeof(imported), &fake_maker.fd, fake_maker.error == 0) == 0);
}

/* Until so many questions are answered, and so many have been told. */
struct until {
        int n_questions, n_tellings;
};

static void *serve(void *argument)
{
        struct until *until = argument;
        union {
                struct gate_header header;
                struct gate_import import;
                char bytes[PACKET_SIZE_MAX];
        } message;
        size_t size;

        while (until->n_questions > 0 || until->n_tellings > 0) {
                check(fake_receive(&message, &size) == 0);
                if (message.header.message == GATE_IMPORT) {
                        fake_maker_answer(&message.import);
                        until->n_questions--;
                } else if (message.header.message == GATE_USES) {
                        until->n_tellings--;
                }
        }
        free(until);
        return NULL;
}

void fake_maker_expect(int n_questions, int n_tellings)
{
        struct until *until = malloc(sizeof(*until));

        check(until);
        *until = (struct until){ n_questions, n_tellings };
        check(pthread_create(&manager, NULL, serve, until) == 0);
}

void fake_maker_wait(void)
{
        check(pthread_join(manager, NULL) == 0);
}

/* Tickets. */

void fake_maker_identify(struct gate_ticket *ticket, const char *name)
{
        check(ticket_identify(ticket));
        ticket->process.start_time++;
        memcpy(ticket->name, name, sizeof(ticket->name));
}

CUresult fake_maker_import_ticket(CUmemoryPool *ret_pool, const struct gate_ticket *ticket)
{
        int fd = ticket_to_fd(ticket);
        CUresult result;

        check(fd >= 0);
        result = cuMemPoolImportFromShareableHandle(ret_pool, (void *)(intptr_t)fd,
                                                    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
        close(fd);
        return result;
}

CUmemoryPool fake_maker_import_pool(const char *name)
{
        struct gate_ticket ticket;
        CUmemoryPool pool;

        fake_maker_identify(&ticket, name);
        pool_ticket_write(&ticket, 0);
        check(fake_maker_import_ticket(&pool, &ticket) == CUDA_SUCCESS);
        return pool;
}

struct gate_ticket fake_maker_ticket(const char *pool, const char *piece, uint64_t offset,
                                     uint64_t size)
{
        struct pool_place place = { .offset = offset, .size = size, .piece = FAKE_PIECE };
        struct gate_ticket ticket;

        fake_maker_identify(&ticket, piece);
        place.pool = pool_ticket_mark((const uint8_t *)pool);
        check(pool_place_write(&ticket, &place));
        return ticket;
}

CUresult fake_maker_import(CUdeviceptr *ret_pointer, CUmemoryPool pool,
                           const struct gate_ticket *ticket)
{
        CUmemPoolPtrExportData data;

        memcpy(&data, ticket, sizeof(data));
        return cuMemPoolImportPointer(ret_pointer, pool, &data);
}

CUdeviceptr fake_maker_import_at(CUmemoryPool pool, uint64_t offset, uint64_t size)
{
        const struct gate_ticket ticket =
                fake_maker_ticket(FAKE_POOL, FAKE_PIECE_NAME, offset, size);
        CUdeviceptr pointer;

        check_answer(fake_maker_import(&pointer, pool, &ticket), CUDA_SUCCESS);
        return pointer;
}
