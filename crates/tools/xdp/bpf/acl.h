// Ordered rules by aggregated bit vectors.
//
// Each dimension (source, destination, source port, destination port, protocol) has a sorted list of
// intervals, and each interval a row: one bit a rule that the interval matches. The AND of the five rows
// has the matching rules, and the lowest bit is the first of them. A row begins with a summary, one bit
// a word that is not 0, so that 10,000 rules (157 words) cost 3 words a dimension and then the words in
// which all five rows have bits. The cost of a lookup grows with the logarithm of the number of
// intervals and with 1/4096 of the number of rules.
//
// The daemon compiles the rows (`src/acl/compile.rs`); every ACL ends with a rule that matches all packets.
#pragma once
#include "parse.h"

INLINE u64 *word(u32 index) { return map_lookup(&acl_words, &index); }

INLINE u32 lowest_bit(u64 x)
{
	u32 n = 0;
	if (!(x & 0xffffffff)) { n += 32; x >>= 32; }
	if (!(x & 0xffff)) { n += 16; x >>= 16; }
	if (!(x & 0xff)) { n += 8; x >>= 8; }
	if (!(x & 0xf)) { n += 4; x >>= 4; }
	if (!(x & 3)) { n += 2; x >>= 2; }
	return n + !(x & 1);
}

// The row of the interval that has `key`. Entries: start << 32 | row. The first starts at 0.
FUNCTION u32 find(u32 base, u32 count, u32 key)
{
	u32 low = 0;
	for (int i = 0; i < 17; i++) {
		if (count <= 1)
			break;
		u32 half = count >> 1;
		u64 *entry = word(base + low + half);
		if (!entry)
			break;
		if ((*entry >> 32) <= key)
			low += half;
		count -= half;
	}
	u64 *entry = word(base + low);
	return entry ? (u32)*entry : 0;
}

// The same for 128 bits. Entries of three words: high half, low half, row.
FUNCTION u32 find128(u32 base, u32 count, u64 high, u64 low_half)
{
	u32 low = 0;
	for (int i = 0; i < 17; i++) {
		if (count <= 1)
			break;
		u32 half = count >> 1;
		u64 *one = word(base + (low + half) * 3);
		u64 *two = word(base + (low + half) * 3 + 1);
		if (!one || !two)
			break;
		if (*one < high || (*one == high && *two <= low_half))
			low += half;
		count -= half;
	}
	u64 *entry = word(base + low * 3 + 2);
	return entry ? (u32)*entry : 0;
}

struct scan {
	u32 row[5];
	u32 words, summaries, rules;
	u32 next_summary;
	u32 base;          // first word of the current summary
	u32 current;       // index of the current word
	u32 found;         // rule + 1
	u64 pending;       // words of the summary that are still to be read
	u64 candidates;    // rules of the current word that are still to be tried
	u64 rule;
	u8 tcp_flags;
	u8 is_tcp;
};

INLINE u64 and_rows(const struct scan *scan, u32 index)
{
	u64 all = ~0ULL;
#pragma unroll
	for (int i = 0; i < 5; i++) {
		u64 *part = word(scan->row[i] + index);
		all &= part ? *part : 0;
	}
	return all;
}

// Whether the lowest candidate matches: only TCP flags are still to be compared.
INLINE int try_rule(struct scan *scan)
{
	u32 rule = scan->current * 64 + lowest_bit(scan->candidates);
	u64 *definition = word(scan->rules + rule);
	if (!definition)
		return 1;
	u8 mask = *definition >> 8, value = *definition >> 16;
	if (mask && (!scan->is_tcp || (scan->tcp_flags & mask) != value)) {
		scan->candidates &= scan->candidates - 1;
		return 0;
	}
	scan->found = rule + 1;
	scan->rule = *definition;
	return 1;
}

INLINE void next_word(struct scan *scan)
{
	u32 bit = lowest_bit(scan->pending);
	scan->pending &= scan->pending - 1;
	scan->current = scan->base + bit;
	scan->candidates = and_rows(scan, scan->summaries + scan->current);
}

INLINE int next_summary(struct scan *scan)
{
	if (scan->next_summary >= scan->summaries)
		return 1;
	scan->base = scan->next_summary * 64;
	scan->pending = and_rows(scan, scan->next_summary);
	scan->next_summary++;
	return 0;
}

// One step of the search: tries a rule, or else reads a word, or else a summary.
static long step(u32 number, struct scan *scan)
{
	if (scan->candidates)
		return try_rule(scan);
	if (scan->pending) {
		next_word(scan);
		return 0;
	}
	return next_summary(scan);
}

