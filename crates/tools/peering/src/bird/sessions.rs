//! Own routes, the kernel, BMP and sessions.

use std::fmt::Write as _;

use ipnet::IpNet;

use super::{family, is_own};
use crate::model::{Mode, Neighbor, Peering, Relation, Session};
use crate::policy::functions;

pub(super) fn write(text: &mut String, peering: &Peering) {
    for is_ipv4 in [true, false] {
        own_routes(text, peering, is_ipv4);
        if peering.kernel.export {
            kernel(text, peering, is_ipv4);
        }
    }
    if let Some(bmp) = peering.bmp {
        let _ = writeln!(
            text,
            "protocol bmp {{\n  station address ip {} port {};\n  monitoring rib in pre_policy;\n  \
             monitoring rib in post_policy;\n}}",
            bmp.address, bmp.port
        );
    }
    let all = || {
        let neighbors = peering.neighbors.iter();
        neighbors.flat_map(|it| peering.sessions(it).map(move |session| (it, session)))
    };
    if all().any(|(_, (_, session))| session.bfd) {
        text.push_str("protocol bfd { }\n");
    }
    for (neighbor, (name, it)) in all() {
        session(text, neighbor, &name, &it);
    }
}

fn own_routes(text: &mut String, peering: &Peering, is_ipv4: bool) {
    let family = family(is_ipv4);
    let own: Vec<&IpNet> = peering
        .prefixes
        .iter()
        .filter(|it| it.addr().is_ipv4() == is_ipv4)
        .collect();
    let _ = writeln!(text, "protocol static own_{family} {{\n  ipv{family};");
    for prefix in own {
        let _ = writeln!(
            text,
            "  route {prefix} unreachable {{ bgp_large_community.add((OWN_ASN, {}, {})); }};",
            functions::RELATION,
            Relation::Own.tag()
        );
    }
    text.push_str("}\n");
}

fn kernel(text: &mut String, peering: &Peering, is_ipv4: bool) {
    let family = family(is_ipv4);
    let _ = writeln!(
        text,
        "protocol kernel kernel_{family} {{\n  ipv{family} {{ import none; export where source ~ [ RTS_BGP, RTS_STATIC ]; }};"
    );
    if let Some(table) = peering.kernel.table {
        let _ = writeln!(text, "  kernel table {table};");
    }
    if peering.kernel.merge_paths > 1 {
        let _ = writeln!(
            text,
            "  merge paths yes limit {};",
            peering.kernel.merge_paths
        );
    }
    text.push_str("}\n");
}

fn session(text: &mut String, neighbor: &Neighbor, name: &str, session: &Session) {
    let _ = writeln!(text, "protocol bgp {name} {{");
    if !neighbor.description.is_empty() {
        let _ = writeln!(text, "  description \"{}\";", neighbor.description);
    }
    if session.mode == Mode::Down {
        let _ = writeln!(text, "  disabled yes;");
    }
    let local = session
        .local_address
        .map_or_else(String::new, |it| format!("{it} "));
    let _ = writeln!(
        text,
        "  local {local}as OWN_ASN;\n  neighbor {} as {};",
        session.address, neighbor.asn
    );
    if session.gtsm {
        let _ = writeln!(text, "  ttl security yes;");
    }
    if let Some(hops) = session.multihop {
        let _ = writeln!(text, "  multihop {hops};");
    }
    if session.passive {
        let _ = writeln!(text, "  passive yes;");
    }
    if session.bfd {
        let _ = writeln!(text, "  bfd yes;");
    }
    if let Some(role) = neighbor.relation.own_role().filter(|_| neighbor.role) {
        let _ = writeln!(text, "  local role {role};");
        if neighbor.require_role {
            let _ = writeln!(text, "  require roles yes;");
        }
    }
    if let Some(file) = &session.password_file {
        let _ = writeln!(text, "  include \"{}\";", file.display());
    }
    let family = family(session.address.is_ipv4());
    let of = neighbor.name();
    // BIRD runs filters again for changed ROAs only where it keeps received routes in a table.
    let _ = writeln!(
        text,
        "  ipv{family} {{\n    import table yes;\n    import keep filtered;\n    import filter accept_{of}_{family};\n    \
         export filter announce_{of}_{family};"
    );
    if is_own(neighbor) {
        text.push_str("    next hop self;\n");
    }
    if let Some(limit) = session.limit {
        let _ = writeln!(
            text,
            "    receive limit {limit} action {};",
            neighbor.limit_action.word()
        );
    }
    text.push_str("  };\n}\n");
}
