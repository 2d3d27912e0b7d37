//! Files of [`Output`]: checked, compared, replaced, and put back.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Output;
use crate::Error;
use crate::apply::write;

/// How a file stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The file.
    pub file: PathBuf,
    /// Lines that go (`-`) and come (`+`); empty when the file is right.
    pub lines: Vec<String>,
}

/// Compares what should be with what is there.
///
/// # Errors
/// When a file cannot be read.
pub fn compare(all: &[Output]) -> Result<Vec<Change>, Error> {
    all.iter()
        .map(|it| {
            let before = read(&it.file)?.unwrap_or_default();
            Ok(Change {
                file: it.file.clone(),
                lines: difference(&before, &it.text),
            })
        })
        .collect()
}

/// Checks a text by the program that it is for; `None` = the program is not installed, or there is none.
///
/// # Errors
/// What the program says against it.
pub fn check(output: &Output) -> Result<Option<()>, Error> {
    let Some((program, arguments)) = output.check.split_first() else {
        return Ok(None);
    };
    let mut file = std::env::temp_dir();
    file.push(format!(
        "weir-output-{}-{}",
        std::process::id(),
        output.name
    ));
    let failed = |source| Error::File {
        path: file.display().to_string(),
        source,
    };
    // A name that nobody else made: the folder is everybody's.
    let _ = std::fs::remove_file(&file);
    std::fs::File::create_new(&file).map_err(failed)?;
    std::fs::write(&file, &output.text).map_err(failed)?;
    let name = file.display().to_string();
    let arguments = arguments
        .iter()
        .map(|it| if *it == "{}" { name.as_str() } else { it });
    let result = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output();
    let _ = std::fs::remove_file(&file);
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error)),
        Ok(result) if result.status.success() => Ok(Some(())),
        Ok(result) => Err(Error::Format {
            path: output.file.display().to_string(),
            reason: format!(
                "{program} refuses it: {} {}",
                String::from_utf8_lossy(&result.stdout).trim(),
                String::from_utf8_lossy(&result.stderr).trim()
            ),
        }),
    }
}

/// Checks all, then replaces those that differ; what was there lies beside it as `.before`. Files that were replaced
/// are put back when one cannot be.
///
/// # Errors
/// When one is refused, or cannot be written; all are as before then.
pub fn replace(all: &[Output]) -> Result<Vec<PathBuf>, Error> {
    for it in all {
        check(it)?;
    }
    let mut done: Vec<PathBuf> = Vec::new();
    for it in all {
        match replace_one(it) {
            Ok(true) => done.push(it.file.clone()),
            Ok(false) => {}
            Err(error) => {
                for file in &done {
                    restore(file)?;
                }
                return Err(error);
            }
        }
    }
    Ok(done)
}

fn replace_one(output: &Output) -> Result<bool, Error> {
    let before = read(&output.file)?;
    if before.as_ref() == Some(&output.text) {
        return Ok(false);
    }
    if let Some(folder) = output.file.parent() {
        std::fs::create_dir_all(folder).map_err(|source| Error::File {
            path: folder.display().to_string(),
            source,
        })?;
    }
    // An empty one says that there was no file.
    write(&before_name(&output.file), &before.unwrap_or_default())?;
    write(&output.file, &output.text)?;
    Ok(true)
}

/// Puts the files back that the last [`replace`] replaced; those that had no change stay.
///
/// # Errors
/// When a file cannot be written.
pub fn undo(all: &[Output]) -> Result<Vec<PathBuf>, Error> {
    let mut done = Vec::new();
    for it in all {
        if restore(&it.file)? {
            done.push(it.file.clone());
        }
    }
    Ok(done)
}

fn restore(file: &Path) -> Result<bool, Error> {
    let before = before_name(file);
    let Some(text) = read(&before)? else {
        return Ok(false);
    };
    let failed = |source| Error::File {
        path: file.display().to_string(),
        source,
    };
    if text.is_empty() {
        match std::fs::remove_file(file) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
    } else {
        write(file, &text)?;
    }
    std::fs::remove_file(&before).map_err(failed)?;
    Ok(true)
}

fn before_name(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".before");
    PathBuf::from(name)
}

fn read(file: &Path) -> Result<Option<String>, Error> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::File {
            path: file.display().to_string(),
            source,
        }),
    }
}

/// Lines that only one of two texts has, in their order: enough to see what changes.
fn difference(before: &str, after: &str) -> Vec<String> {
    let count = |text: &str| {
        let mut lines: std::collections::BTreeMap<String, i64> = std::collections::BTreeMap::new();
        for line in text.lines() {
            *lines.entry(line.to_owned()).or_default() += 1;
        }
        lines
    };
    let only = |of: &str, other: &str, sign: char| {
        let mut others = count(other);
        let mut all = Vec::new();
        for line in of.lines() {
            match others.get_mut(line) {
                Some(left) if *left > 0 => *left -= 1,
                _ => all.push(format!("{sign}{line}")),
            }
        }
        all
    };
    let mut all = only(before, after, '-');
    all.extend(only(after, before, '+'));
    all
}
