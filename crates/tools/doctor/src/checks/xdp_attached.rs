//! `xdp-attached`: no other XDP program occupies a device.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "xdp-attached",
    title: "no other XDP program occupies a device",
    consequence: "Weir cannot open the device by AF_XDP: attaching fails as busy.",
    explanation: "A device takes one XDP program in each mode. This finding is right when the program is the one that should be there, Weir's own included.",
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
            let program = row
                .get("xdp")?
                .get("prog")
                .and_then(|prog| prog.get("id"))
                .and_then(serde_json::Value::as_i64)
                .unwrap_or(0);
            let how = format!("if the program is not wanted: ip link set {device} xdp off");
            (mode != 0).then(|| {
                finding(
                    Severity::Advice,
                    device,
                    format!("program {program} is attached"),
                    manual(&how),
                )
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found() {
        let found = found(
            &CHECK,
            &[(
                "commands/ip -j -d link show",
                "[{\"ifname\":\"eth0\",\"xdp\":{\"mode\":1,\"prog\":{\"id\":7}}}]",
            )],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Advice, "eth0")
        );
        assert!(found[0].evidence.contains("program 7"), "{found:#?}");
    }

    #[test]
    fn free_devices_are_fine() {
        let found = found(
            &CHECK,
            &[("commands/ip -j -d link show", "[{\"ifname\":\"eth0\"}]")],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
