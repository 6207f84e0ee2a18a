/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/box.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/packet.h"
#include "gate/child.h"

/* Of all partners together. */
#define BOXES_MAX 32

/* No box has room for so many. */
#define PIECES_MAX 64

/* Which file a descriptor was: a program may close what is not its own, and get the number for another file. */
struct end {
        int fd;
        dev_t device;
        ino_t inode;
};

struct box {
        uint64_t number;
        bool is_ours; /* we are the maker */
        struct gate_process maker;
        struct end in, out; /* the user has no @in */
};

struct piece {
        uint8_t name[GATE_NAME_SIZE];
        int fd;
};

static struct {
        pthread_mutex_t lock;
        struct box box[BOXES_MAX];
        size_t n;
        _Atomic uint32_t n_ours;
} boxes = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Ends. */

static bool end_init(struct end *end, int *fd)
{
        struct stat status;

        if (fstat(*fd, &status) < 0 || !S_ISSOCK(status.st_mode))
                return false;
        *end = (struct end){ TAKE_FD(*fd), status.st_dev, status.st_ino };
        return true;
}

static bool end_is_there(const struct end *end)
{
        struct stat status;

        return end->fd >= 0 && fstat(end->fd, &status) == 0 && status.st_dev == end->device &&
               status.st_ino == end->inode;
}

static void end_close(struct end *end)
{
        if (end_is_there(end))
                fd_close(end->fd);
        end->fd = -1;
}

/* Pieces. */

static bool put(const struct box *box, const uint8_t name[GATE_NAME_SIZE], int fd)
{
        struct gate_piece piece;

        memcpy(piece.name, name, sizeof(piece.name));
        return packet_send(box->in.fd, &piece, sizeof(piece), &fd, 1) == 0;
}

/* The oldest. What is none is dropped: false as at the end, and the box is good for nothing more. */
static bool take(const struct box *box, struct piece *ret_piece)
{
        char message[PACKET_SIZE_MAX];
        int fds[PACKET_FDS_MAX];
        size_t size, n_fds;

        if (packet_receive_now(box->out.fd, message, &size, fds, &n_fds) < 0)
                return false;
        if (size != sizeof(struct gate_piece) || n_fds != 1) {
                packet_close_fds(fds, n_fds);
                return false;
        }
        memcpy(ret_piece->name, message, sizeof(ret_piece->name));
        ret_piece->fd = fds[0];
        return true;
}

static bool bears(const struct piece *piece, const uint8_t name[GATE_NAME_SIZE])
{
        return memcmp(piece->name, name, GATE_NAME_SIZE) == 0;
}

static bool is_usable(const struct box *box)
{
        return end_is_there(&box->out) && (!box->is_ours || end_is_there(&box->in));
}

static void empty(const struct box *box)
{
        struct piece piece;

        while (take(box, &piece))
                fd_close(piece.fd);
}

/* A turn of all that lies in it; its user may take out meanwhile, and miss something. */
static void remove_from(const struct box *box, const uint8_t name[GATE_NAME_SIZE])
{
        struct piece kept[PIECES_MAX];
        size_t n = 0;

        while (n < PIECES_MAX && take(box, &kept[n])) {
                if (bears(&kept[n], name))
                        fd_close(kept[n].fd);
                else
                        n++;
        }
        for (size_t i = 0; i < n; i++) {
                (void)put(box, kept[i].name, kept[i].fd);
                fd_close(kept[i].fd);
        }
}

/* Opening and closing. */

static struct box *find_locked(uint64_t number)
{
        for (size_t i = 0; i < boxes.n; i++)
                if (boxes.box[i].number == number)
                        return &boxes.box[i];
        return NULL;
}

static void close_locked(struct box *box)
{
        if (box->is_ours) {
                if (is_usable(box))
                        empty(box);
                atomic_fetch_sub(&boxes.n_ours, 1);
        }
        end_close(&box->in);
        end_close(&box->out);
        *box = boxes.box[--boxes.n];
}

