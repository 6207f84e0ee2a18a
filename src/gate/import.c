/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/import.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "gate/caller.h"
#include "gate/child.h"
#include "gate/entry.h"
#include "gate/fork-guard.h"
#include "gate/leave.h"
#include "gate/link.h"
#include "gate/log.h"
#include "gate/quota.h"
#include "gate/wait.h"

/* Between two questions for memory that is away just now. */
#define ASK_AGAIN_NS 20000000

enum question_state { QUESTION_NONE, QUESTION_ASKED, QUESTION_ANSWERED };

static struct {
        struct wait_lock asking; /* by the thread of the application that asks */
        pthread_mutex_t lock;
        int socket;
        _Atomic uint64_t number; /* of the newest question */
        _Atomic enum question_state state;
        bool must_tell; /* the manager believes that we have what nobody waited for, or what we could not take */
        int not_taken;                     /* an errno: why */
        int error;                         /* of the answer */
        CUresult code;                     /* of the driver */
        CUmemGenericAllocationHandle real; /* what it has made of the answer */
        struct {
                struct physical *at; /* the one that is asked for; NULL: none */
                bool is_question;
        } taking;
} import = { .lock = PTHREAD_MUTEX_INITIALIZER, .socket = -1 };

/* An import of a thread of the application. */
struct opening {
        struct leave leave;
        struct physical *physical; /* and its import */
        uint64_t number;           /* of its question; 0: none */
        bool is_tracked;
};

static int send_question_locked(const struct gate_ticket *ticket)
{
        struct gate_import message = { .number = ++import.number, .ticket = *ticket };
        int r = import.socket < 0
                        ? -ENOTCONN
                        : link_send(import.socket, GATE_IMPORT, &message, sizeof(message), NULL, 0);

        import.state = r == 0 ? QUESTION_ASKED : QUESTION_NONE;
        return r;
}

/*
 * What we have no use for is not ours in the manager's books for long. Not while a question is under way: its
 * answer may be on its way, and what it brings would be forgotten.
 */
static void tell_locked(void)
{
        if (!import.must_tell || import.state != QUESTION_NONE || import.socket < 0)
                return;
        import.must_tell = false;
        (void)import_tell_used(import.socket); /* a broken connection shows as a hang-up */
}

static bool is_under_way(uint64_t number)
{
        return atomic_load(&import.number) == number &&
               atomic_load(&import.state) == QUESTION_ASKED;
}

static bool is_answered(void *number)
{
        return !is_under_way(*(const uint64_t *)number);
}

/* The thread that has asked does not take the answer, which may be there, or under way: then import_answer() tells the manager. */
static void abandon_question_locked(void)
{
        if (import.state == QUESTION_NONE)
                return;
        if (import.state == QUESTION_ANSWERED && import.error == 0) {
                (void)DRIVER(cuMemRelease)(import.real);
                import.must_tell = true;
        }
        import.state = QUESTION_NONE;
        import.number++;
}

/*
 * For a thread of the application. While the gate closes the agent takes no answer, and waits for us: so we
 * do not ask then, and a thread that has asked is told to ask again (import_withdraw()). So is a thread that was interrupted by a
 * handler that has asked for something else.
 */
static int ask_locked(struct opening *opening)
{
        if (atomic_load(&gate_closed) ||
            send_question_locked(&opening->physical->import->ticket) < 0)
                return -EAGAIN; /* another manager will come */
        opening->number = import.number;
        pthread_mutex_unlock(&import.lock);
        (void)wait_until(is_answered, &opening->number);
        pthread_mutex_lock(&import.lock);
        if (import.number != opening->number)
                return -EAGAIN;
        if (import.state == QUESTION_ASKED) {
                abandon_question_locked();
                return -ECANCELED;
        }
        import.state = QUESTION_NONE;
        return import.error;
}

static int get_locked(struct opening *opening)
{
        if (!vmm_may_import()) {
                log_to_user(
                        "this process has %d pieces of other processes' memory: it can have no more",
                        GATE_IMPORTS_MAX);
                return -ENOMEM;
        }
        return ask_locked(opening);
}

/* What is answered is counted before anybody else can tell whose memory we have. */
static int ask(struct opening *opening, CUresult *ret_code)
{
        struct physical *physical = opening->physical;
        struct wait_hold hold;
        bool has_lock;
        int r = wait_lock(&import.asking, &hold);

        has_lock = r == 0; /* else it is a handler's question, in the middle of one */
        if (r < 0 && r != -EDEADLK)
                return r;
        pthread_mutex_lock(&import.lock);
        if (!has_lock)
                abandon_question_locked();
        r = get_locked(opening);
        physical->import->real = import.real;
        *ret_code = import.code;
        if (r == 0) {
                opening->is_tracked = true;
                vmm_track(physical);
                quota_count_allocations(1);
        }
        tell_locked();
        pthread_mutex_unlock(&import.lock);
        if (has_lock)
                wait_unlock(&hold);
        return r;
}

