/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_FAKE_MAKER_H
#define GATE_FAKE_MAKER_H

/*
 * For the gate's tests: another process, which has made a piece of memory and exported a pool with it. Its tickets are
 * those of this process but for the time at which it was started. A thread plays the manager, who is asked for it.
 */

#include <stdatomic.h>
#include <stdint.h>

#include "abi/cuda.h"
#include "base/size.h"
#include "gate/fake-manager.h"
#include "gate/pool-ticket.h"

#define FAKE_PIECE      (4 * MIB)
#define FAKE_PIECE_NAME "the name of this"
#define FAKE_POOL       "a name of a pool"

extern struct fake_maker {
        CUmemGenericAllocationHandle handle;
        CUdeviceptr at; /* where it has the piece itself */
        int fd;
        _Atomic int n_mapped; /* pieces that the gate has mapped */
        _Atomic int n_asked;  /* questions for memory */
        int error;            /* what they are answered, an errno; 0: the memory */
} fake_maker;

/* fake_maker_start() - makes it on @device; a guest must have been started. */
void fake_maker_start(CUdevice device);

void fake_maker_write(uint64_t offset, unsigned char value);
unsigned char fake_maker_read(CUdeviceptr pointer); /* of anywhere */

/* fake_maker_wait_until_mapped() - the program waits again and again: the agent, too, may be asking the driver something. */
void fake_maker_wait_until_mapped(int n);

/*
 * fake_maker_expect() - the manager answers so many questions, and hears so often whose memory we have.
 * fake_maker_wait() - until it has. fake_maker_answer() - one question, without it.
 */
void fake_maker_expect(int n_questions, int n_tellings);
void fake_maker_wait(void);
void fake_maker_answer(const struct gate_import *question);

/* Tickets; each name has 16 bytes. */
void fake_maker_identify(struct gate_ticket *ticket, const char *name);
struct gate_ticket fake_maker_ticket(const char *pool, const char *piece, uint64_t offset,
                                     uint64_t size);

/* Imports: of a ticket as a pool, of the pool @name, of a pointer's ticket; and of a pointer of FAKE_POOL. */
CUresult fake_maker_import_ticket(CUmemoryPool *ret_pool, const struct gate_ticket *ticket);
CUmemoryPool fake_maker_import_pool(const char *name);
CUresult fake_maker_import(CUdeviceptr *ret_pointer, CUmemoryPool pool,
                           const struct gate_ticket *ticket);
CUdeviceptr fake_maker_import_at(CUmemoryPool pool, uint64_t offset, uint64_t size);

#endif
