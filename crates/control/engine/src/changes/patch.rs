//! Short edits: sFlow's settings, and one interface's. Each is a whole change of the configuration,
//! with a plan, a revision and an undo. Its text is that of the applied configuration with the settings changed in place, so
//! that comments stay. Where the text's form does not allow that, it is written anew, and a finding says that its
//! comments are in the revision before.

use weir_api::{
    ApiError, Applied, Caller, Edit, ErrorCode, Finding, FindingSeverity, InterfacePatch,
    SflowPatch, UpDown,
};
use weir_config::{AdminState, Config, Device, Interface, Sflow};

use super::Reason;
use crate::router::Router;

/// The number, as long as a configuration file could say it; the check of the text says what is right.
fn number<T: TryFrom<u32>>(value: u32, limit: T) -> T {
    T::try_from(value).unwrap_or(limit)
}

/// Why an edit cannot be written into the file.
fn not_a_key(checked: &Config, wanted: &Config, what: &str) -> ApiError {
    for (name, wanted) in &wanted.interfaces {
        let Some(got) = checked.interfaces.get(name).filter(|got| *got != wanted) else {
            continue;
        };
        let keys = [
            ("sflow", got.sflow != wanted.sflow),
            ("state", got.state != wanted.state),
            ("mtu", got.mtu != wanted.mtu),
            ("description", got.description != wanted.description),
        ];
        let lost: Vec<&str> = keys
            .iter()
            .filter_map(|(key, lost)| lost.then_some(*key))
            .collect();
        let (kind, help) = match (&wanted.device, wanted.sub_interface()) {
            (_, Some(sub)) => (
                "a sub-interface",
                format!("set it for its parent, {}", sub.parent),
            ),
            (Some(Device::Loopback), _) => ("a loopback", String::new()),
            (device, _) => (
                device.as_ref().map_or("no port", Device::driver),
                String::new(),
            ),
        };
        return ApiError::new(
            ErrorCode::BadRequest,
            format!(
                "{name} is {kind}: it has no setting `{}`",
                lost.join("`, `")
            ),
            help,
        );
    }
    ApiError::new(
        ErrorCode::BadRequest,
        format!("{what} cannot have this setting"),
        "`weir config schema` lists the keys",
    )
}

impl Router {
    pub(crate) fn patch_sflow(
        &self,
        patch: &SflowPatch,
        caller: &Caller,
    ) -> Result<Applied, ApiError> {
        let mut wanted = self.wanted_config();
        let (defaults, sflow) = (Sflow::default(), &mut wanted.sflow);
        sflow.sampling_rate = patch
            .sampling_rate
            .of(sflow.sampling_rate, defaults.sampling_rate);
        sflow.polling_interval = patch
            .polling_interval_seconds
            .of(sflow.polling_interval, defaults.polling_interval);
        let header = patch.header_bytes.of(
            u32::from(sflow.header_bytes),
            u32::from(defaults.header_bytes),
        );
        sflow.header_bytes = number(header, u16::MAX);
        let keys = [
            written("sampling-rate", &patch.sampling_rate, || {
                wanted.sflow.sampling_rate.to_string()
            }),
            written("polling-interval", &patch.polling_interval_seconds, || {
                wanted.sflow.polling_interval.to_string()
            }),
            written("header-bytes", &patch.header_bytes, || {
                wanted.sflow.header_bytes.to_string()
            }),
        ];
        let keys: Vec<_> = keys.into_iter().flatten().collect();
        self.edit(&wanted, &["sflow"], &keys, caller)
    }

