// What happens to a frame on its way out of a port: is it for that port, ACL, policer, MTU, tag. Frames with one
// destination do this in the program of the port of arrival; copies of flooded frames in the egress program.
#pragma once
#include "acl.h"
#include "report.h"

// The tag that a frame leaves with.
struct tagging {
	u16 vlan;      // 0 = no tag of the VLAN
	u16 tpid;
	u16 priority;  // of a tag that is pushed
	u8 carried;    // as in `struct place`
	u8 had_priority;
	u8 is_access;
	u8 keeps_priority;
};

INLINE struct tagging tagging_of(const struct port *from, const struct port *to, const struct place *place)
{
	struct tagging tagging = {
		.tpid = to->tpid,
		.priority = from->priority,
		.carried = place->carried,
		.had_priority = place->priority,
		.is_access = (to->flags & ACCESS) != 0,
		.keeps_priority = (to->flags & PRIORITY_TAGS) != 0,
	};
	if (!(to->flags & ACCESS) && place->vlan != to->vlan)
		tagging.vlan = place->vlan;
	return tagging;
}

// Bytes by which the frame becomes longer.
INLINE int growth(const struct tagging *tagging)
{
	if (tagging->carried || tagging->had_priority) {
		if (tagging->vlan || tagging->keeps_priority || (!tagging->carried && tagging->is_access))
			return 0;
		return -4;
	}
	return tagging->vlan ? 4 : 0;
}

// Makes the outer tag what it must be. -1: the driver has no room for a tag.
INLINE int retag(struct xdp_md *ctx, const struct tagging *tagging)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethernet *eth = data;
	struct tag *tag = data + sizeof(*eth);
	int grows = growth(tagging);
	if (!grows) {
		if (!(tagging->carried || tagging->had_priority))
			return 0;
		if ((void *)(tag + 1) > end)
			return -1;
		if (tagging->vlan) {
			eth->type = swap16(tagging->tpid);
			tag->tci = swap16((swap16(tag->tci) & 0xf000) | tagging->vlan);
		} else if (tagging->keeps_priority && (tagging->carried || !tagging->is_access)) {
			eth->type = swap16(ETH_VLAN);
			tag->tci &= swap16(0xf000);
		}
		return 0;
	}
	if (grows < 0) {
		if ((void *)(tag + 1) > end)
			return -1;
		// The addresses move over the tag, and the frame begins four bytes later.
		u32 one = *(u32 *)data, two = *(u32 *)(data + 4), three = *(u32 *)(data + 8);
		*(u32 *)(data + 4) = one;
		*(u32 *)(data + 8) = two;
		*(u32 *)(data + 12) = three;
		return xdp_adjust_head(ctx, 4) ? -1 : 0;
	}
	if (xdp_adjust_head(ctx, -4))
		return -1;
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	if (data + 18 > end)
		return -1;
	u32 one = *(u32 *)(data + 4), two = *(u32 *)(data + 8), three = *(u32 *)(data + 12);
	*(u32 *)data = one;
	*(u32 *)(data + 4) = two;
	*(u32 *)(data + 8) = three;
	*(u16 *)(data + 12) = swap16(tagging->tpid);
	*(u16 *)(data + 14) = swap16(tagging->vlan | tagging->priority << 13);
	return 0;
}

// Whether a switched frame is for this port. Copies of flooded frames reach ports of other VLANs, and other members
// of a bond.
INLINE int is_for(const struct port *from, const struct port *to, u16 vlan, int is_same)
{
	int member = vlan == to->vlan;
	if (!(to->flags & ACCESS))
		member |= to->vlans[(vlan >> 6) & 63] >> (vlan & 63) & 1;
	return member && (from->logical != to->logical || is_same);
}

// Why a frame of `length` bytes may not leave by `to`, with the tag that it will have. `packet` is parsed here unless
// `parsed`.
INLINE enum reason depart(struct xdp_md *ctx, const struct port *to, u32 length, u16 vlan, const struct tagging *tagging,
			  struct packet *packet, int parsed, struct decision *decision)
{
	if (to->acl_out) {
		if (!parsed)
			parse(ctx, packet);
		if (packet->type == ETH_IP4 || packet->type == ETH_IP6) {
			if (packet->bad)
				return MALFORMED;
			if (!acl_permits(to->acl_out, packet, length, vlan, &decision->rule_out))
				return ACL_OUT;
		}
	}
	if (to->flags & POLICE_OUT && !conforms(to->slot, POLICER_OUT, length))
		return POLICED_OUT;
	if (length + growth(tagging) > to->mtu + 14 + (to->flags & ACCESS ? 0 : 8))
		return MTU;
	return NONE;
}
