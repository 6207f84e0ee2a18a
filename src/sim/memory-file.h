/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_MEMORY_FILE_H
#define SIM_MEMORY_FILE_H

/*
 * A memory file: one physical allocation of device memory.
 *
 * A file on a tmpfs, so that a descriptor of it is what it is on a real device: memory that any
 * process can be given and map. Behind the memory there is a page that says which device it is
 * on. Space that nobody has written to costs nothing.
 *
 * Counted references. Calls are made with the process' lock held.
 */

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda.h"
#include "sim/process.h"

struct memory_file {
        struct range handle;              /* its number, in process.handles; 0: it never had one */
        struct memory_file *next, **link; /* process.files */
        uint64_t size;
        int device; /* the host's */
        int fd;
        unsigned int refs;
        unsigned int handles; /* of these, references by CUmemGenericAllocationHandle */
        CUmemAllocationProp props;
        bool is_exported; /* has a name: not in our slot of the holdings */
        bool is_imported; /* and was made by somebody else */
};

/* memory_file_create() - charge @size bytes of host device @device and make a file for them. */
CUresult memory_file_create(struct memory_file **ret_file, int device, uint64_t size);

/* memory_file_import() - make one from a descriptor, which stays the caller's. */
CUresult memory_file_import(struct memory_file **ret_file, int fd);

/* memory_file_export() - make a descriptor for the caller. */
CUresult memory_file_export(struct memory_file *file, int *ret_fd);

struct memory_file *memory_file_ref(struct memory_file *file);
struct memory_file *memory_file_unref(struct memory_file *file);
DEFINE_CLEANUP(struct memory_file *, memory_file_unref);

/*
 * memory_file_take_off() - checkpoint: the device gets its memory back while the contents stay here,
 * in host memory. What others hold as well is copied.
 */
CUresult memory_file_take_off(struct memory_file *file);

/* memory_file_forget_all() - in a forked child, close them without any accounting. */
void memory_file_forget_all(void);

#endif
