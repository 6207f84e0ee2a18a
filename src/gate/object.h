/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_OBJECT_H
#define GATE_OBJECT_H

/*
 * The driver's library makes its objects by ioctl on the device nodes of its kernel module. The gate watches these
 * ioctls and lists the few kinds of objects that channel.h and whole.h speak of, and the calls that set how they
 * behave. A checkpoint frees all objects of a process, and a restore makes them again under the same
 * handles, but in another client.
 *
 * Functions of this file may be called by any thread; those with _locked in their names between object_lock() and
 * object_unlock().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum object_kind {
        OBJECT_SUBDEVICE,
        OBJECT_USERMODE, /* registers of a device: its doorbell */
        OBJECT_GROUP,    /* of channels on the graphics engine: one for each context */
        OBJECT_CHANNEL,  /* of such a group */
        OBJECT_COMPUTE,  /* bound to such a channel */
        OBJECT_DEBUGGER,
};

struct object {
        enum object_kind kind;
        int fd; /* that it was made on */
        uint32_t client, parent, object;
        uint64_t serial; /* no two objects have the same: tells one that was made again */
        struct {
                uint64_t address, length; /* 0: not mapped */
        } map;                            /* of the registers, or of the memory that has a ring */
        uint64_t ring; /* CHANNEL: address of its entries, on the device and here */
        uint64_t user; /* CHANNEL: address of its registers; 0: not known */
        uint32_t n_entries;
        uint32_t token; /* CHANNEL: what the doorbell is rung with */
};

#define OBJECT_CONTROL_SIZE_MAX 32

/* A call that makes kernels interruptible (wire/resource-manager.h), as the library sent it last. */
struct object_control {
        uint32_t client, object;
        uint32_t command;
        uint32_t group; /* that it is about; 0: none */
        uint32_t size;
        _Alignas(8) unsigned char parameters[OBJECT_CONTROL_SIZE_MAX];
};

/*
 * object_note() - note that the ioctl @request on @fd with @argument has succeeded. True: channels, or what they are of,
 * have come or gone.
 */
bool object_note(int fd, unsigned long request, const void *argument);

/* object_note_map() - note that @fd has been mapped at @address. */
void object_note_map(int fd, const void *address);

void object_lock(void);
void object_unlock(void);

/* objects_are_incomplete_locked() - there were more than can be followed: what is listed must not be relied on. */
bool objects_are_incomplete_locked(void);

/* object_next_locked() - the one of @kind behind @object; NULL: the first one, and in return: there is no more. */
struct object *object_next_locked(enum object_kind kind, const struct object *object);

/* object_find_locked() - by @client and handle. */
struct object *object_find_locked(enum object_kind kind, uint32_t client, uint32_t object);

/* object_find_subdevice_locked() - that of the device of @group; NULL: not known. */
struct object *object_find_subdevice_locked(const struct object *group);

/* object_next_control_locked() - likewise; those of clients that are gone are kept. */
struct object_control *object_next_control_locked(const struct object_control *control);

#endif
