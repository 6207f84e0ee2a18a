/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/child.h"

#include <errno.h>
#include <pthread.h>

#include "gate/agent.h"
#include "gate/caller.h"
#include "gate/capture.h"
#include "gate/channel.h"
#include "gate/context.h"
#include "gate/finish.h"
#include "gate/graph.h"
#include "gate/holding.h"
#include "gate/hook.h"
#include "gate/idle.h"
#include "gate/import.h"
#include "gate/join.h"
#include "gate/log.h"
#include "gate/memory.h"
#include "gate/move.h"
#include "gate/quota.h"
#include "gate/ticket.h"
#include "gate/turns.h"
#include "gate/vmm.h"

static void start_clean(void)
{
        int saved_errno = errno;

        log_forget();
        agent_forget();
        move_forget();
        turns_forget();
        idle_forget();
        channel_forget();
        join_forget();
        quota_forget();
        memory_forget();
        holding_forget();
        graph_forget();
        hook_forget_opened();
        vmm_forget();
        import_forget();
        ticket_forget();
        context_forget();
        finish_forget();
        capture_forget();
        caller_forget_others();
        errno = saved_errno;
}

void child_watch(void)
{
        (void)pthread_atfork(NULL, NULL, start_clean);
}
