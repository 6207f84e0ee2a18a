/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A memory file: one physical allocation of device memory.
 *
 * The descriptor is kept for as long as the allocation lives, at a high number:
 * programs expect low ones for what they open themselves, and a driver that
 * took them would break those that use select().
 */

#include "sim/memory-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* select() can't name descriptors from here on. */
#define FIRST_FD 1024

#define LABEL_MAGIC 0x4c41424c59524f4dull

/* In the page behind the memory. */
struct label {
        uint64_t magic;
        int32_t device;
        int32_t rdma_capable;
};

#define LABEL_PAGE 4096

/*
 * A real driver uses no descriptor for an allocation; so that programs don't notice ours, the
 * limit of the process is raised as far as it goes.
 */
static void raise_limit(void)
{
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == limit.rlim_max)
                return;
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* Takes @fd; the same open file under a high number, or @fd where there is none. */
static int move_up(int fd)
{
        int high = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FD);

        if (high < 0) {
                raise_limit();
                high = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FD);
        }
        if (high < 0)
                return fd;
        (void)fd_close(fd);
        return high;
}

static int write_label(int fd, uint64_t size, int device, bool is_rdma_capable)
{
        struct label label = { LABEL_MAGIC, device, is_rdma_capable };

        return pwrite(fd, &label, sizeof(label), (off_t)size) == (ssize_t)sizeof(label) ? 0 : -EIO;
}

