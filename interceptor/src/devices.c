#include "devices.h"

#include <stdlib.h>

#include "real.h"
#include "vnpu/names.h"

int vnpu_card_of_hal(const struct vnpu_process *self, uint32_t device) {
    const struct vnpu_region *region = self->ledger.region;

    for (uint32_t index = 0; index < region->card_count; index++)
        if (vnpu_load_relaxed(&region->cards[index].id) == device)
            return (int)index;
    return VNPU_NO_CARD;
}

static int card_at(const struct vnpu_process *self, uint64_t position) {
    return position < self->ledger.region->card_count ? (int)position : VNPU_NO_CARD;
}

/* As the runtime reads it: up to the first entry that makes no sense. */
int vnpu_card_of_user(const struct vnpu_process *self, int32_t device) {
    const char *list = getenv(VNPU_ENV_RT_VISIBLE_DEVICES);

    if (device < 0)
        return VNPU_NO_CARD;
    if (list == NULL || *list == '\0')
        return card_at(self, (uint64_t)device);
    for (int32_t index = 0; *list >= '0' && *list <= '9'; index++) {
        char *end;
        unsigned long position = strtoul(list, &end, 10);

        if (index == device)
            return card_at(self, position);
        if (*end != ',')
            break;
        list = end + 1;
    }
    return VNPU_NO_CARD;
}

int vnpu_card_of_logic(const struct vnpu_process *self, uint32_t device) {
    static int (*physical)(uint32_t index, uint32_t *id);
    uint32_t id;

    if (physical == NULL)
        physical = (int (*)(uint32_t, uint32_t *))vnpu_foreign(HAL, "drvDeviceGetPhyIdByIndex");
    if (physical != NULL && physical(device, &id) == 0)
        return vnpu_card_of_hal(self, id);
    return card_at(self, device);
}

int vnpu_card_of_thread(const struct vnpu_process *self) {
    static int (*current)(int32_t *device);
    int32_t device;

    if (current == NULL)
        current = (int (*)(int32_t *))vnpu_foreign(RT, "rtGetDevice");
    if (current == NULL)
        current = (int (*)(int32_t *))vnpu_foreign(ACL, "aclrtGetDevice");
    return current != NULL && current(&device) == 0 ? vnpu_card_of_user(self, device) : VNPU_NO_CARD;
}
