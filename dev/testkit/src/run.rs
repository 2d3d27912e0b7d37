//! Runs a scenario and says how the router's actions differ from what was written.
//!
//! The order is that of the script. Before each paragraph the clock goes there in steps of the control
//! side's own interval, and at each step the router breathes until nothing moves; frames that arrive
//! together are handed over in one vector. What leaves is compared port by port, in order, octet by
//! octet; its time may be one step later than written, since what waits is looked at that often.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use serde_json::Value;
use weir_config::{Config, check};
use weir_engine::{Options, Router, Trial};

use crate::port::Ports;
use crate::script::{Action, Event, Frame, Script, Time};
use crate::{captures, counters, differ};

/// How often the control side looks at what ages.
const STEP: Time = 100_000_000;
/// More turns than anything takes at one time.
const MOST_TURNS: usize = 10_000;
/// Buffers for a scenario that does not say how many.
const BUFFERS: u32 = 1024;
/// Differences reported of one scenario.
const MOST_REPORTED: usize = 12;

/// A scenario's folder, read.
#[derive(Debug)]
pub struct Scenario {
    /// Where it lies.
    pub folder: PathBuf,
    /// What happens.
    pub script: Script,
    config: Config,
}

/// A frame that left.
struct Left {
    time: Time,
    port: String,
    bytes: Vec<u8>,
}

impl Scenario {
    /// Reads a folder.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(folder: &Path) -> Result<Scenario, String> {
        let text = read(&folder.join("packets.txt"))?;
        let script = Script::parse(&text).map_err(|error| format!("packets.txt: {error}"))?;
        Ok(Scenario {
            folder: folder.to_owned(),
            script,
            config: config(folder, "weir.yaml")?,
        })
    }

    /// Runs it. With `rewrite`, `counters.json` becomes what was counted.
    ///
    /// # Errors
    /// Everything that was not as written, for people.
    pub fn run(&self, rewrite: bool) -> Result<(), String> {
        let mut wrong = captures::differences(&self.folder, &self.script)?;
        if !wrong.is_empty() {
            wrong.push("`cargo xtask scenario make` makes captures from packets.txt".to_owned());
        }
        let ports = Ports::default();
        let opener = ports.clone();
        let trial = Trial::new(move |device| opener.open(device));
        let router = Router::start(&self.config, &Options::on_trial(&trial))
            .map_err(|error| format!("the router does not start: {error}"))?;
        let mut stage = Stage {
            ports,
            trial,
            router: router.clone(),
            now: 0,
            left: Vec::new(),
        };
        let played = stage.play(self);
        let counted = counters::of(&router);
        router.stop();
        wrong.extend(played.err());
        wrong.extend(balance(&router));
        wrong.extend(self.compare_frames(&stage.left));
        wrong.extend(self.compare_counters(&counted?, rewrite)?);
        if wrong.is_empty() {
            return Ok(());
        }
        let more = wrong.len().saturating_sub(MOST_REPORTED);
        wrong.truncate(MOST_REPORTED);
        if more > 0 {
            wrong.push(format!("… and {more} more"));
        }
        Err(wrong.join("\n"))
    }

    fn compare_frames(&self, left: &[Left]) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut expected: BTreeMap<&str, VecDeque<(Time, &Frame, &Event)>> = BTreeMap::new();
        for (time, frame, event) in self.script.frames(false) {
            let queue = expected.entry(&frame.port).or_default();
            queue.extend(std::iter::repeat_n((time, frame, event), frame.times));
        }
        for frame in left {
            let wanted = expected
                .get_mut(frame.port.as_str())
                .and_then(VecDeque::pop_front);
            wrong.extend(compare(wanted, frame));
        }
        for (_, frame, event) in expected.into_values().flatten() {
            wrong.push(format!(
                "{}: never left: {} (line {})",
                frame.port, event.sentence, event.line
            ));
        }
        wrong
    }

    fn compare_counters(&self, counted: &Value, rewrite: bool) -> Result<Vec<String>, String> {
        let path = self.folder.join("counters.json");
        if rewrite {
            let text =
                serde_json::to_string_pretty(counted).map_err(|error| error.to_string())? + "\n";
            std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
            return Ok(Vec::new());
        }
        let expected = serde_json::from_str(&read(&path)?)
            .map_err(|error| format!("counters.json: {error}"))?;
        Ok(counters::differences(&expected, counted))
    }
}

