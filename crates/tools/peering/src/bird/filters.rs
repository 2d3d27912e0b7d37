//! Import functions and export filters of neighbours.

use std::fmt::Write as _;

use super::{REJECTED, family, has_aspa, is_own};
use crate::model::{AspaMode, Mode, Neighbor, Peering, Relation};
use crate::policy::import::next_hops;
use crate::policy::{MOST_COMMUNITIES, Reason, community, customer_local_prefs, functions};

/// The names of the sets of a neighbour and a family.
#[derive(Clone, Debug, Default)]
pub(super) struct Sets {
    pub(super) prefixes: Option<String>,
    pub(super) blackhole: Option<String>,
    pub(super) origins: Option<String>,
}

/// Whether networks that buy no transit are searched in its paths.
pub(crate) fn checks_transit(neighbor: &Neighbor) -> bool {
    !matches!(neighbor.relation, Relation::Transit | Relation::Own)
}

/// Writes a call of a check: it rejects, or in shadow mode only marks the route.
fn reject_if(text: &mut String, peering: &Peering, indent: &str, condition: &str, reason: Reason) {
    let _ = if peering.policy.shadow.contains(&reason) {
        writeln!(text, "{indent}if {condition} then {{ }}")
    } else {
        writeln!(text, "{indent}if {condition} then return false;")
    };
}

pub(super) fn import(
    text: &mut String,
    peering: &Peering,
    neighbor: &Neighbor,
    is_ipv4: bool,
    sets: &Sets,
) {
    let (name, family) = (neighbor.name(), family(is_ipv4));
    let [_, before, after, _, _] = &peering.include.texts;
    let _ = writeln!(text, "function import_{name}_{family}() {{");
    if is_own(neighbor) {
        let _ = writeln!(text, "  return true;\n}}");
        let _ = writeln!(
            text,
            "filter accept_{name}_{family} {{ if import_{name}_{family}() then accept; reject; }}"
        );
        return;
    }
    text.push_str(before);
    // NLNOG BGP filter guide, many_communities. RFC 7454 section 11: own communities of others would steer this network.
    let _ = writeln!(
        text,
        "  if bgp_community.len + bgp_large_community.len > {MOST_COMMUNITIES} then {{\n    \
         bgp_community = -empty-;\n    bgp_large_community = ---empty---;\n  }}"
    );
    let scrubbed = if neighbor.relation == Relation::Customer {
        "(OWN_ASN, 0, *), (OWN_ASN, 5, *), (OWN_ASN, 7..4294967295, *)"
    } else {
        "(OWN_ASN, *, *)"
    };
    let _ = writeln!(text, "  bgp_large_community.delete([{scrubbed}]);");
    let mut check = |condition: &str, reason| reject_if(text, peering, "  ", condition, reason);
    check("path_too_long()", Reason::PathTooLong);
    check("as_set()", Reason::AsSet);
    check("bogon_asn()", Reason::BogonAsn);
    check("blocked_asn()", Reason::Blocked);
    if neighbor.relation != Relation::RouteServer {
        check(
            &format!("wrong_first_as({})", neighbor.asn),
            Reason::FirstAs,
        );
    }
    next_hop(text, peering, neighbor, is_ipv4);
    let indent = match &sets.blackhole {
        None => "  ",
        Some(set) => {
            // RFC 7999: own space of the customer only, never passed on.
            let _ = writeln!(
                text,
                "  if (65535, 666) ~ bgp_community && net ~ {set} then {{\n    \
                 bgp_community.add((65535, 65281));\n    dest = RTD_BLACKHOLE;\n  }} else {{"
            );
            "    "
        }
    };
    prefix_checks(text, peering, neighbor, is_ipv4, sets, indent);
    if sets.blackhole.is_some() {
        text.push_str("  }\n");
    }
    let _ = writeln!(
        text,
        "  bgp_large_community.add((OWN_ASN, {}, {}));",
        functions::RELATION,
        neighbor.relation.tag()
    );
    if let Some(ix) = peering.exchange(neighbor).and_then(|it| it.peeringdb_ix) {
        let _ = writeln!(
            text,
            "  bgp_large_community.add((OWN_ASN, {}, {ix}));",
            functions::EXCHANGE
        );
    }
    let _ = writeln!(text, "  bgp_local_pref = {};", peering.local_pref(neighbor));
    if neighbor.relation == Relation::Customer {
        for preference in customer_local_prefs(peering) {
            let _ = writeln!(
                text,
                "  if (OWN_ASN, {}, {preference}) ~ bgp_large_community then bgp_local_pref = {preference};",
                functions::PREFERENCE
            );
        }
    }
    text.push_str(after);
    // The last word, so that nothing raises the preference again (RFC 8326).
    let _ = if peering.mode(neighbor) == Mode::Drain {
        writeln!(text, "  bgp_local_pref = 0;")
    } else {
        writeln!(
            text,
            "  if (65535, 0) ~ bgp_community then bgp_local_pref = 0;"
        )
    };
    let _ = writeln!(text, "  return true;\n}}");
    let _ = writeln!(
        text,
        "filter accept_{name}_{family} {{ if import_{name}_{family}() then accept; reject; }}"
    );
}

