/* Prints every size and offset of region.h as this compiler and machine see them. */
#include <stdio.h>

#include "vnpu/region.h"

int main(void) {
#define VNPU_OFFSET(type, field, offset) printf("%s.%s %zu\n", #type, #field, offsetof(struct type, field));
#define VNPU_SIZE(type, size)            printf("%s %zu\n", #type, sizeof(struct type));
#include "vnpu/layout.h"
    return 0;
}
