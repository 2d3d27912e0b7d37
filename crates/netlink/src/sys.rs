//! The kernel calls of this crate for which neither std nor rustix has a safe form.
//!
//! Kept small: leaving and entering namespaces, preparing a child between fork and exec. Every
//! function is safe to call; the blocks say why.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;

use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// Puts the calling thread into a new network namespace of its own.
pub(crate) fn leave_network_namespace() -> io::Result<()> {
    // SAFETY: `unshare_unsafe` is unsafe because of CLONE_FILES, which would take descriptors from
    // under other threads; CLONE_NEWNET alone touches no descriptor and no memory.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.map_err(io::Error::from)
}

/// Moves the calling thread into a network namespace.
pub(crate) fn enter(namespace: BorrowedFd<'_>) -> io::Result<()> {
    move_into_link_name_space(namespace, Some(LinkNameSpaceType::Network)).map_err(io::Error::from)
}

/// Lets the child of `command` enter the namespace and die with its parent `parent`.
pub(crate) fn enter_before_exec(command: &mut Command, namespace: Arc<OwnedFd>, parent: u32) {
    let prepare = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have died before the line above; then nobody would send the signal.
        let living = getppid().map(|pid| pid.as_raw_nonzero().get().cast_unsigned());
        if living != Some(parent) {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        enter(namespace.as_fd())
    };
    // SAFETY: `pre_exec` demands a closure that is fit for the child of a fork in a threaded
    // process: it makes three system calls without a libc lock, allocates nothing (errors are bare
    // numbers), and the descriptor it uses is owned by the closure, hence open in the child.
    unsafe { command.pre_exec(prepare) };
}