/// RFC 7454 section 10. Static routes of a policy test have no next hop.
fn next_hop(text: &mut String, peering: &Peering, neighbor: &Neighbor, is_ipv4: bool) {
    let allowed = next_hops(peering, neighbor, is_ipv4);
    if !neighbor.check_next_hop || allowed.is_empty() {
        return;
    }
    // BIRD compares an address with addresses and with prefixes, not with sets of prefixes.
    let list: Vec<String> = allowed
        .iter()
        .map(|it| {
            if it.prefix_len() == it.max_prefix_len() {
                format!("bgp_next_hop = {}", it.addr())
            } else {
                format!("bgp_next_hop ~ {it}")
            }
        })
        .collect();
    let reject = if peering.policy.shadow.contains(&Reason::NextHop) {
        ""
    } else {
        " return false;"
    };
    let _ = writeln!(
        text,
        "  if source = RTS_BGP then if ! ({}) then {{\n    \
         bgp_large_community.add((OWN_ASN, {REJECTED}, {}));{reject}\n  }}",
        list.join(" || "),
        Reason::NextHop as u32
    );
}

fn prefix_checks(
    text: &mut String,
    peering: &Peering,
    neighbor: &Neighbor,
    is_ipv4: bool,
    sets: &Sets,
    indent: &str,
) {
    let family = family(is_ipv4);
    let mut check = |condition: &str, reason| reject_if(text, peering, indent, condition, reason);
    check(&format!("prefix_length_{family}()"), Reason::PrefixLength);
    if !is_ipv4 {
        check("not_global_unicast()", Reason::NotGlobalUnicast);
    }
    check(&format!("bogon_prefix_{family}()"), Reason::BogonPrefix);
    check(&format!("blocked_prefix_{family}()"), Reason::Blocked);
    if neighbor.relation == Relation::RouteServer {
        check("never_via_route_server()", Reason::NeverViaRouteServer);
    }
    if checks_transit(neighbor) {
        check(
            &format!("transit_free_AS{}()", neighbor.asn),
            Reason::TransitFree,
        );
    }
    check(&format!("rpki_invalid_{family}()"), Reason::RpkiInvalid);
    if has_aspa(peering) {
        let direction = if neighbor.relation == Relation::Transit {
            "downstream"
        } else {
            "upstream"
        };
        let call = format!("aspa_invalid_{direction}()");
        let _ = if peering.policy.aspa == AspaMode::Reject {
            writeln!(text, "{indent}if {call} then return false;")
        } else {
            writeln!(text, "{indent}if {call} then {{ }}")
        };
    }
    let validation = functions::VALIDATION;
    if let Some(prefixes) = &sets.prefixes {
        let mut by_roa = String::new();
        if let Some(origins) = &sets.origins {
            not_in(
                text,
                peering,
                indent,
                &format!("bgp_path.last ~ {origins}"),
                Reason::OriginNotInAsSet,
            );
            if peering.policy.roa_as_route_object.unwrap_or(true) {
                by_roa = format!(
                    " || (bgp_path.last ~ {origins} && roa_check(roa_{family}, net, bgp_path.last) = ROA_VALID)"
                );
            }
        }
        not_in(
            text,
            peering,
            indent,
            &format!("net ~ {prefixes}{by_roa}"),
            Reason::NotInIrr,
        );
        let _ = writeln!(
            text,
            "{indent}if net ~ {prefixes} then bgp_large_community.add((OWN_ASN, {validation}, 1));"
        );
    }
    let _ = writeln!(
        text,
        "{indent}if roa_check(roa_{family}, net, bgp_path.last) = ROA_VALID then \
         bgp_large_community.add((OWN_ASN, {validation}, 2));\n\
         {indent}if roa_check(roa_{family}, net, bgp_path.last) = ROA_UNKNOWN then \
         bgp_large_community.add((OWN_ASN, {validation}, 3));"
    );
}

