// What the programs report of single packets: samples, drops and traces, through two rings.
#pragma once
#include "parse.h"

// In 64 bits, because the verifier follows packet pointers in whole registers only.
INLINE u32 frame_length(struct xdp_md *ctx)
{
	u64 data = ctx->data, end = ctx->data_end;
	asm volatile("" : "+r"(data), "+r"(end));
	u64 length = end - data;
	asm volatile("" : "+r"(length));
	return length;
}

struct decision {
	u16 vlan;
	u8 found;
	u8 reason;
	u32 out;
	u32 rule;
	u32 rule_out;
};

// `what`: WHAT(kind, stage, verdict).
#define WHAT(kind, stage, verdict) ((kind) | (stage) << 8 | (verdict) << 16)
// 1: the ring has no room.
FUNCTION int report(struct xdp_md *ctx, struct counters *counters, u32 what, u32 in, const struct decision *decision)
{
	if (!ctx || !counters || !decision)
		return 0;
	struct event *event;
	if ((what & 0xff) == EVENT_TRACE)
		event = ringbuf_reserve(&traces, sizeof(*event), 0);
	else
		event = ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event) {
		if ((what & 0xff) == EVENT_SAMPLE)
			counters->events_lost++;
		return 1;
	}
	u32 length = frame_length(ctx);
	u32 captured = length < HEADER ? length : HEADER;
	// 1 to HEADER, in a form that the verifier of Linux 6.1 follows.
	asm volatile("" : "+r"(captured));
	captured = ((captured - 1) & (HEADER - 1)) + 1;
	event->time = ktime_get_ns();
	event->pool = counters->sample_pool;
	event->kind = what & 0xff;
	event->in = in;
	event->out = decision->out;
	event->length = length;
	event->rule = decision->rule;
	event->rule_out = decision->rule_out;
	event->pad = 0;
	event->vlan = decision->vlan;
	event->reason = decision->reason;
	event->verdict = what >> 16;
	event->stage = what >> 8;
	event->found = decision->found;
	event->cpu = smp_processor_id();
	if (xdp_load_bytes(ctx, 0, event->header, captured))
		captured = 0;
	event->captured = captured;
	ringbuf_submit(event, 0);
	return 0;
}

// Counts a drop, and reports it as long as the port's budget of this window lasts.
INLINE void report_drop(struct xdp_md *ctx, struct counters *counters, u32 stage, u32 in, struct control *control,
			const struct decision *decision)
{
	counters->drops[decision->reason & (REASONS - 1)]++;
	if (LIKELY(!control->drop_events))
		return;
	u64 window = ktime_get_coarse_ns() >> DROP_WINDOW;
	if (window != counters->drop_window) {
		counters->drop_window = window;
		counters->drop_events = 0;
	}
	if (counters->drop_events >= control->drop_events) {
		counters->drops_unreported++;
		return;
	}
	counters->drop_events++;
	if (report(ctx, counters, WHAT(EVENT_DROP, stage, XDP_DROP), in, decision))
		counters->drops_unreported++;
}

INLINE int is_traced(struct control *control, u32 slot)
{
	if (LIKELY(control->trace <= 0))
		return 0;
	if (control->trace_slot != ~0U && control->trace_slot != slot)
		return 0;
	return (s64)__sync_fetch_and_add(&control->trace, -1) > 0;
}

// Whether this packet is sampled. The gap to the next one is drawn from quantiles of the geometric
// distribution, which the daemon fills in.
INLINE int is_sampled(struct counters *counters)
{
	counters->sample_pool++;
	if (LIKELY(counters->sample_skip > 1)) {
		counters->sample_skip--;
		return 0;
	}
	int first = counters->sample_skip == 0;
	u32 at = get_prandom_u32() & (GAPS - 1);
	u32 *gap = map_lookup(&gaps, &at);
	counters->sample_skip = gap && *gap ? *gap : 1;
	if (first && counters->sample_skip > 1) {
		// Nothing was drawn yet for this CPU: this packet is the first of the gap.
		counters->sample_skip--;
		return 0;
	}
	counters->sampled++;
	return 1;
}
