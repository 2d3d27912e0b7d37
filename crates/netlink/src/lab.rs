//! Hosts and cables made of network namespaces and veth pairs.

use crate::error::Error;
use crate::netns::NetNs;
use crate::route::VethPair;

/// Tells in one sentence why a lab cannot be made here.
pub fn preflight() -> Result<(), String> {
    let namespace = NetNs::new().map_err(|error| without_namespace(&error))?;
    let mut route = namespace.route().map_err(|error| error.to_string())?;
    let pair = VethPair { name: "a", peer_name: "b", ..VethPair::default() };
    route.create_veth(&pair).map_err(|error| without_veth(&error))
}

fn without_namespace(error: &Error) -> String {
    if error.is_permission() {
        "a lab needs root (CAP_SYS_ADMIN and CAP_NET_ADMIN): run it with sudo".to_owned()
    } else if error.is_not_found() {
        format!("a lab needs /proc mounted and a kernel with network namespaces: {error}")
    } else {
        format!("a lab needs network namespaces: {error}")
    }
}

fn without_veth(error: &Error) -> String {
    if error.is_permission() {
        "a lab needs CAP_NET_ADMIN: run it with sudo".to_owned()
    } else {
        format!("a lab needs the kernel's veth driver (CONFIG_VETH): {error}")
    }
}
