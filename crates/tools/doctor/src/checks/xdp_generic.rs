//! `xdp-generic`: XDP programs run in the driver.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "xdp-generic",
    title: "XDP programs run in the driver",
    consequence: "The kernel builds a socket buffer first: most of the gain of XDP is lost.",
    explanation: "Generic mode works with every device and is for tests. Native mode needs support of the driver, sometimes a smaller MTU or fewer queues.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let Some(rows) = host
        .command("ip -j -d link show")
        .and_then(|text| serde_json::from_str::<Vec<serde_json::Value>>(&text).ok())
    else {
        return Vec::new();
    };
    rows.iter()
        .filter_map(|row| {
            let device = row.get("ifname")?.as_str()?;
            let mode = row.get("xdp")?.get("mode")?.as_i64()?;
            let program = row.get("xdp")?.get("prog").and_then(|prog| prog.get("id")).and_then(serde_json::Value::as_i64).unwrap_or(0);
            let how = format!("detach with ip link set {device} xdpgeneric off and attach in native mode; ethtool -k, MTU and queue counts say why native mode failed");
            (mode == 2).then(|| finding(Severity::Warning, device, format!("program {program} runs in generic mode"), manual(&how)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generic_mode_is_found() {
        let found = found(
            &CHECK,
            &[(
                "commands/ip -j -d link show",
                "[{\"ifname\":\"eth0\",\"xdp\":{\"mode\":2,\"prog\":{\"id\":7}}}]",
            )],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Warning, "eth0")
        );
        assert!(found[0].evidence.contains("program 7"), "{found:#?}");
    }

    #[test]
    fn native_mode_is_fine() {
        let found = found(
            &CHECK,
            &[(
                "commands/ip -j -d link show",
                "[{\"ifname\":\"eth0\",\"xdp\":{\"mode\":1,\"prog\":{\"id\":7}}},{\"ifname\":\"eth1\"}]",
            )],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