INLINE void connection_key(const struct packet *packet, u16 vlan, struct connection_key *key)
{
	// Both directions have one key: the lower address and port first.
	int swapped = 0;
	for (int i = 0; i < 4; i++) {
		if (packet->source[i] != packet->destination[i]) {
			swapped = packet->source[i] > packet->destination[i];
			goto ordered;
		}
	}
	swapped = packet->source_port > packet->destination_port;
ordered:
	for (int i = 0; i < 4; i++) {
		key->one[i] = swapped ? packet->destination[i] : packet->source[i];
		key->other[i] = swapped ? packet->source[i] : packet->destination[i];
	}
	u16 from = packet->source_port, to = packet->destination_port;
	if (packet->protocol == IP_ICMP || packet->protocol == IP_ICMP6)
		from = to = 0;
	key->one_port = swapped ? to : from;
	key->other_port = swapped ? from : to;
	key->protocol = packet->protocol;
	key->family = packet->family;
	key->vlan = vlan;
}

// Whether the packet belongs to a connection that a stateful rule permitted.
FUNCTION int is_known_connection(const struct packet *packet, u32 vlan)
{
	struct connection_key key = {};
	if (!packet || packet->fragment)
		return 0;
	connection_key(packet, vlan, &key);
	struct connection *known = map_lookup(&connections, &key);
	struct control *limits = control_of();
	if (!known || !limits)
		return 0;
	u64 now = ktime_get_coarse_ns();
	u64 idle = now - known->seen;
	u64 limit = (packet->protocol == IP_TCP ? limits->conn_tcp : limits->conn_other) * 1000000000ULL;
	if (idle > limit)
		return 0;
	if (idle > 1000000000ULL)
		known->seen = now;
	return 1;
}

// A stateful rule permitted the packet: the connection's other packets are permitted, too.
FUNCTION int remember_connection(const struct packet *packet, u32 vlan)
{
	struct connection_key key = {};
	if (!packet || packet->fragment)
		return 0;
	struct connection value = { .seen = ktime_get_coarse_ns() };
	connection_key(packet, vlan, &key);
	return map_update(&connections, &key, &value, ANY);
}

// Whether the ACL permits the packet; `*rule` is the number of the rule + 1, 0 = known connection.
FUNCTION int acl_permits(u32 id, struct packet *packet, u32 length, u32 vlan, u32 *rule)
{
	if (!packet || !rule)
		return 0;
	struct acl *acl = map_lookup(&acls, &id);
	if (!acl)
		return 0;
	if (acl->stateful && is_known_connection(packet, vlan))
		return 1;
	struct acl_side *side = packet->family == 6 ? &acl->side[1] : &acl->side[0];
	struct scan scan = {};
	scan.words = side->words;
	scan.summaries = side->summaries;
	scan.rules = side->rules;
	scan.tcp_flags = packet->tcp_flags;
	scan.is_tcp = packet->protocol == IP_TCP && !packet->fragment;
	if (packet->family == 6) {
		u64 high = swap64(packet->source[0] | (u64)packet->source[1] << 32);
		u64 low = swap64(packet->source[2] | (u64)packet->source[3] << 32);
		scan.row[0] = find128(side->source, side->sources, high, low);
		high = swap64(packet->destination[0] | (u64)packet->destination[1] << 32);
		low = swap64(packet->destination[2] | (u64)packet->destination[3] << 32);
		scan.row[1] = find128(side->destination, side->destinations, high, low);
	} else {
		scan.row[0] = find(side->source, side->sources, swap32(packet->source[0]));
		scan.row[1] = find(side->destination, side->destinations, swap32(packet->destination[0]));
	}
	scan.row[2] = find(side->source_port, side->source_ports, packet->source_port);
	scan.row[3] = find(side->destination_port, side->destination_ports, packet->destination_port);
	u64 *row = word(side->protocol + packet->protocol);
	scan.row[4] = row ? (u32)*row : 0;
	// The first summary, word and rule are enough for most packets: without a summary where one word has all rules.
	if (scan.words == 1) {
		scan.candidates = and_rows(&scan, scan.summaries);
		scan.next_summary = scan.summaries;
	} else {
		next_summary(&scan);
		if (scan.pending)
			next_word(&scan);
	}
	// Each summary, word and rule is a step; rules with TCP flags may need several in a word.
	if (!scan.candidates || !try_rule(&scan))
		loop(16384, step, &scan, 0);
	*rule = scan.found;
	if (!scan.found)
		return 0;
	u32 index = acl->counters + scan.found - 1;
	struct rule_hits *hits = map_lookup(&acl_hits, &index);
	if (hits) {
		hits->packets++;
		hits->bytes += length;
	}
	if (scan.rule & RULE_STATEFUL)
		remember_connection(packet, vlan);
	return scan.rule & RULE_PERMIT;
}
