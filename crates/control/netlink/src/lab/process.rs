//! Processes inside a lab: started, listened to, limited in time, and never left behind.
//!
//! Each process leads a process group of its own, so that what it starts dies with it: the group is
//! killed, by its number, when [`Running`] is dropped or its time has passed. Until the process has
//! been waited for, the kernel does not give its number to another one, so the kill cannot hit a
//! stranger. When we are killed ourselves, the kernel kills the process (`NetNs::command`).
//!
//! Two threads read standard output and standard error; each keeps at most 8 MiB.

use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use std::os::unix::process::CommandExt;

use rustix::process::{Pid, Signal, kill_process_group};

use super::interrupted;
use crate::error::{Error, Result};
use crate::netns::spawn_lasting;

/// What is kept of each of the two outputs.
const OUTPUT_LIMIT: usize = 8 * 1024 * 1024;
/// How long a process may take to end after SIGTERM or SIGINT before it is killed.
const GRACE: Duration = Duration::from_secs(3);
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// How a process ended.
#[derive(Debug, Clone)]
pub struct Finished {
    /// The exit status; death by signal when it was killed.
    pub status: ExitStatus,
    /// Standard output, at most 8 MiB; what is not UTF-8 is replaced.
    pub stdout: String,
    /// Standard error, likewise.
    pub stderr: String,
    /// It was killed because its time had passed.
    pub timed_out: bool,
}

impl Finished {
    /// True when the process ended by itself, with exit status 0.
    pub fn success(&self) -> bool {
        self.status.success() && !self.timed_out
    }
}

/// A process which is running; killed with its whole group when dropped.
#[derive(Debug)]
pub struct Running {
    asked: String,
    child: Child,
    stdout: Listener,
    stderr: Listener,
    ended: Option<ExitStatus>,
}

impl Running {
    pub(super) fn start(mut command: Command) -> Result<Self> {
        let asked = format!("run {}", command.get_program().to_string_lossy());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.process_group(0);
        let failed = |source: io::Error| Error::system(asked.clone(), source);
        let mut child = spawn_lasting(command).map_err(failed)?;
        let stdout = Listener::start(child.stdout.take());
        let stderr = Listener::start(child.stderr.take());
        Ok(Running {
            asked,
            child,
            stdout,
            stderr,
            ended: None,
        })
    }

    /// The number of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What the process has written to standard output so far.
    pub fn stdout_so_far(&self) -> String {
        self.stdout.text()
    }

    /// What the process has written to standard error so far.
    pub fn stderr_so_far(&self) -> String {
        self.stderr.text()
    }

