/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu-simhost DIRECTORY SPECIFICATION - make a simulated host; for tests and for trying out. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sim/host.h"

int main(int argc, char **argv)
{
        int r;

        if (argc != 3) {
                (void)fprintf(stderr,
                              "usage: vgpu-simhost DIRECTORY SPECIFICATION\n"
                              "       e.g. vgpu-simhost /tmp/host 2xH200:2G; kinds: %s\n",
                              sim_host_kinds());
                return 2;
        }
        r = sim_host_create(argv[1], argv[2]);
        if (r == -EINVAL)
                (void)fprintf(
                        stderr,
                        "vgpu-simhost: \"%s\" is not a list of COUNTxKIND:MEMORY; kinds: %s\n",
                        argv[2], sim_host_kinds());
        else if (r < 0)
                (void)fprintf(stderr, "vgpu-simhost: cannot create a host in %s: %s\n", argv[1],
                              strerrordesc_np(-r));
        return r < 0 ? 1 : 0;
}