/// What is wrong with a frame that left.
fn compare(wanted: Option<(Time, &Frame, &Event)>, frame: &Left) -> Option<String> {
    let at = frame.time as f64 / 1e9;
    let Some((time, expected, event)) = wanted else {
        return Some(format!(
            "{}: left at {at} s, unexpected:\n{}",
            frame.port,
            differ::dump(&frame.bytes)
        ));
    };
    let place = format!("{}: {} (line {})", frame.port, event.sentence, event.line);
    if expected.bytes != frame.bytes {
        return Some(format!(
            "{place}\n{}",
            differ::explain(expected, &frame.bytes)
        ));
    }
    let late = frame.time.abs_diff(time) > STEP;
    late.then(|| {
        format!(
            "{place}: left at {at} s, expected at {} s",
            time as f64 / 1e9
        )
    })
}

fn balance(router: &Router) -> Option<String> {
    let totals = router.balance();
    let entered = totals.packets_in + totals.originated + totals.replicated;
    let left =
        totals.packets_out + totals.drops.values().sum::<u64>() + totals.consumed + totals.held;
    (entered != left).then(|| {
        format!("packets were lost or made up: {entered} in, {left} accounted for: {totals:?}")
    })
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn config(folder: &Path, file: &str) -> Result<Config, String> {
    let text = read(&folder.join(file))?;
    let reported = |findings: Vec<weir_config::Diagnostic>| {
        findings
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("\n")
    };
    let (mut config, _) = check(file, &text).map_err(reported)?;
    let buffers = config
        .buffers
        .per_numa
        .map_or(BUFFERS, |it| it.min(BUFFERS));
    config.buffers.per_numa = Some(buffers);
    Ok(config)
}

/// A router at work.
struct Stage {
    ports: Ports,
    trial: Trial,
    router: Router,
    now: Time,
    left: Vec<Left>,
}

impl Stage {
    fn play(&mut self, scenario: &Scenario) -> Result<(), String> {
        self.settle()?;
        let mut events = scenario.script.events.iter().peekable();
        while let Some(event) = events.next() {
            self.advance(event.time)
                .map_err(|error| format!("line {}: {error}", event.line))?;
            let done = match &event.action {
                Action::In(frame) => self.bring(frame),
                Action::Out(_) => continue,
                Action::Link { port, up } => self.set_link(port, *up),
                Action::Apply(file) => self.apply(&scenario.folder, file),
                Action::Wait => Ok(()),
            };
            done.map_err(|error| format!("line {}: {error}", event.line))?;
            // Frames that come together wait for each other.
            if !events
                .peek()
                .is_some_and(|next| next.action.frame().is_some_and(|frame| frame.together))
            {
                self.settle()
                    .map_err(|error| format!("line {}: {error}", event.line))?;
            }
        }
        let stuck = self.ports.stuck();
        if stuck.is_empty() {
            Ok(())
        } else {
            Err(format!("frames were not taken in at {}", stuck.join(", ")))
        }
    }

    fn bring(&mut self, frame: &Frame) -> Result<(), String> {
        (0..frame.times).try_for_each(|_| self.ports.bring(&frame.port, &frame.bytes))
    }

    /// The control side sees it with its next look at links.
    fn set_link(&mut self, port: &str, up: bool) -> Result<(), String> {
        self.ports.set_link(port, up)
    }

    fn apply(&mut self, folder: &Path, file: &str) -> Result<(), String> {
        self.router
            .apply(&config(folder, file)?)
            .map(|_| ())
            .map_err(|error| error.to_string())
    }

    fn advance(&mut self, to: Time) -> Result<(), String> {
        while self.now < to {
            self.now = to.min(self.now + STEP);
            self.trial.set_time(self.now);
            self.settle()?;
        }
        Ok(())
    }

    /// Lets happen what follows at this time, and takes what left.
    fn settle(&mut self) -> Result<(), String> {
        for _ in 0..MOST_TURNS {
            if !self.router.breathe() {
                let (time, left) = (self.now, self.ports.take_left());
                self.left.extend(
                    left.into_iter()
                        .map(|(port, bytes)| Left { time, port, bytes }),
                );
                return Ok(());
            }
        }
        Err(format!(
            "the router does not come to rest within {MOST_TURNS} turns"
        ))
    }
}
