//! `weir completions`: the scripts that make a shell ask `weir complete` at each Tab.
//!
//! The scripts know no words: those are in the table of commands, and the running router knows its
//! names. So a script written once stays right for later versions.

use std::io::Write;

use crate::cli::CompletionShell;
use crate::failure::Failure;

const BASH: &str = include_str!("completions/weir.bash");
const ZSH: &str = include_str!("completions/weir.zsh");
const FISH: &str = include_str!("completions/weir.fish");

/// Does it.
pub(crate) fn execute(shell: CompletionShell, to: &mut dyn Write) -> Result<(), Failure> {
    let script = match shell {
        CompletionShell::Bash => BASH,
        CompletionShell::Zsh => ZSH,
        CompletionShell::Fish => FISH,
    };
    Ok(to.write_all(script.as_bytes())?)
}
