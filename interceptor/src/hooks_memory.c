/* Allocations and frees of AscendCL and the runtime.
 *
 * They all end in the driver, whose hooks count to the page (hooks_driver.c); then nothing is counted here. Only where
 * the driver's calls do not reach us (a runtime that was loaded so that it binds to its own) these stand in. */
#include <stdint.h>

#include "account.h"
#include "call.h"
#include "devices.h"

enum { VNPU_RT_HOST = 0x81, VNPU_RT_HOST_SVM = 0x90 };

/* aclrtPhysicalMemProp and rtDrvMemProp_t, as far as they say where the memory is. */
struct acl_physical {
    int handle_type;
    int allocation_type;
    int attribute;
    uint32_t id;
    int side;
    uint64_t reserve;
};

struct drv_physical {
    uint32_t side, device, module, page_type, memory_type;
    uint64_t reserve;
};

/* Nothing when the driver's hooks count. */
static bool take(struct vnpu_call *call, struct vnpu_taken *taken, bool counts, uint64_t bytes) {
    *taken = (struct vnpu_taken){.card = VNPU_NO_CARD};
    if (!counts || !call->outermost || vnpu_load(&call->self->driver_seen))
        return true;
    taken->card = vnpu_card_of_thread(call->self);
    taken->pages = vnpu_pages(bytes, VNPU_PAGE);
    if (taken->card == VNPU_NO_CARD || taken->pages == 0)
        taken->card = VNPU_NO_CARD; /* no device, no bytes or too many: the real call finds the words for it */
    if (taken->card != VNPU_NO_CARD && !vnpu_take(call->self, taken->card, taken->pages, false))
        return false;
    vnpu_taken_above = taken;
    return true;
}

static void settle(struct vnpu_call *call, const struct vnpu_taken *taken, const void *pointer) {
    if (call->outermost)
        vnpu_taken_above = NULL;
    if (taken->card == VNPU_NO_CARD)
        return;
    if (call->result != 0 || !vnpu_keep(call->self, VNPU_POINTER, (uintptr_t)pointer, taken->card, taken->pages, false))
        vnpu_give(call->self, taken->card, taken->pages, false);
}

#define VNPU_ALLOCATE(library, symbol, parameters, arguments, pointer, bytes, counts)                                  \
    VNPU_EXPORT int symbol parameters;                                                                                 \
    int symbol parameters {                                                                                            \
        struct vnpu_call call;                                                                                         \
        struct vnpu_taken taken;                                                                                       \
                                                                                                                       \
        if (!vnpu_begin(&call, VNPU_HOOK_##symbol, library))                                                           \
            return call.result;                                                                                        \
        call.result = vnpu_out_of_memory(library);                                                                     \
        if (take(&call, &taken, counts, bytes)) {                                                                      \
            call.result = ((int(*) parameters)call.real)arguments;                                                     \
            settle(&call, &taken, call.result == 0 ? (pointer) : NULL);                                                \
        }                                                                                                              \
        return vnpu_end(&call);                                                                                        \
    }

/* The record goes before the call, since the device may give the same pointer to another thread at once; the books
 * follow after it, since until then the device still holds the memory. */
#define VNPU_FREE(library, symbol, parameters, arguments, pointer)                                                     \
    VNPU_EXPORT int symbol parameters;                                                                                 \
    int symbol parameters {                                                                                            \
        struct vnpu_call call;                                                                                         \
        struct vnpu_record record;                                                                                     \
                                                                                                                       \
        if (!vnpu_begin(&call, VNPU_HOOK_##symbol, library))                                                           \
            return call.result;                                                                                        \
        bool ours = call.outermost && !vnpu_load(&call.self->driver_seen) &&                                           \
                    vnpu_untrack(&call.self->tracker, VNPU_POINTER, (uintptr_t)(pointer), &record);                    \
        call.result = ((int(*) parameters)call.real)arguments;                                                         \
        if (ours && call.result != 0)                                                                                  \
            vnpu_track(&call.self->tracker, &record);                                                                  \
        else if (ours)                                                                                                 \
            vnpu_give(call.self, record.card, record.pages, false);                                                    \
        return vnpu_end(&call);                                                                                        \
    }

#define VNPU_LAUNCH(library, name, ...)
#define VNPU_OWN(library, name)
#include "hooks.def"
