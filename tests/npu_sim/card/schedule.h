/* What the cards do, and when: the only place that knows how work is ordered. */
#ifndef NPU_SIM_SCHEDULE_H
#define NPU_SIM_SCHEDULE_H

#include "process.h"

/* Copies what the cards had done when somebody last published it. */
uint64_t sim_schedule_read(const struct sim_state *state, struct sim_schedule *schedule);

/* Copies what the cards have done by `now`, without telling anybody. */
void sim_schedule_look(const struct sim_state *state, struct sim_schedule *schedule, uint64_t now);

/* Brings `schedule` (a copy) up to `now`: drops what belongs to the dead, completes and starts. True if anything
 * changed. It stops early when there is no room for further effects. */
bool sim_schedule_advance(const struct sim_state *state, struct sim_schedule *schedule, uint64_t now);

/* When entry `seq` of `stream` will be done if nothing else is handed in and nobody dies; UINT64_MAX if never. Spoils
 * the copy. */
uint64_t sim_schedule_foresee(const struct sim_state *state, struct sim_schedule *schedule, uint32_t stream,
                              uint64_t seq);

/* Makes a stream unused. */
void sim_schedule_forget(struct sim_stream *stream);

/* Brings the machine up to now. */
void sim_schedule_update(struct sim_self *self);

/* The same; returns the number of the entry of `stream` that is to be done next. If that is not beyond `seq`, and
 * `when` is given, it says when entry `seq` will be done. */
uint64_t sim_schedule_next(struct sim_self *self, uint32_t stream, uint64_t seq, uint64_t *when);

/* Index of a tag, made on first use. False when there are too many. */
bool sim_schedule_tag(struct sim_self *self, const char *name, uint32_t *tag);

/* Opens a stream on a card: its index, and the number of its first entry. False when there are too many. */
bool sim_schedule_open(struct sim_self *self, uint32_t card, uint32_t *stream, uint64_t *first);

/* Gives a stream back; what it has not begun is dropped. */
void sim_schedule_close(struct sim_self *self, uint32_t stream);

#endif