static int open_nameless(uint64_t size)
{
        CLEANUP(fd_closep)
        int fd = openat(process.holdings.memory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

        if (fd < 0 && errno == EMFILE) {
                raise_limit();
                fd = openat(process.holdings.memory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        }
        if (fd < 0)
                return -errno;
        fd = move_up(fd);
        if (flock(fd, LOCK_EX) < 0 || ftruncate(fd, (off_t)(size + LABEL_PAGE)) < 0)
                return -errno;
        return TAKE_FD(fd);
}

static struct memory_file *add(uint64_t size, int device, int fd)
{
        struct memory_file *file = calloc(1, sizeof(*file));

        if (!file)
                return NULL;
        file->size = size;
        file->device = device;
        file->fd = fd;
        file->refs = 1;
        file->next = process.files;
        file->link = &process.files;
        if (file->next)
                file->next->link = &file->next;
        process.files = file;
        return file;
}

CUresult memory_file_create(struct memory_file **ret_file, int device, uint64_t size)
{
        CLEANUP(fd_closep) int fd = -1;
        struct memory_file *file = NULL;

        if (holdings_charge(&process.holdings, device, size) < 0)
                return CUDA_ERROR_OUT_OF_MEMORY;
        fd = open_nameless(size);
        if (fd >= 0)
                file = add(size, device, fd);
        if (!file) {
                holdings_refund(&process.holdings, device, size);
                return CUDA_ERROR_OUT_OF_MEMORY;
        }
        (void)TAKE_FD(fd);
        *ret_file = file;
        return CUDA_SUCCESS;
}

/*
 * A driver looks the memory's device up among those that it saw when it was initialized. So a
 * process that was moved to another one afterwards cannot import from there (measured: 3). It saw those,
 * too, that are hidden from the program: NCCL shares memory between processes that see one device each.
 */
static bool is_known_device(int device)
{
        bool is_entered = false;

        for (int i = 0; i < process.n_devices; i++) {
                if (process.device[i].home == device)
                        return true;
                is_entered |= process.device[i].at == device;
        }
        return !is_entered;
}

static CUresult read_label(int fd, struct label *label, uint64_t *size)
{
        struct stat status, folder;

        if (fstat(fd, &status) < 0 || fstat(process.holdings.memory, &folder) < 0 ||
            status.st_dev != folder.st_dev || status.st_size <= LABEL_PAGE)
                return CUDA_ERROR_INVALID_VALUE;
        *size = (uint64_t)status.st_size - LABEL_PAGE;
        if (pread(fd, label, sizeof(*label), (off_t)*size) != (ssize_t)sizeof(*label) ||
            label->magic != LABEL_MAGIC)
                return CUDA_ERROR_INVALID_VALUE;
        return is_known_device(label->device) ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult memory_file_import(struct memory_file **ret_file, int fd)
{
        CLEANUP(fd_closep) int own = -1;
        struct memory_file *file;
        struct label label;
        uint64_t size;
        CUresult result = read_label(fd, &label, &size);

        if (result != CUDA_SUCCESS)
                return result;
        own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        if (own < 0)
                return CUDA_ERROR_OPERATING_SYSTEM;
        own = move_up(own);
        file = add(size, label.device, own);
        if (!file)
                return CUDA_ERROR_OUT_OF_MEMORY;
        (void)TAKE_FD(own);
        file->is_exported = true;
        file->is_imported = true;
        file->props.allocFlags.gpuDirectRDMACapable = (unsigned char)label.rdma_capable;
        *ret_file = file;
        return CUDA_SUCCESS;
}

CUresult memory_file_export(struct memory_file *file, int *ret_fd)
{
        int fd;

        if (file->is_imported)
                return CUDA_ERROR_INVALID_VALUE; /* measured: nothing can be exported again */
        if (!file->is_exported) {
                if (write_label(file->fd, file->size, file->device,
                                file->props.allocFlags.gpuDirectRDMACapable) < 0 ||
                    holdings_share(&process.holdings, file->fd, file->device, file->size) < 0)
                        return CUDA_ERROR_OPERATING_SYSTEM;
                file->is_exported = true;
        }
        fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
        if (fd < 0)
                return CUDA_ERROR_OPERATING_SYSTEM;
        *ret_fd = fd;
        return CUDA_SUCCESS;
}

struct memory_file *memory_file_ref(struct memory_file *file)
{
        file->refs++;
        return file;
}

struct memory_file *memory_file_unref(struct memory_file *file)
{
        if (!file || --file->refs > 0)
                return NULL;
        if (file->next)
                file->next->link = file->link;
        *file->link = file->next;
        if (file->handle.address)
                space_remove(&process.handles, &file->handle);
        (void)fd_close(file->fd);
        if (!file->is_exported)
                holdings_refund(&process.holdings, file->device, file->size);
        free(file);
        return NULL;
}

static int copy_part(int to, int from, off_t begin, off_t end)
{
        while (begin < end) {
                loff_t in = begin, out = begin;
                ssize_t n = copy_file_range(from, &in, to, &out, (size_t)(end - begin), 0);

                if (n <= 0)
                        return n < 0 ? -errno : -EIO;
                begin += n;
        }
        return 0;
}

/* Only what has been written to: the rest reads as zeros in the copy, too. */
static int copy_contents(int to, int from, uint64_t size)
{
        off_t begin = 0, end = 0;
        int r = 0;

        while (r == 0 && (begin = lseek(from, end, SEEK_DATA)) >= 0 && begin < (off_t)size) {
                end = lseek(from, begin, SEEK_HOLE);
                if (end < 0 || end > (off_t)size)
                        end = (off_t)size;
                r = copy_part(to, from, begin, end);
        }
        return r;
}

CUresult memory_file_take_off(struct memory_file *file)
{
        CLEANUP(fd_closep) int copy = -1;

        if (file->is_imported)
                return CUDA_SUCCESS;
        if (!file->is_exported) {
                holdings_refund(&process.holdings, file->device, file->size);
                return CUDA_SUCCESS;
        }
        copy = open_nameless(file->size);
        if (copy < 0 || copy_contents(copy, file->fd, file->size) < 0)
                return CUDA_ERROR_OPERATING_SYSTEM;
        (void)fd_close(file->fd);
        file->fd = TAKE_FD(copy);
        file->is_exported = false;
        return CUDA_SUCCESS;
}

void memory_file_forget_all(void)
{
        for (struct memory_file *file = process.files; file; file = file->next)
                file->fd = fd_close(file->fd);
}