static int ask_patiently(struct opening *opening, CUresult *ret_code)
{
        int r;

        while ((r = ask(opening, ret_code)) == -EAGAIN) {
                if (!wait_is_allowed())
                        return -ECANCELED;
                caller_nap_aside(ASK_AGAIN_NS);
        }
        return r;
}

static CUresult refusal(int error, CUresult code)
{
        log_write("an import failed: %s, driver %d", strerrordesc_np(-error), code);
        switch (error) {
        case -EIO: /* of the maker's gate, when our driver was not asked */
                return code != CUDA_SUCCESS ? code : CUDA_ERROR_OPERATING_SYSTEM;
        case -EMFILE:
                log_to_user("this process has too many open files to take memory of another one: "
                            "raise its limit (ulimit -n)");
                return CUDA_ERROR_OPERATING_SYSTEM;
        case -EPERM:
                return CUDA_ERROR_NOT_PERMITTED;
        case -ECANCELED:
                return CUDA_ERROR_DEINITIALIZED;
        case -ENOMEM:
                return CUDA_ERROR_OUT_OF_MEMORY;
        case -ETIMEDOUT:
                return CUDA_ERROR_OPERATING_SYSTEM;
        default:
                return CUDA_ERROR_INVALID_VALUE; /* as of a descriptor of nothing */
        }
}

/* All memory of some process is gone. By the agent, too, for whom who asks waits: so at once, or behind the answer. */
static void tell_dropped(void)
{
        pthread_mutex_lock(&import.lock);
        import.must_tell = true;
        tell_locked();
        pthread_mutex_unlock(&import.lock);
}

static struct physical *make_physical(const struct gate_ticket *ticket)
{
        struct physical *physical = vmm_new();
        struct import *made = calloc(1, sizeof(*made));

        if (!physical || !made) {
                free(physical);
                free(made);
                return NULL;
        }
        made->ticket = *ticket;
        made->tell_dropped = tell_dropped;
        physical->import = made;
        return physical;
}

static void free_physical(struct physical *physical)
{
        free(physical->import);
        free(physical);
}

static void leave_opening(struct leave *leave)
{
        struct opening *opening = (struct opening *)leave;

        pthread_mutex_lock(&import.lock);
        if (opening->number == import.number)
                abandon_question_locked();
        pthread_mutex_unlock(&import.lock);
        if (opening->is_tracked)
                vmm_drop(opening->physical);
        else
                free_physical(opening->physical);
}

CUresult import_open(struct physical **ret_physical, const struct gate_ticket *ticket)
{
        struct opening opening = { .physical = make_physical(ticket) };
        CUresult code = CUDA_SUCCESS;
        int r;

        if (!opening.physical)
                return refusal(-ENOMEM, CUDA_SUCCESS);
        leave_begin(&opening.leave, leave_opening);
        r = ask_patiently(&opening, &code);
        leave_end(&opening.leave);
        if (r < 0) {
                free_physical(opening.physical);
                return refusal(r, code);
        }
        *ret_physical = opening.physical;
        return CUDA_SUCCESS;
}

/* The agent. */

static void withdraw_locked(void)
{
        if (import.state != QUESTION_ASKED)
                return;
        import.state = QUESTION_ANSWERED;
        import.error = -EAGAIN;
        wait_wake();
}

void import_withdraw(void)
{
        pthread_mutex_lock(&import.lock);
        withdraw_locked();
        pthread_mutex_unlock(&import.lock);
}

void import_connect(int socket)
{
        pthread_mutex_lock(&import.lock);
        import.socket = socket;
        import.must_tell = false; /* who is new hears all */
        import.not_taken = 0;
        withdraw_locked();
        import.taking.at = NULL;
        pthread_mutex_unlock(&import.lock);
}

int import_tell_used(int socket)
{
        struct gate_uses uses = { .error = import.not_taken };

        import.not_taken = 0;
        uses.count = vmm_list_used(uses.process, GATE_USES_MAX);
        return link_send(socket, GATE_USES, &uses, sizeof(uses), NULL, 0);
}

