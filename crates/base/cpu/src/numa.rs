//! NUMA: which node a core belongs to, and memory from a chosen node.
//!
//! Read from sysfs; a machine that tells nothing has one node, number 0. [`prefer_node`] holds for
//! the calling thread and for as long as the closure runs: pages that it touches first come from that
//! node as long as it has free ones, else from another.

use std::path::Path;

/// The most nodes that are distinguished.
const MOST: u32 = 64;

/// The nodes that have memory and are online, lowest first; at least one.
#[must_use]
pub fn online_nodes() -> Vec<u32> {
    let text = std::fs::read_to_string("/sys/devices/system/node/has_memory").unwrap_or_default();
    let nodes = read_list(&text);
    if nodes.is_empty() { vec![0] } else { nodes }
}

/// The node of a core; 0 when nothing is known.
#[must_use]
pub fn node_of_core(core: usize) -> u32 {
    let folder = format!("/sys/devices/system/cpu/cpu{core}");
    (0..MOST)
        .find(|node| Path::new(&format!("{folder}/node{node}")).exists())
        .unwrap_or(0)
}

/// The node that a network device of this namespace is attached to, if it has one.
#[must_use]
pub fn node_of_device(name: &str) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/sys/class/net/{name}/device/numa_node")).ok()?;
    text.trim()
        .parse::<i64>()
        .ok()
        .and_then(|node| u32::try_from(node).ok())
        .filter(|node| *node < MOST)
}

/// `0-2,5` as numbers; what makes no sense is left out.
fn read_list(text: &str) -> Vec<u32> {
    let ranges = text.trim().split(',').filter_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse::<u32>().ok()?..=last.trim().parse::<u32>().ok()?.min(MOST - 1))
    });
    ranges.flatten().filter(|node| *node < MOST).collect()
}

/// Runs `work` so that memory it touches first comes from `node` when it can.
pub fn prefer_node<T>(node: u32, work: impl FnOnce() -> T) -> T {
    let set = node < MOST && set_policy(libc::MPOL_PREFERRED, 1 << node);
    let result = work();
    if set {
        set_policy(libc::MPOL_DEFAULT, 0);
    }
    result
}

fn set_policy(policy: libc::c_int, nodes: u64) -> bool {
    let (mask, bits) = if nodes == 0 {
        (std::ptr::null(), 0)
    } else {
        (std::ptr::from_ref(&nodes), u64::from(MOST) + 1)
    };
    #[expect(unsafe_code, reason = "a system call that no library wraps")]
    // SAFETY: the kernel reads `bits` bits from `mask`, which points to 64 of them (it takes one off
    // the number it is given), or nothing when there are none.
    let answer = unsafe { libc::syscall(libc::SYS_set_mempolicy, policy, mask, bits) };
    answer == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_nodes_are_read() {
        assert_eq!(read_list("0\n"), [0]);
        assert_eq!(read_list("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(read_list("nonsense,3,7-x,99999999"), [3]);
        assert_eq!(read_list("0-4294967295").len(), 64);
        assert!(read_list("").is_empty());
    }

    #[test]
    fn this_machine_has_a_node_and_memory_from_it() {
        let node = online_nodes()[0];
        let sum: u64 = prefer_node(node, || vec![1_u8; 1 << 20])
            .iter()
            .map(|byte| u64::from(*byte))
            .sum();
        assert_eq!(sum, 1 << 20);
        assert!(
            prefer_node(node, || set_policy(libc::MPOL_DEFAULT, 0)),
            "the kernel takes a policy"
        );
    }

    #[test]
    fn a_device_without_a_node_has_none() {
        assert_eq!(node_of_device("lo"), None);
        assert_eq!(node_of_device("../../etc"), None);
    }
}
