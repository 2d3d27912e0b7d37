//! `weir lab report`: a page from results.

use std::io::Write;
use std::path::Path;

use weir_lab::report::{Report, compare, page};

use crate::cli::ReportArgs;
use crate::failure::Failure;

pub(super) fn execute(args: &ReportArgs, json: bool, to: &mut dyn Write) -> Result<(), Failure> {
    let mut all = Report {
        title: args.title.clone(),
        ..Report::default()
    };
    for path in &args.files {
        let wrong =
            |error: &dyn std::fmt::Display| Failure::said(format!("{}: {error}", path.display()));
        let bytes = std::fs::read(path).map_err(|error| wrong(&error))?;
        let report: Report = serde_json::from_slice(&bytes).map_err(|error| wrong(&error))?;
        if all.environment.is_empty() {
            all.environment = report.environment;
        }
        // Runs of one device at different times are compared too: the file tells them apart.
        let known: Vec<_> = all
            .tests
            .iter()
            .map(|test| (test.device.clone(), test.traffic.clone()))
            .collect();
        all.tests.extend(report.tests.into_iter().map(|mut test| {
            if known.contains(&(test.device.clone(), test.traffic.clone())) {
                let file = path.file_stem().unwrap_or(path.as_os_str());
                test.device = format!("{} ({})", test.device, file.to_string_lossy());
            }
            test
        }));
    }
    save(&args.output, &all)?;
    if json {
        let text = serde_json::json!({ "report": args.output, "comparisons": compare(&all) });
        writeln!(
            to,
            "{}",
            serde_json::to_string_pretty(&text).map_err(Failure::said)?
        )?;
    } else {
        for comparison in compare(&all) {
            writeln!(to, "{}", comparison.verdict)?;
        }
        writeln!(to, "written: {}", args.output.display())?;
    }
    Ok(())
}

/// Writes the page.
pub(super) fn save(path: &Path, report: &Report) -> Result<(), Failure> {
    std::fs::write(path, page(report))
        .map_err(|error| Failure::said(format!("{}: {error}", path.display())))
}
