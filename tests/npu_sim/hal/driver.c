#include "driver.h"

#include "../card/file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static uint32_t read_depth(void) {
    const char *text = getenv("NPU_SIM_DEPTH");
    unsigned long depth = text ? strtoul(text, NULL, 10) : 0;
    return depth > 0 && depth < NPU_SIM_QUEUE ? (uint32_t)depth : NPU_SIM_QUEUE;
}

static uint64_t grow_addresses(struct arena *arena, uint64_t bytes) {
    (void)arena;
    /* Twice as much, so that an aligned part can be found in it; nothing is used up but addresses. */
    char *at = mmap(NULL, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return 0;
    char *aligned = (char *)ROUND_UP((uintptr_t)at, bytes);
    if (aligned > at)
        munmap(at, (size_t)(aligned - at));
    if (aligned < at + bytes)
        munmap(aligned + bytes, (size_t)(at + bytes - aligned));
    madvise(aligned, bytes, MADV_DONTDUMP);
    return (uint64_t)(uintptr_t)aligned;
}

static struct sim_driver *make(struct sim_self *self) {
    struct sim_driver *driver = calloc(1, sizeof *driver);
    if (!driver)
        return NULL;
    pthread_mutex_init(&driver->lock, NULL);
    driver->addresses.grow = grow_addresses;
    driver->physical_fd = -1;
    driver->depth = read_depth();
    driver->visible_count = sim_visible(self->state, driver->visible);
    return driver;
}

struct sim_driver *driver(struct sim_self **self) {
    *self = sim_self();
    if (!*self)
        return NULL;
    struct sim_driver *seen = atomic_load_explicit(&(*self)->driver, memory_order_acquire);
    if (seen)
        return seen;
    struct sim_driver *made = make(*self);
    if (atomic_compare_exchange_strong(&(*self)->driver, &seen, made))
        return made;
    free(made);
    return seen;
}

bool driver_sees(const struct sim_driver *driver, uint32_t card) {
    for (uint32_t i = 0; i < driver->visible_count; i++)
        if (driver->visible[i] == card)
            return true;
    return false;
}

HAL_API int drvGetDevNum(uint32_t *count) {
    HAL_ENTER(drvGetDevNum, d, self);
    if (!count)
        return DRV_INVALID_VALUE;
    *count = d->visible_count;
    return 0;
}

HAL_API int drvGetDevIDs(uint32_t *devices, uint32_t length) {
    HAL_ENTER(drvGetDevIDs, d, self);
    if (!devices || length < d->visible_count)
        return DRV_INVALID_VALUE;
    memcpy(devices, d->visible, d->visible_count * sizeof *devices);
    return 0;
}

HAL_API int drvDeviceGetPhyIdByIndex(uint32_t index, uint32_t *id) {
    HAL_ENTER(drvDeviceGetPhyIdByIndex, d, self);
    if (!id || index >= d->visible_count)
        return DRV_INVALID_DEVICE;
    *id = d->visible[index];
    return 0;
}

HAL_API int halGetAPIVersion(int *version) {
    SIM_ENTER(halGetAPIVersion);
    if (!version)
        return DRV_INVALID_VALUE;
    *version = 0x073000;
    return 0;
}

/* Answers any question about a card that is there with one number: nobody looks at which. */
HAL_API int halGetDeviceInfo(uint32_t device, int32_t module, int32_t info, int64_t *value) {
    SIM_ENTER(halGetDeviceInfo);
    (void)module;
    (void)info;
    struct sim_self *self;
    struct sim_driver *d = driver(&self);
    if (!d || !driver_sees(d, device))
        return DRV_INVALID_DEVICE;
    if (!value)
        return DRV_INVALID_VALUE;
    *value = 0;
    return 0;
}

uint64_t npu_sim_incarnation(void) {
    struct sim_self *self = sim_self_if_joined();
    return self ? (uint64_t)self->generation << 16 | self->slot : 0;
}

int npu_sim_open(void) {
    struct sim_self *self;
    return driver(&self) ? 0 : DRV_NO_DEVICE;
}

int npu_sim_machine(struct npu_sim_machine *machine) {
    struct sim_self *self;
    if (!driver(&self))
        return DRV_NO_DEVICE;
    const struct sim_settings *settings = &self->state->settings;
    *machine = (struct npu_sim_machine){.cards = (uint32_t)settings->cards,
                                        .kernel_ns = settings->kernel_ns,
                                        .context_bytes = settings->context_bytes,
                                        .stream_bytes = settings->stream_bytes};
    memcpy(machine->chip, settings->chip, sizeof machine->chip);
    return 0;
}

void npu_sim_touched(void) {
    struct sim_self *self;
    struct sim_driver *d = driver(&self);
    if (d)
        atomic_store_explicit(&d->touched, true, memory_order_relaxed);
}