    /// Waits until one of the outputs contains `text`: a server is ready, a capture has begun.
    pub fn wait_for_output(&mut self, text: &str, limit: Duration) -> Result<()> {
        let deadline = Instant::now() + limit;
        loop {
            let ended = self.poll()?.is_some();
            if self.stdout.text().contains(text) || self.stderr.text().contains(text) {
                return Ok(());
            }
            if ended {
                let why = format!("it ended without {text:?}: {}", self.stderr.text().trim());
                return Err(Error::invalid(self.asked.clone(), why));
            }
            if Instant::now() >= deadline {
                return Err(Error::TimedOut {
                    asked: self.asked.clone(),
                    after: limit,
                });
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Whether the process still runs.
    pub fn is_running(&mut self) -> Result<bool> {
        Ok(self.poll()?.is_none())
    }

    /// Waits for the end, or kills the process and its group when the time has passed.
    pub fn wait(mut self, limit: Duration) -> Result<Finished> {
        let ended = self.wait_until(Instant::now() + limit)?;
        self.finish(!ended)
    }

    /// Asks the process to end as Ctrl-C does (SIGINT: tcpdump, ping and iperf3 then print their
    /// summaries), and kills it when it has not after three seconds.
    pub fn interrupt(self) -> Result<Finished> {
        self.end_by(Signal::INT)
    }

    /// Asks the process to end (SIGTERM), and kills it when it has not after three seconds.
    pub fn stop(self) -> Result<Finished> {
        self.end_by(Signal::TERM)
    }

    fn end_by(mut self, signal: Signal) -> Result<Finished> {
        if self.poll()?.is_none() {
            self.signal(signal);
        }
        let ended = self.wait_until(Instant::now() + GRACE)?;
        self.finish(!ended)
    }

    fn poll(&mut self) -> Result<Option<ExitStatus>> {
        if self.ended.is_none() && self.has_ended()? {
            // Whatever the process left in its group goes before its number is given back.
            self.signal(Signal::KILL);
            let status = self.child.wait();
            self.ended = Some(status.map_err(|source| Error::system(self.asked.clone(), source))?);
        }
        Ok(self.ended)
    }

    /// Looks whether the process has ended, without taking its status (and number) away.
    fn has_ended(&self) -> Result<bool> {
        use rustix::process::{WaitId, WaitIdOptions, waitid};
        let Some(pid) = self.pid() else {
            return Ok(true);
        };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let answer = waitid(WaitId::Pid(pid), options);
        answer
            .map(|status| status.is_some())
            .map_err(|e| Error::system(self.asked.clone(), e))
    }

    fn wait_until(&mut self, deadline: Instant) -> Result<bool> {
        while self.poll()?.is_none() {
            if Instant::now() >= deadline {
                return Ok(false);
            }
            thread::sleep(POLL_INTERVAL);
        }
        Ok(true)
    }

    fn finish(mut self, timed_out: bool) -> Result<Finished> {
        let status = self.kill()?;
        Ok(Finished {
            status,
            stdout: self.stdout.finish(),
            stderr: self.stderr.finish(),
            timed_out,
        })
    }

    fn kill(&mut self) -> Result<ExitStatus> {
        if let Some(status) = self.ended {
            return Ok(status);
        }
        self.signal(Signal::KILL);
        let failed = |source: io::Error| Error::system(self.asked.clone(), source);
        let status = self.child.wait().map_err(failed)?;
        self.ended = Some(status);
        Ok(status)
    }

    /// Signals the group, as long as its leader has not been waited for.
    fn signal(&self, signal: Signal) {
        if let (None, Some(pid)) = (self.ended, self.pid()) {
            // It may have ended a moment ago: then there is nobody to tell.
            let _ = kill_process_group(pid, signal);
        }
    }

    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Nobody is left to hear of a failure; the process is gone or cannot be waited for.
        let _ = self.kill();
    }
}

/// A thread which reads one output of a process to its end.
#[derive(Debug)]
struct Listener {
    heard: Arc<Mutex<Vec<u8>>>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    fn start(source: Option<impl Read + Send + 'static>) -> Self {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let thread = source.and_then(|source| {
            let heard = Arc::clone(&heard);
            let reader = thread::Builder::new().name("weir-listener".to_owned());
            reader.spawn(move || listen(source, &heard)).ok()
        });
        Listener { heard, thread }
    }

    fn text(&self) -> String {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&heard).into_owned()
    }

    /// All that was written. The writers are dead by now, so the thread ends; unless one has left
    /// the group (a daemon) and holds the output still: it is not waited for.
    fn finish(&mut self) -> String {
        let deadline = Instant::now() + GRACE;
        while self
            .thread
            .as_ref()
            .is_some_and(|thread| !thread.is_finished())
        {
            if Instant::now() >= deadline {
                break;
            }
            thread::sleep(POLL_INTERVAL);
        }
        self.thread = None;
        self.text()
    }
}

fn listen(mut source: impl Read, heard: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 8192];
    loop {
        match source.read(&mut buffer) {
            Ok(0) => return,
            Ok(length) => {
                let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
                let room = OUTPUT_LIMIT.saturating_sub(heard.len());
                heard.extend_from_slice(buffer.get(..length.min(room)).unwrap_or_default());
            }
            Err(error) if interrupted(&error) => (),
            Err(_) => return,
        }
    }
}