/// Writes a check that something is in a set.
fn not_in(text: &mut String, peering: &Peering, indent: &str, condition: &str, reason: Reason) {
    let reject = if peering.policy.shadow.contains(&reason) {
        ""
    } else {
        " return false;"
    };
    let _ = writeln!(
        text,
        "{indent}# {}: {}\n{indent}if ! ({condition}) then {{ \
         bgp_large_community.add((OWN_ASN, {REJECTED}, {}));{reject} }}",
        reason.name(),
        reason.source(),
        reason as u32
    );
}

pub(super) fn export(text: &mut String, peering: &Peering, neighbor: &Neighbor, is_ipv4: bool) {
    let (name, family) = (neighbor.name(), family(is_ipv4));
    let [_, _, _, before, _] = &peering.include.texts;
    let _ = writeln!(text, "filter announce_{name}_{family} {{");
    if is_own(neighbor) {
        let _ = writeln!(
            text,
            "  if (65535, 65282) ~ bgp_community then reject;\n  accept;\n}}"
        );
        return;
    }
    text.push_str(before);
    let _ = writeln!(
        text,
        "  if (65535, 65281) ~ bgp_community || (65535, 65282) ~ bgp_community then reject;"
    );
    if neighbor.relation != Relation::Customer {
        // Own routes and customers' ones; anything else would be a leak.
        let _ = writeln!(
            text,
            "  if ! ((OWN_ASN, {0}, {1}) ~ bgp_large_community) && ! ((OWN_ASN, {0}, {2}) ~ bgp_large_community) then reject;",
            functions::RELATION,
            Relation::Own.tag(),
            Relation::Customer.tag()
        );
    }
    let asked = |function: u32| {
        format!(
            "(OWN_ASN, {function}, 0) ~ bgp_large_community || (OWN_ASN, {function}, {}) ~ bgp_large_community",
            neighbor.asn
        )
    };
    let _ = writeln!(text, "  if {} then reject;", asked(functions::WITHHOLD));
    for times in 1..=3 {
        let _ = writeln!(
            text,
            "  if {} then {{{} }}",
            asked(functions::PREPEND + times - 1),
            " bgp_path.prepend(OWN_ASN);".repeat(times as usize)
        );
    }
    for _ in 0..neighbor.prepend {
        text.push_str("  bgp_path.prepend(OWN_ASN);\n");
    }
    // Customers see what their provider knows of a route, others nothing.
    let scrubbed = if neighbor.relation == Relation::Customer {
        "(OWN_ASN, 1..4, *), (OWN_ASN, 6..7, *)"
    } else {
        "(OWN_ASN, *, *)"
    };
    let _ = writeln!(text, "  bgp_large_community.delete([{scrubbed}]);");
    for (high, low) in neighbor.communities.iter().filter_map(|it| community(it)) {
        let _ = writeln!(text, "  bgp_community.add(({high}, {low}));");
    }
    if peering.mode(neighbor) == Mode::Drain {
        let _ = writeln!(text, "  bgp_community.add((65535, 0));");
    }
    let _ = writeln!(text, "  accept;\n}}");
}
