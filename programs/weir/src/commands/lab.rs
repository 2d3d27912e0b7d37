//! `weir lab`: thin commands over the crate `weir_lab`.

mod cases;
mod cpu;
mod demo;
mod device;
mod generate;
mod ndr;
mod ovs;
mod report;
mod scenario;
mod stage;
mod view;

use std::io::Write;
use std::path::Path;

use weir_lab::LabError;
use weir_lab::port::{Device, PortSpec};
use weir_lab::profile::{Profile, ProfileError, Simple};

use crate::cli::{LabCommand, TrafficArgs};
use crate::failure::{Failure, REFUSED, USAGE};

/// Does it.
pub(crate) fn execute(what: &LabCommand, json: bool, to: &mut dyn Write) -> Result<(), Failure> {
    match what {
        LabCommand::Generate(args) => generate::execute(args, json, to),
        LabCommand::Ndr(args) => ndr::execute(args, json, to),
        LabCommand::Report(args) => report::execute(args, json, to),
        LabCommand::Cpu(args) => cpu::execute(args, json, to),
        LabCommand::Run(args) => scenario::execute(args, json, to),
        LabCommand::Device(args) => device::execute(args, json, to),
        LabCommand::Demo(args) => demo::execute(args, json, to),
    }
}

impl From<LabError> for Failure {
    fn from(error: LabError) -> Failure {
        match error {
            LabError::Profile(_) | LabError::Stream { .. } => {
                Failure::Coded(REFUSED, error.to_string())
            }
            other => Failure::said(other),
        }
    }
}

/// The profile and the ports that the arguments describe.
fn traffic(args: &TrafficArgs) -> Result<(Profile, Vec<PortSpec>), Failure> {
    let ports = if args.port.is_empty() {
        vec![PortSpec::new(Device::Null)]
    } else {
        args.port.clone()
    };
    spare_management(&ports)?;
    let imix = args
        .profile
        .as_ref()
        .is_some_and(|profile| profile.as_os_str() == "imix");
    let mut profile = match (&args.profile, &args.replay) {
        (Some(path), _) if !imix => {
            only_in_words(args, &format!("the profile {}", path.display()))?;
            let text = std::fs::read_to_string(path)
                .map_err(|error| Failure::said(format!("{}: {error}", path.display())))?;
            let folder = path.parent().unwrap_or(Path::new("."));
            refused(Profile::from_yaml_in(&text, folder), &path.display())?
        }
        (_, Some(path)) => {
            only_in_words(args, "a replay")?;
            let file = serde_json::Value::from(path.display().to_string());
            let text = format!(
                "streams: [{{name: replay, capture: {{file: {file}, speed: {}, loop: {}}}}}]",
                args.speed, args.passes
            );
            refused(Profile::from_yaml(&text), &"--replay")?
        }
        _ => Profile::simple(&simple(args, imix, &ports))
            .map_err(|problem| Failure::Coded(REFUSED, problem))?,
    };
    if let Some(seed) = args.seed {
        profile.seed = seed;
    }
    for spec in &mut profile.streams {
        if let Some(rate) = args.rate {
            spec.rate = rate;
            spec.timed = false;
        }
        spec.packets = args.packets.unwrap_or(spec.packets);
        spec.stamped &= !args.no_stamp;
    }
    Ok((profile, ports))
}

/// Refuses devices that this machine is reached through: Linux receives nothing from a device that is taken.
fn spare_management(ports: &[PortSpec]) -> Result<(), Failure> {
    for port in ports.iter().filter(|port| !port.allow_management) {
        let Device::Afxdp(name, _) = &port.device else {
            continue;
        };
        // Addresses alone are usual where a lab is built.
        let used = weir_engine::machine_use_of(name);
        if let Some(used) = used.filter(|it| it.default_route || !it.ssh_clients.is_empty()) {
            return Err(Failure::Coded(
                REFUSED,
                format!(
                    "this machine uses the device {name} itself: it has {used}; choose another one, or write {name},allow-management"
                ),
            ));
        }
    }
    Ok(())
}

fn refused(
    profile: Result<Profile, Vec<ProfileError>>,
    whence: &dyn std::fmt::Display,
) -> Result<Profile, Failure> {
    profile.map_err(|errors| {
        Failure::Coded(REFUSED, format!("{whence}: {}", LabError::Profile(errors)))
    })
}

/// Refuses arguments about packets beside a file that describes them: they would change nothing.
fn only_in_words(args: &TrafficArgs, file: &str) -> Result<(), Failure> {
    let given = [
        ("--size", args.size.is_some()),
        ("--l3", args.l3.is_some()),
        ("--flows", args.flows.is_some()),
        ("--source", args.source.is_some()),
        ("--destination", args.destination.is_some()),
        ("--destination-mac", args.destination_mac.is_some()),
        ("--bidirectional", args.bidirectional),
    ];
    let given: Vec<_> = given.iter().filter(|(_, given)| *given).collect();
    match given.first() {
        Some((name, _)) => Err(Failure::Coded(
            USAGE,
            format!("{name} does not apply: {file} says what is sent"),
        )),
        None => Ok(()),
    }
}

fn simple(args: &TrafficArgs, imix: bool, ports: &[PortSpec]) -> Simple {
    Simple {
        rate: args.rate,
        size: args.size.or(args.l3.map(|bytes| bytes.saturating_add(18))),
        imix,
        flows: args.flows,
        packets: args.packets,
        source: args.source.clone(),
        destination: args.destination.clone(),
        destination_mac: args.destination_mac.clone(),
        gateway: ports.iter().any(|port| port.gateway.is_some()),
        bidirectional: args.bidirectional,
        no_stamp: args.no_stamp,
        seed: args.seed,
    }
}