int box_open(const struct gate_box *message, int *fds)
{
        struct box box = { .number = message->number,
                           .is_ours = message->role == GATE_BOX_MAKER,
                           .maker = message->maker,
                           .in.fd = -1 };
        bool is_good = end_init(&box.out, &fds[0]);

        if (is_good && box.is_ours)
                is_good = end_init(&box.in, &fds[1]);
        pthread_mutex_lock(&boxes.lock);
        if (is_good && boxes.n < BOXES_MAX && !find_locked(box.number)) {
                boxes.box[boxes.n++] = box;
                if (box.is_ours)
                        atomic_fetch_add(&boxes.n_ours, 1);
        } else {
                end_close(&box.in);
                end_close(&box.out);
        }
        pthread_mutex_unlock(&boxes.lock);
        return is_good ? 0 : -EPROTO;
}

void box_close(uint64_t number)
{
        struct box *box;

        pthread_mutex_lock(&boxes.lock);
        box = find_locked(number);
        if (box)
                close_locked(box);
        pthread_mutex_unlock(&boxes.lock);
}

void box_close_all(void)
{
        pthread_mutex_lock(&boxes.lock);
        while (boxes.n > 0)
                close_locked(&boxes.box[boxes.n - 1]);
        pthread_mutex_unlock(&boxes.lock);
}

/* The maker. */

bool box_is_any(void)
{
        return atomic_load(&boxes.n_ours) > 0;
}

void box_put(const uint8_t name[GATE_NAME_SIZE], int fd)
{
        struct piece oldest;

        pthread_mutex_lock(&boxes.lock);
        for (size_t i = 0; i < boxes.n; i++) {
                const struct box *box = &boxes.box[i];

                if (!box->is_ours || !is_usable(box) || put(box, name, fd))
                        continue;
                if (take(box, &oldest)) {
                        fd_close(oldest.fd);
                        (void)put(box, name, fd);
                }
        }
        pthread_mutex_unlock(&boxes.lock);
}

bool box_fill(uint64_t number, const uint8_t name[GATE_NAME_SIZE], int fd)
{
        const struct box *box;
        bool is_put;

        pthread_mutex_lock(&boxes.lock);
        box = find_locked(number);
        is_put = box && box->is_ours && is_usable(box) && put(box, name, fd);
        pthread_mutex_unlock(&boxes.lock);
        return is_put;
}

static void remove_locked(const uint8_t *name)
{
        for (size_t i = 0; i < boxes.n; i++) {
                const struct box *box = &boxes.box[i];

                if (!box->is_ours || !is_usable(box))
                        continue;
                if (name)
                        remove_from(box, name);
                else
                        empty(box);
        }
}

void box_remove(const uint8_t name[GATE_NAME_SIZE])
{
        pthread_mutex_lock(&boxes.lock);
        remove_locked(name);
        pthread_mutex_unlock(&boxes.lock);
}

void box_empty(void)
{
        pthread_mutex_lock(&boxes.lock);
        remove_locked(NULL);
        pthread_mutex_unlock(&boxes.lock);
}

/* The user. */

static const struct box *find_of_locked(const struct gate_process *maker)
{
        for (size_t i = 0; i < boxes.n; i++)
                if (!boxes.box[i].is_ours &&
                    memcmp(&boxes.box[i].maker, maker, sizeof(*maker)) == 0)
                        return is_usable(&boxes.box[i]) ? &boxes.box[i] : NULL;
        return NULL;
}

/* In the order in which they were exported: what lies before it was for others, or is not wanted. */
int box_take(const struct gate_ticket *ticket)
{
        const struct box *box;
        struct piece piece = { .fd = -1 };

        pthread_mutex_lock(&boxes.lock);
        box = find_of_locked(&ticket->process);
        while (box && take(box, &piece)) {
                if (bears(&piece, ticket->name))
                        break;
                piece.fd = fd_close(piece.fd);
        }
        pthread_mutex_unlock(&boxes.lock);
        return piece.fd;
}

void box_forget(void)
{
        pthread_mutex_init(&boxes.lock, NULL);
        for (size_t i = 0; i < boxes.n; i++) {
                end_close(&boxes.box[i].in);
                end_close(&boxes.box[i].out);
        }
        boxes.n = 0;
        atomic_store(&boxes.n_ours, 0);
}
