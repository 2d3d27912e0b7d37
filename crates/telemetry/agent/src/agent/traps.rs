//! What Linux calls a discard, so that hsflowd's module `dropmon` knows why it was.
//!
//! The module finds the standard's number of an alert by the name of its trap, else by the name of its group, and by
//! the kernel's reason before both; an alert whose names it does not know it passes over in silence. The names of traps and
//! groups are those of Linux's devlink (Documentation/networking/devlink/devlink-trap.rst), the reasons those of
//! `include/net/dropreason-core.h`. Where Linux has no name for it, trap and group have the router's own, in the form in
//! which VPP's plugin has them: with `vpp_` in front the module tells them as unknown, with both names.

use std::borrow::Cow;

/// The names of a discard in an alert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Names<'a> {
    pub(super) group: Cow<'a, str>,
    pub(super) trap: Cow<'a, str>,
    /// The kernel's reason.
    pub(super) reason: Option<&'static str>,
}

/// What Linux has for a number of sFlow's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Trap(&'static str),
    Group(&'static str),
    Reason(&'static str),
    Nothing,
}

/// Where Linux has no such number, the nearest: what does not fit the next link's MTU is too big for it, a source that
/// fails its reverse path has failed it as a unicast.
fn known(code: u16) -> Known {
    use Known::{Group, Nothing, Reason, Trap};
    match code {
        0 => Reason("IP_INNOROUTES"),
        1 => Reason("IP_INADDRERRORS"),
        2 => Reason("IP_NOPROTO"),
        3 => Reason("NO_SOCKET"),
        4 | 262 => Trap("mtu_value_is_too_small"),
        9 => Trap("reject_route"),
        257 => Trap("ttl_value_is_too_small"),
        258 => Group("acl_drops"),
        259 => Trap("tail_drop"),
        260 => Trap("early_drop"),
        261 => Reason("QDISC_DROP"),
        263 => Trap("source_mac_is_multicast"),
        264 => Trap("vlan_tag_mismatch"),
        265 => Trap("ingress_vlan_filter"),
        267 => Trap("port_list_is_empty"),
        268 => Trap("port_loopback_filter"),
        269 => Trap("blackhole_route"),
        270 => Trap("non_ip"),
        271 => Trap("uc_dip_over_mc_dmac"),
        272 => Trap("dip_is_loopback_address"),
        273 => Trap("sip_is_mc"),
        274 => Trap("sip_is_loopback_address"),
        275 => Trap("ip_header_corrupted"),
        276 => Trap("ipv4_sip_is_limited_bc"),
        279 => Reason("NEIGH_QUEUEFULL"),
        281 => Trap("non_routable_packet"),
        282 => Trap("decap_error"),
        284 | 303 => Group("l2_drops"),
        285 => Group("l3_drops"),
        288 => Group("tunnel_drops"),
        290 => Trap("sip_is_unspecified"),
        294 => Trap("dmac_is_reserved"),
        295 => Trap("sip_is_class_e"),
        299 => Trap("dip_is_link_local"),
        302 => Reason("IP_RPFILTER"),
        304 => Trap("locked_port"),
        305 => Trap("dmac_filter"),
        309 => Trap("vlan_parsing"),
        311 => Trap("mpls_parsing"),
        312 => Trap("arp_parsing"),
        313 => Trap("ip_1_parsing"),
        324 => Reason("PKT_TOO_SMALL"),
        326 => Reason("IPV6DISABLED"),
        _ => Nothing,
    }
}

/// The names of what a node dropped for a reason of its own, which has this number.
pub(super) fn names<'a>(code: u16, node: &str, reason: &str) -> Names<'a> {
    let own = |name: &str| Cow::Owned(format!("vpp_{name}"));
    let (group, trap, kernels) = match known(code) {
        Known::Trap(name) => (own(node), Cow::Borrowed(name), None),
        Known::Group(name) => (Cow::Borrowed(name), own(reason), None),
        Known::Reason(name) => (own(node), own(reason), Some(name)),
        Known::Nothing => (own(node), own(reason), None),
    };
    Names {
        group,
        trap,
        reason: kernels,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use weir_graph::DropReason;

    use super::*;

    #[test]
    fn nearly_every_number_has_a_name_in_linux() {
        let codes: BTreeSet<u16> = DropReason::ALL
            .iter()
            .map(|&reason| crate::discard_code(reason))
            .collect();
        let nameless: Vec<u16> = codes
            .into_iter()
            .filter(|&code| known(code) == Known::Nothing)
            .collect();
        // Source routes, administratively prohibited, unknown, destinations in 0.0.0.0/8, and what is wrong above IP or inside
        // of it: sFlow numbers them, Linux has no trap for them.
        assert_eq!(nameless, [5, 13, 256, 289, 298, 323]);
    }

    #[test]
    fn what_linux_does_not_say_is_said_in_the_routers_words() {
        let said = |code| {
            let Names {
                group,
                trap,
                reason,
            } = names(code, "ip4-lookup", "no-route");
            (group.into_owned(), trap.into_owned(), reason)
        };
        let own = |group: &str, trap: &str, reason| (group.to_owned(), trap.to_owned(), reason);
        assert_eq!(
            said(257),
            own("vpp_ip4-lookup", "ttl_value_is_too_small", None)
        );
        assert_eq!(said(258), own("acl_drops", "vpp_no-route", None));
        assert_eq!(
            said(0),
            own("vpp_ip4-lookup", "vpp_no-route", Some("IP_INNOROUTES"))
        );
        assert_eq!(said(256), own("vpp_ip4-lookup", "vpp_no-route", None));
    }
}
