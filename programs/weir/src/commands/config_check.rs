//! `weir config check` and `weir config schema`: is a file right, and what may one be?
//!
//! Findings go to standard error in a compiler's form, or to standard output as JSON. Whether the
//! machine has what the file names is not looked at, so that a file can be checked anywhere; with
//! `--running` the running router looks at that, too.

use std::io::Write;

use weir_api::ConfigText;

use super::config_file::{check, name, refuse, report, tell, text, warnings};
use crate::cli::{ConfigCheckArgs, ConfigFileArgs, Where};
use crate::failure::Failure;
use crate::render::units;

/// More interfaces are not listed by name.
const MOST_NAMES: usize = 8;

/// `weir config check`.
pub(crate) fn execute(
    args: &ConfigCheckArgs,
    at: &Where,
    json: bool,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    if args.running {
        return against_the_router(&args.file, at, json, to);
    }
    let name = name(&args.file.config);
    let checked = match check(&args.file.config, args.file.skip_unsupported)? {
        Ok(checked) => checked,
        Err(findings) => return Err(refuse(&name, &findings, json, to)),
    };
    if json {
        return report(&name, &checked.warnings, to);
    }
    tell(&checked.warnings);
    let interfaces = units::count(
        checked.config.interfaces.len() as u64,
        "interface",
        "interfaces",
    );
    let routes = units::count(checked.config.routes.len() as u64, "route", "routes");
    writeln!(
        to,
        "{name} is right: {interfaces}, {routes}{}",
        warnings(&checked.warnings)
    )?;
    let without: Vec<&str> = checked.config.without_device().collect();
    if let [first, ..] = without.as_slice() {
        let count = units::count(without.len() as u64, "interface has", "interfaces have");
        writeln!(
            to,
            "{count} no `device`, so no packets come in or leave there: {}",
            if without.len() > MOST_NAMES {
                format!("{first} and others")
            } else {
                without.join(", ")
            }
        )?;
    }
    Ok(())
}

/// The running router looks at the file, and at its machine.
fn against_the_router(
    args: &ConfigFileArgs,
    at: &Where,
    json: bool,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    let name = name(&args.config);
    let request = ConfigText {
        yaml: text(args, json, to)?,
        file: Some(name.clone()),
        skip_unsupported: args.skip_unsupported,
    };
    let checked = at.client()?.config_check(&request)?;
    if !checked.ok {
        return Err(refuse(&name, &checked.findings, json, to));
    }
    if json {
        return report(&name, &checked.findings, to);
    }
    tell(&checked.findings);
    writeln!(
        to,
        "{name} is right for this router{}",
        warnings(&checked.findings)
    )?;
    Ok(())
}

/// `weir config schema`.
pub(crate) fn schema(to: &mut dyn Write) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(&weir_config::schema()).map_err(Failure::said)?;
    writeln!(to, "{text}")?;
    Ok(())
}
