//! VXLAN tunnels.

use weir_api::{PathReply, VxlanTunnel, VxlanTunnels};

use super::{Cell, Column, Screen, Table, interface};

/// `show vxlan tunnel`: a line a tunnel.
pub(crate) fn tunnels(reply: &VxlanTunnels, screen: &Screen) -> String {
    if reply.tunnels.is_empty() {
        return "no VXLAN tunnels\n".to_owned();
    }
    let mut table = Table::new([
        Column::text("Tunnel"),
        Column::number("Index"),
        Column::text("State"),
        Column::text("Local"),
        Column::text("Remote"),
        Column::number("VNI"),
        Column::number("MTU"),
        Column::long("Frames to"),
        Column::long("Route"),
    ]);
    for tunnel in &reply.tunnels {
        let frames = tunnel.bridge.as_ref().or(tunnel.l2xc.as_ref());
        table.row([
            Cell::from(&tunnel.interface),
            tunnel.index.to_string().into(),
            interface::up_down(tunnel.admin),
            tunnel.local.to_string().into(),
            tunnel.remote.to_string().into(),
            tunnel.vni.to_string().into(),
            tunnel.mtu.to_string().into(),
            Cell::maybe(frames.cloned()),
            Cell::maybe(route(tunnel)),
        ]);
    }
    table.draw(screen)
}

/// The prefix that covers the far end, and by which interfaces it leads.
fn route(tunnel: &VxlanTunnel) -> Option<String> {
    let route = tunnel.route.as_ref()?;
    let by = |path: &PathReply| path.interface.clone();
    let mut by: Vec<String> = route.paths.iter().filter_map(by).collect();
    by.dedup();
    Some(if by.is_empty() {
        route.prefix.to_string()
    } else {
        format!("{} by {}", route.prefix, by.join(", "))
    })
}
