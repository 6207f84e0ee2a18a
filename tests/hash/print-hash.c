/* SPDX-License-Identifier: Apache-2.0 */
/* print-hash KEY BLOCKS: makes a key, writes it to the file KEY, and prints the hashes of the blocks in BLOCKS. */
#include <stdio.h>
#include <stdlib.h>

#include "hash/hash.h"

int main(int argc, char **argv)
{
        static _Alignas(16) char block[HASH_BLOCK];
        struct hash_key key;
        FILE *blocks, *file;

        if (argc != 3 || hash_key_make(&key) < 0)
                return EXIT_FAILURE;
        file = fopen(argv[1], "we");
        if (!file || fwrite(&key, sizeof(key), 1, file) != 1 || fclose(file) != 0)
                return EXIT_FAILURE;
        blocks = fopen(argv[2], "re");
        if (!blocks)
                return EXIT_FAILURE;
        while (fread(block, sizeof(block), 1, blocks) == 1) {
                const struct hash_value value = hash_block(&key, block);

                if (fwrite(&value, sizeof(value), 1, stdout) != 1)
                        return EXIT_FAILURE;
        }
        return EXIT_SUCCESS;
}
