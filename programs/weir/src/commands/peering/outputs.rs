//! `weir peering outputs`, `import` and `looking-glass`.

use std::io::Write;
use std::net::TcpListener;

use weir_peering::glass::{Glass, serve};
use weir_peering::import::{Format, import as convert};
use weir_peering::outputs::{self, files};

use super::{daemon, load, refused};
use crate::cli::{
    ImportFormat, OutputsAction, PeeringGlassArgs, PeeringImportArgs, PeeringOutputsArgs,
};
use crate::failure::{CONFLICT, Failure};

pub(super) fn outputs(args: &PeeringOutputsArgs, to: &mut dyn Write) -> Result<(), Failure> {
    let of = load(&args.of)?;
    let config = super::router_config(&args.of)?;
    let all = outputs::all(&of.peering, &of.snapshot, &config).map_err(refused)?;
    if all.is_empty() {
        writeln!(to, "the section has no outputs")?;
    }
    match args.action {
        OutputsAction::Diff => {
            for it in &all {
                let checked = match files::check(it).map_err(refused)? {
                    Some(()) => "accepted by its program",
                    None => "not checked: its program is not installed, or has no check",
                };
                writeln!(to, "{} ({}): {checked}", it.file.display(), it.name)?;
            }
            for it in files::compare(&all).map_err(refused)? {
                for line in it.lines {
                    writeln!(to, "{}: {line}", it.file.display())?;
                }
            }
        }
        OutputsAction::Apply => {
            for file in files::replace(&all).map_err(refused)? {
                writeln!(to, "{} is written", file.display())?;
            }
        }
        OutputsAction::Undo => {
            for file in files::undo(&all).map_err(refused)? {
                writeln!(to, "{} is as it was before", file.display())?;
            }
        }
    }
    Ok(())
}

pub(super) fn import(args: &PeeringImportArgs, to: &mut dyn Write) -> Result<(), Failure> {
    let name = args.file.display().to_string();
    let text = std::fs::read_to_string(&args.file)
        .map_err(|error| Failure::said(format_args!("cannot read {name}: {error}")))?;
    let format = match args.format {
        ImportFormat::Kees => Format::Kees,
        ImportFormat::Pathvector => Format::Pathvector,
    };
    let section = convert(format, &name, &text, &args.at).map_err(refused)?;
    to.write_all(section.as_bytes())?;
    Ok(())
}

pub(super) fn looking_glass(args: &PeeringGlassArgs, to: &mut dyn Write) -> Result<(), Failure> {
    let own = daemon(&args.daemon);
    let summary = own.running().map_err(refused)?.ok_or_else(|| {
        Failure::Coded(
            CONFLICT,
            "no configuration was applied by `weir peering apply` yet".to_owned(),
        )
    })?;
    let listener = TcpListener::bind(args.listen)
        .map_err(|error| Failure::said(format_args!("{}: {error}", args.listen)))?;
    writeln!(
        to,
        "http://{}/",
        listener.local_addr().map_err(Failure::said)?
    )?;
    to.flush()?;
    serve(Glass::new(own.socket, summary), listener).map_err(Failure::said)
}
