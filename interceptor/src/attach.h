/* Finding the region of this container, and judging whether it may be used. */
#ifndef VNPU_ATTACH_H
#define VNPU_ATTACH_H

#include "prim.h"
#include "vnpu/region.h"

enum { VNPU_PATH_LIMIT = 256 };

struct vnpu_attached {
    struct vnpu_mapping mapping;
    struct vnpu_region *region;
};

/* The size of a region with so many cards. */
size_t vnpu_region_size(uint32_t card_count);

/* Where the region of this process is: VNPU_REGION, else named by the mount namespace. False when neither tells. */
bool vnpu_region_path(char path[VNPU_PATH_LIMIT]);

/* Maps the region at `path` when it is whole and of this layout. NULL, or one line of reason; never a signal, and
 * nothing is written to the file. */
const char *vnpu_region_attach(const char *path, struct vnpu_attached *attached);

/* The same for the registry of card `id`. */
const char *vnpu_registry_attach(const char *path, uint32_t id, struct vnpu_mapping *mapping);

/* Whether a limiter lives that keeps this region, and the region is still the one at `path`. */
bool vnpu_limiter_lives(const char *path, const struct vnpu_attached *attached);

#endif