static void accept_locked(const struct gate_imported *answer, int fd)
{
        import.state = QUESTION_ANSWERED;
        import.error = -answer->error;
        import.code = CUDA_SUCCESS;
        import.real = 0;
        if (answer->error == 0 && !(import.taking.at && import.taking.is_question))
                import.code = DRIVER(cuMemImportFromShareableHandle)(
                        &import.real, (void *)(intptr_t)fd,
                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
        if (import.code != CUDA_SUCCESS)
                import.error = -EIO;
        wait_wake();
}

int import_answer(const struct gate_imported *answer, int fd)
{
        int r = 0;

        pthread_mutex_lock(&import.lock);
        if (answer->number == 0 || answer->number > import.number) {
                r = -EPROTO;
        } else if (answer->number == import.number && import.state == QUESTION_ASKED) {
                accept_locked(answer, fd);
                if (answer->error == EMFILE) {
                        import.must_tell = true;
                        import.not_taken = EMFILE;
                }
        } else {
                r = -ESTALE;
                import.must_tell |= answer->error == 0;
                tell_locked();
        }
        pthread_mutex_unlock(&import.lock);
        return r;
}

/* Letting go. */

static void map_again(const struct physical *until)
{
        const char *call;

        for (struct physical *it = vmm_next_import(NULL); it != until; it = vmm_next_import(it))
                if (!it->import->is_away)
                        (void)physical_map(it, it->import->real, &call);
}

/* First all are unmapped, which can be undone, and only then any is released, which cannot. */
int import_let_go(struct move *ret_move)
{
        struct physical *it = vmm_next_import(NULL);
        CUresult result = CUDA_SUCCESS;

        *ret_move = (struct move){ .call = "" };
        for (; it; it = vmm_next_import(it)) {
                if (it->import->is_away)
                        continue;
                result = physical_unmap(it, it->import->real, &ret_move->call);
                if (result != CUDA_SUCCESS)
                        break;
        }
        if (!it && fault_point("gate-let-go")) {
                result = CUDA_ERROR_UNKNOWN;
                ret_move->call = "gate-let-go";
        }
        if (result != CUDA_SUCCESS) {
                map_again(it);
                ret_move->code = result;
                return -EIO;
        }
        for (it = vmm_next_import(NULL); it; it = vmm_next_import(it)) {
                if (it->import->is_away)
                        continue;
                (void)DRIVER(cuMemRelease)(it->import->real);
                it->import->is_away = true;
        }
        return 0;
}

bool import_are_away(void)
{
        for (const struct physical *it = vmm_next_import(NULL); it; it = vmm_next_import(it))
                if (it->import->is_away)
                        return true;
        return false;
}

void import_give_up(void)
{
        struct physical *it = vmm_next_import(NULL), *after;

        for (; it; it = after) {
                after = vmm_next_import(it);
                it->import->is_lost = it->import->is_away;
        }
}

/* Taking again. */

static struct physical *next_to_take(struct physical *after)
{
        struct physical *it = vmm_next_import(after);

        while (it && !import.taking.is_question && !it->import->is_away)
                it = vmm_next_import(it);
        return it;
}

static int ask_for_next(struct physical *after)
{
        int r = 0;

        pthread_mutex_lock(&import.lock);
        import.taking.at = next_to_take(after);
        if (import.taking.at)
                r = send_question_locked(&import.taking.at->import->ticket);
        pthread_mutex_unlock(&import.lock);
        if (r < 0)
                return r;
        return import.taking.at != NULL;
}

int import_take(bool is_question)
{
        import.taking.is_question = is_question;
        return ask_for_next(NULL);
}

/* The answer is there. */
static int take_one(struct physical *physical, struct move *ret_move)
{
        CUresult result;

        ret_move->code = import.code;
        ret_move->call = import.code ? "cuMemImportFromShareableHandle" : "";
        if (import.error == -ESRCH || import.error == -ENOENT)
                return -EOWNERDEAD;
        if (import.error < 0 || import.taking.is_question)
                return import.error;
        result = physical_map(physical, import.real, &ret_move->call);
        if (result == CUDA_SUCCESS && fault_point("gate-take")) {
                result = CUDA_ERROR_UNKNOWN;
                ret_move->call = "gate-take";
                (void)physical_unmap(physical, import.real, &(const char *){ NULL });
        }
        if (result != CUDA_SUCCESS) {
                (void)DRIVER(cuMemRelease)(import.real);
                ret_move->code = result;
                return -EIO;
        }
        physical->import->real = import.real;
        physical->import->is_away = false;
        return 0;
}

int import_take_next(struct move *ret_move)
{
        struct physical *physical = import.taking.at;
        struct move undone;
        int r;

        *ret_move = (struct move){ .call = "" };
        if (!physical)
                return -EPROTO;
        import.state = QUESTION_NONE;
        r = take_one(physical, ret_move);
        if (r == 0)
                r = ask_for_next(physical);
        if (r < 0)
                import.taking.at = NULL;
        if (r < 0 && !import.taking.is_question)
                (void)import_let_go(&undone);
        return r;
}

void import_forget(void)
{
        import.asking = (struct wait_lock){ NULL };
        pthread_mutex_init(&import.lock, NULL);
        import.socket = -1;
        import.state = QUESTION_NONE;
        import.must_tell = false;
        import.taking.at = NULL;
}