    pub(crate) fn patch_interface(
        &self,
        name: &str,
        patch: &InterfacePatch,
        caller: &Caller,
    ) -> Result<Applied, ApiError> {
        let mut wanted = self.wanted_config();
        let known: Vec<String> = wanted.interfaces.keys().cloned().collect();
        let Some(interface) = wanted.interfaces.get_mut(name) else {
            return Err(ApiError::unknown(
                "interface",
                name,
                known.iter().map(String::as_str),
            ));
        };
        let defaults = Interface::default();
        interface.sflow = patch.sflow.of(interface.sflow, defaults.sflow);
        let mtu_before = interface.mtu;
        interface.mtu = number(
            patch
                .mtu
                .of(u32::from(interface.mtu), u32::from(defaults.mtu)),
            u16::MAX,
        );
        let mtu = interface.mtu;
        let state = |state| {
            if state == AdminState::Up {
                UpDown::Up
            } else {
                UpDown::Down
            }
        };
        interface.state = match patch
            .state
            .of(state(interface.state), state(defaults.state))
        {
            UpDown::Up => AdminState::Up,
            UpDown::Down => AdminState::Down,
        };
        let (before, absent) = (
            interface.description.clone().unwrap_or_default(),
            String::new(),
        );
        interface.description =
            Some(patch.description.clone().of(before, absent)).filter(|text| !text.is_empty());
        // A sub-interface without an MTU of its own has its parent's.
        for sub in wanted.interfaces.values_mut() {
            let of_this = sub.sub_interface().is_some_and(|it| it.parent == name);
            if of_this && sub.mtu == mtu_before {
                sub.mtu = mtu;
            }
        }
        let Some(new) = wanted.interfaces.get(name) else {
            return Err(ApiError::unknown("interface", name, std::iter::empty()));
        };
        let keys = [
            written("sflow", &patch.sflow, || new.sflow.to_string()),
            written("state", &patch.state, || {
                if new.state == AdminState::Up {
                    "up"
                } else {
                    "down"
                }
                .to_owned()
            }),
            written("mtu", &patch.mtu, || new.mtu.to_string()),
            written("description", &patch.description, || {
                let text = new.description.as_deref().unwrap_or_default();
                format!("'{}'", text.replace('\'', "''"))
            }),
        ];
        let keys: Vec<_> = keys.into_iter().flatten().collect();
        self.edit(&wanted, &section_of(&wanted, name), &keys, caller)
    }

    /// Puts the edited value through the same checks as a file.
    fn edit(
        &self,
        wanted: &Config,
        at: &[&str],
        keys: &[(&str, String)],
        caller: &Caller,
    ) -> Result<Applied, ApiError> {
        let what = at.join(".");
        let reason = Reason {
            author: caller.author(),
            comment: format!("edit of {what}"),
            confirm_seconds: None,
        };
        let before = self.change_manager().book().text.clone();
        let in_place = weir_config::set_in_text(&before, at, keys)
            .and_then(|text| self.read("edit", &text, true).ok())
            .filter(|good| good.config == *wanted);
        if let Some(good) = in_place {
            return self.change(good.config, &good.text, &reason, good.findings, caller);
        }
        let text = weir_config::to_yaml(wanted);
        let checked = self.read("edit", &text, false)?;
        // A key that the file does not have for this kind of interface is lost in the text.
        if checked.config != *wanted {
            return Err(not_a_key(&checked.config, wanted, &what));
        }
        let mut findings = checked.findings;
        if before.contains('#') {
            findings.push(comments_lost(&what));
        }
        self.change(checked.config, &text, &reason, findings, caller)
    }
}

/// The new revision has no comments, though the one before had some.
fn comments_lost(what: &str) -> Finding {
    let message = format!(
        "`{what}` cannot be changed in place: this revision is written anew, without comments"
    );
    let help = "the text with comments is in the revision before; the file itself is not changed";
    Finding {
        severity: FindingSeverity::Warning,
        file: "edit".to_owned(),
        line: 1,
        column: 1,
        width: 1,
        path: what.to_owned(),
        rendered: format!("warning: {message}\n  = help: {help}"),
        message,
        help: help.to_owned(),
    }
}

/// The words of an edit that is made, as a file writes them.
fn written<T>(
    key: &'static str,
    edit: &Edit<T>,
    text: impl FnOnce() -> String,
) -> Option<(&'static str, String)> {
    (!edit.is_keep()).then(|| (key, text()))
}

/// Where the file has an interface.
fn section_of<'n>(config: &'n Config, name: &'n str) -> Vec<&'n str> {
    let interface = config.interfaces.get(name);
    let sub = interface.and_then(Interface::sub_interface);
    match (sub, interface.and_then(|it| it.device.as_ref())) {
        (Some(sub), _) => {
            let id = name.get(sub.parent.len() + 1..).unwrap_or_default();
            vec!["interfaces", &sub.parent, "sub-interfaces", id]
        }
        (None, Some(Device::Loopback)) => vec!["loopbacks", name],
        (None, Some(Device::Bond(_))) => vec!["bondethernets", name],
        (None, Some(Device::Vxlan(_))) => vec!["vxlan_tunnels", name],
        _ => vec!["interfaces", name],
    }
}
