//! `weir set` and sFlow's settings: short edits of the running configuration, in VPP's words.

use std::io::Write;
use std::path::Path;

use weir_api::{Edit, InterfacePatch, SflowPatch, UpDown};

use super::config_apply::done;
use super::config_file::refused;
use crate::cli::{EnableDisable, SetCommand, SetInterface, SflowCommand, State, Where};
use crate::failure::Failure;

/// The name of an edited configuration in findings, as the router has it.
const EDIT: &str = "edit";

/// `weir set`.
pub(crate) fn execute(
    what: &SetCommand,
    at: &Where,
    json: bool,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    let SetCommand::Interface(setting) = what;
    let (interface, patch) = match setting {
        SetInterface::State { interface, state } => {
            let state = UpDown::from(*state == State::Up);
            (
                interface,
                InterfacePatch {
                    state: Edit::Set(state),
                    ..InterfacePatch::default()
                },
            )
        }
        SetInterface::Mtu { mtu, interface } => (
            interface,
            InterfacePatch {
                mtu: Edit::Set(*mtu),
                ..InterfacePatch::default()
            },
        ),
        SetInterface::Description { interface, text } => {
            let description = text.clone().map_or(Edit::Unset, Edit::Set);
            (
                interface,
                InterfacePatch {
                    description,
                    ..InterfacePatch::default()
                },
            )
        }
    };
    let applied = at
        .client()?
        .interface_patch(interface, &patch)
        .map_err(|error| refused(Path::new(EDIT), error, json, to))?;
    done(&applied, at, json, to)
}

/// `weir sflow` but for `decode`.
pub(crate) fn sflow(
    setting: &SflowCommand,
    at: &Where,
    json: bool,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    let client = at.client()?;
    let patched = match setting {
        SflowCommand::SamplingRate { rate } => client.sflow_patch(&SflowPatch {
            sampling_rate: Edit::Set(*rate),
            ..SflowPatch::default()
        }),
        SflowCommand::PollingInterval { seconds } => client.sflow_patch(&SflowPatch {
            polling_interval_seconds: Edit::Set(*seconds),
            ..SflowPatch::default()
        }),
        SflowCommand::HeaderBytes { bytes } => client.sflow_patch(&SflowPatch {
            header_bytes: Edit::Set(*bytes),
            ..SflowPatch::default()
        }),
        SflowCommand::EnableDisable { interface, what } => {
            let sflow = Edit::Set(*what == EnableDisable::Enable);
            client.interface_patch(
                interface,
                &InterfacePatch {
                    sflow,
                    ..InterfacePatch::default()
                },
            )
        }
        SflowCommand::Decode(_) => return Ok(()),
    };
    let applied = patched.map_err(|error| refused(Path::new(EDIT), error, json, to))?;
    done(&applied, at, json, to)
}
