/* SPDX-License-Identifier: Apache-2.0 */
#include "spill/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/list.h"
#include "spill/spill-internal.h"

struct mapping {
        int fd; /* only compared */
        void *address;
        size_t size;
};

struct spill_copy {
        struct list link; /* of those under way, or done */
        struct spill *spill;
        pthread_t thread;
        bool is_read;
        int fd;
        uint64_t begin;
        struct spill_mark mark;
        struct mapping *mappings; /* of whole slabs: huge pages cannot be mapped in parts */
        size_t n_mappings;
        struct iovec *pieces;
        size_t n_pieces;
        atomic_bool must_end;
        struct spill_result result;
        spill_done_fn done;
        void *userdata;
};

/* Memory. */

static struct spill_copy *copy_free(struct spill_copy *copy)
{
        if (!copy)
                return NULL;
        for (size_t i = 0; i < copy->n_mappings; i++)
                munmap(copy->mappings[i].address, copy->mappings[i].size);
        free(copy->mappings);
        free(copy->pieces);
        fd_close(copy->fd);
        free(copy);
        return NULL;
}

DEFINE_CLEANUP(struct spill_copy *, copy_free);

static int find_or_map(struct spill_copy *copy, int fd, struct mapping **ret_mapping)
{
        struct mapping *mapping = &copy->mappings[copy->n_mappings];
        int access = copy->is_read ? PROT_READ | PROT_WRITE : PROT_READ;
        struct stat status;

        for (size_t i = 0; i < copy->n_mappings; i++)
                if (copy->mappings[i].fd == fd) {
                        *ret_mapping = &copy->mappings[i];
                        return 0;
                }
        if (fstat(fd, &status) < 0)
                return -errno;
        mapping->fd = fd;
        mapping->size = (size_t)status.st_size;
        mapping->address = mmap(NULL, mapping->size, access, MAP_SHARED, fd, 0);
        if (mapping->address == MAP_FAILED)
                return -errno;
        copy->n_mappings++;
        *ret_mapping = mapping;
        return 0;
}

static int map_all(struct spill_copy *copy, const struct spill_order *order)
{
        copy->mappings = calloc(order->n_extents + 1, sizeof(*copy->mappings));
        copy->pieces = calloc(order->n_extents + 1, sizeof(*copy->pieces));
        if (!copy->mappings || !copy->pieces)
                return -ENOMEM;
        for (size_t i = 0; i < order->n_extents; i++) {
                const struct spill_extent *extent = &order->extents[i];
                struct mapping *mapping = NULL;
                uint64_t end;
                int r = find_or_map(copy, extent->fd, &mapping);

                if (r < 0)
                        return r;
                if (__builtin_add_overflow(extent->offset, extent->length, &end) ||
                    end > mapping->size)
                        return -EINVAL;
                copy->pieces[copy->n_pieces++] =
                        (struct iovec){ (char *)mapping->address + extent->offset, extent->length };
        }
        return 0;
}

static int copy_new(struct spill_copy **ret_copy, struct spill *spill,
                    const struct spill_order *order)
{
        CLEANUP(copy_freep) struct spill_copy *copy = calloc(1, sizeof(*copy));
        int r;

        if (!copy)
                return -ENOMEM;
        copy->spill = spill;
        copy->is_read = order->is_read;
        copy->mark = order->mark;
        copy->begin = order->begin;
        copy->fd = fcntl(order->fd, F_DUPFD_CLOEXEC, 3);
        r = copy->fd < 0 ? -errno : map_all(copy, order);
        if (r < 0)
                return r;
        *ret_copy = TAKE(copy);
        return 0;
}

/* In its thread. */

static int run(struct spill_copy *copy)
{
        struct image_error *reason = &copy->result.reason;
        int r;

        (void)fault_point(copy->is_read ? "spill.reading"
                                        : "spill.writing"); /* to kill or to wait */
        if (copy->is_read)
                r = spill_file_read(copy->fd, copy->begin, &copy->mark, copy->pieces,
                                    copy->n_pieces, &copy->must_end, reason);
        else
                r = spill_file_write(copy->fd, copy->begin, &copy->mark, copy->pieces,
                                     copy->n_pieces, &copy->must_end, reason);
        (void)fault_point(copy->is_read ? "spill.read" : "spill.written");
        return r;
}

