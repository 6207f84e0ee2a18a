/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FUZZ_WORLD_H
#define FUZZ_WORLD_H

/*
 * A whole manager in this process, with its sockets, its state and its keeper. Its children are not: movers
 * and the sampler are processes that do nothing, and this one speaks for them. Movers and guests answer
 * well, unless they shall not.
 *
 * Programs with it are linked with world_link_args (meson.build): what the manager asks the kernel about
 * who connects, and how it starts its children, goes through here.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "wire/mover.h"

#define WORLD_GUESTS  2
#define WORLD_DEVICES 2

struct world_guest {
        pid_t pid;      /* 0: no process */
        int life;       /* it ends when this is closed */
        int fd;         /* to the manager; -1: not connected */
        uint32_t state; /* enum gate_state */
        uint32_t has;   /* which of its allocations have memory */
        bool is_stopped;
};

extern struct world {
        char directory[64];
        struct options options;
        struct manager *manager;
        struct ucred peer; /* who connects now; pid 0: who does */
        struct world_guest guest[WORLD_GUESTS];
        struct {
                int fd;   /* the mover's end of its socket; -1: none */
                int life; /* its process ends when this is closed; -1: it has ended */
                pid_t pid;
        } mover[WORLD_DEVICES];
        int sampler, sampler_life;
        int memory;
        bool are_guests_silent, are_movers_silent;
        bool do_movers_linger; /* the manager kills them in vain */
        int guest_error;       /* of the next answer of a guest: a positive errno */
        bool do_maps_fail;     /* a guest cannot map again what it has let go of */
        unsigned int
                n_full_creates; /* so often the driver has no memory for what a guest creates */
        int mover_error;        /* and of a mover: a negative one */
        /* A target that answers a request itself: true. The header begins the packet. */
        bool (*answer_request)(size_t device, const struct mover_header *request);
        const uint8_t *
                probe; /* what the next mover prints that is asked for the devices; NULL: as it is */
        size_t probe_size;
} world;

/* world_set_up() - once. */
void world_set_up(void);

/* world_run() - the manager, and those who answer it, until none of them has anything to do. */
void world_run(void);

/* world_wait() - the same until @is_done, for which threads or the end of processes may be needed. */
void world_wait(bool (*is_done)(void));

/* world_process() - start the process of a guest, unless it is there; world_kill() - end it. */
pid_t world_process(struct world_guest *guest);
void world_kill(struct world_guest *guest);

/* world_stop() - it is stopped, and answers nothing. world_continue() - it runs again. Fine without a process. */
void world_stop(struct world_guest *guest);
void world_continue(struct world_guest *guest);

/* world_connect() - to a socket of the manager, as @peer. -1: it did not want us. */
int world_connect(const char *name, int type, const struct ucred *peer);

/* world_join() - the guest connects and says that it is in @vgpu. */
void world_join(struct world_guest *guest, const char *vgpu);

/* world_leave() - its gate hangs up. */
void world_leave(struct world_guest *guest);

/* world_restart() - the manager ends in good order, whatever goes on, and the next one begins. */
void world_restart(void);

/* world_end_mover() - of this device. */
void world_end_mover(size_t device);

/* world_hang_up_mover() - its process lives on until the manager kills it, or world_end_mover() if do_movers_linger. */
void world_hang_up_mover(size_t device);
void world_end_sampler(void);

/*
 * world_reset() - all guests die; then no operation goes on, and no vGPU has processes.
 * world_clear() - when no client is there any more: all vGPUs can be removed, and nothing is left of them.
 */
void world_reset(void);
void world_clear(void);

#endif
