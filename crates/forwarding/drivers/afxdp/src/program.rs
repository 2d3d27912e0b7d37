//! The XDP program of one device, and its map from queue to socket.
//!
//! The program is C (`bpf/redirect.c`), compiled once and committed. Each device gets an instance with
//! a map of its own, because the map's key is the queue's number alone. It is attached by a BPF link:
//! when the process ends, by `kill -9` too, the kernel detaches it.

use std::error::Error;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use aya::maps::XskMap;
use aya::programs::links::FdLink;
use aya::programs::{Xdp, XdpMode};
use aya::{Ebpf, EbpfLoader};

static OBJECT: &[u8] =
    aya::include_bytes_aligned!(concat!(env!("CARGO_MANIFEST_DIR"), "/bpf/redirect.o"));

/// How the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attachment {
    /// In the driver.
    Native,
    /// In the driver, with frames of several pieces: for MTUs beyond a page.
    NativePieces,
    /// In the network stack, for any device.
    Generic,
}

/// What went wrong, and the number the kernel gave for it.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub(crate) struct Failure {
    pub(crate) errno: Option<i32>,
    text: String,
}

impl Failure {
    fn new(error: &dyn Error) -> Failure {
        let mut errno = None;
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(inner) = source {
            let more = inner.to_string();
            if !text.contains(&more) {
                text = format!("{text}: {more}");
            }
            errno = errno.or_else(|| {
                inner
                    .downcast_ref::<io::Error>()
                    .and_then(io::Error::raw_os_error)
            });
            source = inner.source();
        }
        Failure { errno, text }
    }

    fn missing(what: &str) -> Failure {
        Failure {
            errno: None,
            text: format!("the built-in XDP object has no {what}"),
        }
    }
}

/// The program on a device. Dropping it takes it off.
pub(crate) struct Program {
    /// Keeps the map; goes after the link.
    ebpf: Ebpf,
    link: Option<FdLink>,
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program")
            .field("link", &self.link)
            .finish_non_exhaustive()
    }
}

impl Program {
    /// Loads the program for `queues` queues and attaches it to the device.
    pub(crate) fn attach(
        interface: u32,
        queues: u32,
        attachment: Attachment,
    ) -> Result<Program, Failure> {
        let mut ebpf = EbpfLoader::new()
            .map_max_entries("sockets", queues)
            .load(OBJECT)
            .map_err(|error| Failure::new(&error))?;
        let (name, mode) = match attachment {
            Attachment::Native => ("weir_redirect", XdpMode::Driver),
            Attachment::NativePieces => ("weir_redirect_frags", XdpMode::Driver),
            Attachment::Generic => ("weir_redirect", XdpMode::Skb),
        };
        let program = ebpf
            .program_mut(name)
            .ok_or_else(|| Failure::missing(name))?;
        let program: &mut Xdp = program.try_into().map_err(|error| Failure::new(&error))?;
        program.load().map_err(|error| Failure::new(&error))?;
        let id = program
            .attach_to_if_index(interface, mode)
            .map_err(|error| Failure::new(&error))?;
        let link = program
            .take_link(id)
            .map_err(|error| Failure::new(&error))?;
        // Kernels before 5.9 have no BPF link for XDP: the program would outlive a killed router.
        let link = FdLink::try_from(link).map_err(|error| Failure::new(&error))?;
        Ok(Program {
            ebpf,
            link: Some(link),
        })
    }

    /// From now on frames of `queue` go to `socket`.
    pub(crate) fn insert(&mut self, queue: u32, socket: BorrowedFd<'_>) -> Result<(), Failure> {
        let map = self
            .ebpf
            .map_mut("sockets")
            .ok_or_else(|| Failure::missing("sockets"))?;
        let mut map = XskMap::try_from(map).map_err(|error| Failure::new(&error))?;
        map.set(queue, socket.as_raw_fd(), 0)
            .map_err(|error| Failure::new(&error))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.link.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::Command;

    /// The committed object is what the source says, byte for byte where the same compiler is
    /// installed.
    #[test]
    fn the_committed_object_is_the_compiled_source() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/bpf");
        let installed = |program: &str| {
            Command::new(program)
                .arg("--version")
                .output()
                .is_ok_and(|output| output.status.success())
        };
        if !installed("clang-14") || !installed("llvm-strip-14") {
            let _ = writeln!(
                io::stderr(),
                "skipped: the XDP program is not compiled again without clang-14 and llvm-14 (apt install clang-14)"
            );
            return;
        }
        let object = std::env::temp_dir().join(format!("weir-redirect-{}.o", std::process::id()));
        let run = |command: &mut Command| assert!(command.status().unwrap().success());
        let prefix = format!("-fdebug-prefix-map={folder}=.");
        let arguments = [
            "-O2",
            "-g",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-target",
            "bpf",
            &prefix,
            "-c",
            "redirect.c",
            "-o",
        ];
        run(Command::new("clang-14")
            .current_dir(folder)
            .args(arguments)
            .arg(&object));
        run(Command::new("llvm-strip-14").arg("-g").arg(&object));
        let compiled = std::fs::read(&object).unwrap();
        std::fs::remove_file(&object).unwrap();
        assert!(
            compiled == OBJECT,
            "bpf/redirect.o is not what bpf/redirect.c compiles to: compile it again (its first lines say how)"
        );
    }
}