static void *run_copy(void *userdata)
{
        struct spill_copy *copy = userdata;
        struct spill *spill = copy->spill;
        uint64_t begin_ns = clock_now(CLOCK_MONOTONIC);

        copy->result.error = run(copy);
        copy->result.took_ns = clock_now(CLOCK_MONOTONIC) - begin_ns;
        (void)pthread_mutex_lock(&spill->lock);
        list_remove(&copy->link);
        list_append(&spill->ended, &copy->link);
        (void)eventfd_write(spill->finished, 1);
        (void)pthread_mutex_unlock(&spill->lock);
        return NULL;
}

/* In the manager's. */

static struct spill_copy *take_ended(struct spill *spill)
{
        struct spill_copy *copy = NULL;

        (void)pthread_mutex_lock(&spill->lock);
        if (!list_is_empty(&spill->ended)) {
                copy = list_entry(spill->ended.next, struct spill_copy, link);
                list_remove(&copy->link);
        }
        (void)pthread_mutex_unlock(&spill->lock);
        return copy;
}

static int on_finished(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct spill_copy *copy;
        eventfd_t n;

        (void)source, (void)events;
        (void)eventfd_read(fd, &n);
        while ((copy = take_ended(userdata))) {
                (void)pthread_join(copy->thread, NULL);
                copy->done(&copy->result, copy->userdata);
                copy_free(copy);
        }
        return 0;
}

int spill_new(struct spill **ret_spill, sd_event *event, int directory)
{
        struct spill *spill = calloc(1, sizeof(*spill));
        int r;

        if (!spill) {
                fd_close(directory);
                return -ENOMEM;
        }
        spill->directory = directory;
        list_init(&spill->running);
        list_init(&spill->ended);
        (void)pthread_mutex_init(&spill->lock, NULL);
        spill->finished = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        r = spill->finished < 0 ? -errno : spill_stuck_new(&spill->stuck);
        if (r == 0)
                r = sd_event_add_io(event, &spill->source, spill->finished, EPOLLIN, on_finished,
                                    spill);
        if (r < 0) {
                spill_free(spill);
                return r;
        }
        *ret_spill = spill;
        return 0;
}

static void cancel_all(struct spill *spill)
{
        struct spill_copy *copy;

        (void)pthread_mutex_lock(&spill->lock);
        list_for_each(copy, &spill->running, link)
                copy->must_end = true;
        (void)pthread_mutex_unlock(&spill->lock);
}

static bool has_running(struct spill *spill)
{
        bool has;

        (void)pthread_mutex_lock(&spill->lock);
        has = !list_is_empty(&spill->running);
        (void)pthread_mutex_unlock(&spill->lock);
        return has;
}

struct spill *spill_free(struct spill *spill)
{
        struct spill_copy *copy;
        eventfd_t n;

        if (!spill)
                return NULL;
        cancel_all(spill);
        if (spill->finished >= 0)
                (void)fcntl(spill->finished, F_SETFL, 0); /* from now on a read waits */
        while (has_running(spill))
                (void)eventfd_read(spill->finished, &n);
        while ((copy = take_ended(spill))) {
                (void)pthread_join(copy->thread, NULL);
                copy_free(copy);
        }
        sd_event_source_disable_unref(spill->source);
        (void)pthread_mutex_destroy(&spill->lock);
        fd_close(spill->finished);
        fd_close(spill->directory);
        spill->stuck = spill_stuck_unref(spill->stuck);
        free(spill);
        return NULL;
}

int spill_make_file(const struct spill *spill, int *ret_fd)
{
        return spill_file_new(ret_fd, spill->directory);
}

int spill_begin(struct spill *spill, struct spill_copy **ret_copy, const struct spill_order *order,
                spill_done_fn done, void *userdata)
{
        struct spill_copy *copy;
        int r = copy_new(&copy, spill, order);

        if (r < 0)
                return r;
        copy->done = done;
        copy->userdata = userdata;
        (void)pthread_mutex_lock(&spill->lock); /* it ends no sooner than it is in the list */
        r = -pthread_create(&copy->thread, NULL, run_copy, copy);
        if (r == 0)
                list_append(&spill->running, &copy->link);
        (void)pthread_mutex_unlock(&spill->lock);
        if (r < 0) {
                copy_free(copy);
                return r;
        }
        *ret_copy = copy;
        return 0;
}

void spill_cancel(struct spill_copy *copy)
{
        copy->must_end = true;
}
