// Parsing with bounds checks: Ethernet with its tags, IPv4, IPv6 with extension headers, ARP, and the
// first bytes of TCP, UDP, SCTP and ICMP. Nothing here drops; the callers decide.
#pragma once
#include "maps.h"

enum { ETH_IP4 = 0x0800, ETH_ARP = 0x0806, ETH_IP6 = 0x86dd, ETH_VLAN = 0x8100, ETH_SVLAN = 0x88a8 };
enum { IP_ICMP = 1, IP_TCP = 6, IP_UDP = 17, IP_ICMP6 = 58, IP_SCTP = 132 };
enum { NO_PORTS = 0x10000 };

struct ethernet { u8 destination[6]; u8 source[6]; u16 type; };
struct tag { u16 tci; u16 type; };

// Where a frame belongs by its port and outer tag.
struct place {
	u16 vlan;
	u16 vid;       // of the outer tag, whatever it means; 0 = none
	u16 tpid;
	u8 carried;    // the outer tag carries the VLAN
	u8 priority;   // the outer tag is of VLAN 0
};

struct packet {
	u32 source[4];       // as on the wire; IPv4 in [0]
	u32 destination[4];
	u32 source_port;     // host order; ICMP: type << 8 | code; NO_PORTS = not there
	u32 destination_port;
	u16 type;            // EtherType behind the tags
	u8 family;           // 4, 6, or 0: neither, or cut short
	u8 protocol;
	u8 tcp_flags;
	u8 bad;              // cut short or not well-formed
	u8 fragment;         // not the first
	u8 pad;
	u32 l3;              // offset of the network header
	u32 l4;
};

INLINE int is_tag(u16 type) { return type == ETH_VLAN || type == ETH_SVLAN; }

// The VLAN of a frame that came in by `port`, or why it has none.
INLINE enum reason locate(void *data, void *end, const struct port *port, struct place *place)
{
	struct ethernet *eth = data;
	struct tag *tag = data + sizeof(*eth);
	place->carried = place->priority = 0;
	place->vid = 0;
	if ((void *)(eth + 1) > end)
		return SHORT_FRAME;
	u16 type = swap16(eth->type), vid = 0;
	place->tpid = type;
	int tagged = is_tag(type);
	if (tagged) {
		if ((void *)(tag + 1) > end)
			return SHORT_FRAME;
		place->vid = vid = swap16(tag->tci) & 0xfff;
	}
	place->vlan = port->vlan;
	if (port->flags & ACCESS) {
		if (tagged && !(port->flags & TUNNEL)) {
			if (vid)
				return TAGGED_FRAME;
			place->priority = 1;
		}
		return NONE;
	}
	if (type == port->tpid) {
		if (vid) {
			place->vlan = vid;
			place->carried = 1;
		} else
			place->priority = 1;
	}
	u16 vlan = place->vlan;
	if (!vlan || (vlan != port->vlan && !(port->vlans[(vlan >> 6) & 63] >> (vlan & 63) & 1)))
		return VLAN_NOT_ALLOWED;
	return NONE;
}

// Reads the transport header at `packet->l4`.
INLINE void parse_transport(void *data, void *end, struct packet *packet)
{
	u32 at = packet->l4 & 0x3ff;
	u8 *l4 = data + at;
	packet->source_port = packet->destination_port = NO_PORTS;
	if (packet->fragment)
		return;
	switch (packet->protocol) {
	case IP_TCP:
		if (l4 + 14 > (u8 *)end) {
			packet->bad = 1;
			return;
		}
		packet->tcp_flags = l4[13];
		packet->source_port = l4[0] << 8 | l4[1];
		packet->destination_port = l4[2] << 8 | l4[3];
		return;
	case IP_UDP:
	case IP_SCTP:
		if (l4 + 8 > (u8 *)end) {
			packet->bad = 1;
			return;
		}
		packet->source_port = l4[0] << 8 | l4[1];
		packet->destination_port = l4[2] << 8 | l4[3];
		return;
	case IP_ICMP:
	case IP_ICMP6:
		if (l4 + 4 > (u8 *)end) {
			packet->bad = 1;
			return;
		}
		packet->source_port = l4[0] << 8 | l4[1];
		return;
	}
}

struct ip4 {
	u8 version_length, tos;
	u16 total, id, fragment;
	u8 ttl, protocol;
	u16 checksum;
	u32 source, destination;
};
struct ip6 { u32 flow; u16 length; u8 next, hops; u32 source[4], destination[4]; };

INLINE void parse_ip4(void *data, void *end, struct packet *packet)
{
	struct ip4 *ip = data + packet->l3;
	packet->bad = 1;
	if ((void *)(ip + 1) > end)
		return;
	u32 header = (ip->version_length & 15) * 4;
	u32 total = swap16(ip->total);
	if (ip->version_length >> 4 != 4 || header < 20 || total < header || data + packet->l3 + header > end)
		return;
	packet->family = 4;
	packet->bad = 0;
	packet->source[0] = ip->source;
	packet->destination[0] = ip->destination;
	packet->protocol = ip->protocol;
	packet->fragment = (swap16(ip->fragment) & 0x1fff) != 0;
	packet->l4 = packet->l3 + header;
	parse_transport(data, end, packet);
}

INLINE void parse_ip6(void *data, void *end, struct packet *packet)
{
	struct ip6 *ip = data + packet->l3;
	packet->bad = 1;
	if ((void *)(ip + 1) > end || (*(u8 *)ip >> 4) != 6)
		return;
	for (int i = 0; i < 4; i++) {
		packet->source[i] = ip->source[i];
		packet->destination[i] = ip->destination[i];
	}
	packet->family = 6;
	u32 at = packet->l3 + 40;
	u8 next = ip->next;
	// Hop-by-hop, routing, destination options, fragment, authentication: at most 6 of them.
	for (int i = 0; i < 6; i++) {
		if (next != 0 && next != 43 && next != 60 && next != 44 && next != 51)
			break;
		u8 *option = data + (at & 0x3ff);
		if (option + 8 > (u8 *)end || at > 0x300)
			return;
		u32 length = next == 44 ? 8 : next == 51 ? (option[1] + 2) * 4 : (option[1] + 1) * 8;
		if (next == 44 && ((option[2] << 8 | option[3]) & 0xfff8))
			packet->fragment = 1;
		next = option[0];
		at += length;
		if (packet->fragment)
			break;
	}
	if (at > 0x3e0 || data + (at & 0x3ff) > end)
		return;
	packet->bad = 0;
	packet->protocol = next;
	packet->l4 = at;
	parse_transport(data, end, packet);
}

// Parses what is behind at most two tags.
FUNCTION int parse(struct xdp_md *ctx, struct packet *packet)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethernet *eth = data;
	if (!packet)
		return 0;
	packet->bad = 1;
	if ((void *)(eth + 1) > end)
		return 0;
	u32 at = sizeof(*eth);
	u16 type = swap16(eth->type);
#pragma unroll
	for (int i = 0; i < 2; i++) {
		if (!is_tag(type))
			break;
		struct tag *tag = data + at;
		if ((void *)(tag + 1) > end)
			return 0;
		type = swap16(tag->type);
		at += sizeof(*tag);
	}
	packet->type = type;
	packet->l3 = at;
	packet->bad = 0;
	packet->source_port = packet->destination_port = NO_PORTS;
	if (type == ETH_IP4)
		parse_ip4(data, end, packet);
	else if (type == ETH_IP6)
		parse_ip6(data, end, packet);
	return 0;
}
