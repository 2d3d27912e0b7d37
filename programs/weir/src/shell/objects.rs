//! Names that exist: interfaces, nodes and prefixes of the running router, for Tab, `?` and
//! shortened words.
//!
//! A person at a keyboard must not wait: the router has [`PATIENCE`] to answer, and what it said is
//! good for [`FRESH`]. The question is asked on a thread of its own; an answer that comes too late
//! is there at the next key, and while one is waited for, no second one is asked. An answer that is
//! older than [`STALE`] is none.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use clap::Arg;
use weir_api::{Client, ClientError, FibSummary, Revision};

use super::tree::Known;
use crate::cli::Where;
use crate::cli::kind::{Kind, Source};

const PATIENCE: Duration = Duration::from_millis(200);
const FRESH: Duration = Duration::from_secs(1);
const STALE: Duration = Duration::from_secs(60);

/// So many names are kept of each kind: a router with more has other troubles than Tab.
const MOST: usize = 20_000;

/// A name, and a few words about what has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Object {
    /// The name.
    pub(crate) name: String,
    /// A few words; may be empty.
    pub(crate) about: String,
}

impl Object {
    fn new(name: impl Into<String>, about: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            about: about.into(),
        }
    }
}

/// The names of one router's things. A clone knows the same.
#[derive(Clone)]
pub(crate) struct Objects {
    router: Where,
    asking: Arc<AtomicBool>,
    answers: Answers,
}

type Answers = Arc<Mutex<HashMap<Source, Answer>>>;

/// What is known of one source.
#[derive(Default)]
struct Answer {
    /// When it was asked for last, answered or not.
    asked: Option<Instant>,
    cached: Option<(Instant, Vec<Object>)>,
}

fn locked(answers: &Mutex<HashMap<Source, Answer>>) -> MutexGuard<'_, HashMap<Source, Answer>> {
    answers.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Objects {
    /// Those of a router. Nothing is asked before the first question.
    pub(crate) fn new(router: Where) -> Self {
        Self {
            router,
            asking: Arc::default(),
            answers: Answers::default(),
        }
    }

    /// What exists at a source; nothing when the router does not answer in time.
    pub(crate) fn list(&self, source: Source) -> Vec<Object> {
        match source {
            Source::Interfaces
            | Source::Nodes
            | Source::AccessLists
            | Source::Prefixes
            | Source::Revisions => self.ask_router(source),
            Source::BenchCases => weir_bench::Case::ALL
                .iter()
                .map(|case| Object::new(case.name(), case.about()))
                .collect(),
            Source::Reasons => weir_graph::DropReason::ALL
                .iter()
                .map(|it| Object::new(it.name(), it.sentence()))
                .collect(),
            Source::Files | Source::Folders | Source::Nothing => Vec::new(),
        }
    }

    fn ask_router(&self, source: Source) -> Vec<Object> {
        // A question without an answer counts, too: the next key shall not wait again.
        let lately = locked(&self.answers)
            .get(&source)
            .and_then(|answer| answer.asked)
            .is_some_and(|asked| asked.elapsed() < FRESH);
        if !lately {
            self.ask(source);
        }
        let answers = locked(&self.answers);
        let cached = answers
            .get(&source)
            .and_then(|answer| answer.cached.as_ref())
            .filter(|(when, _)| when.elapsed() < STALE);
        cached
            .map(|(_, objects)| objects.clone())
            .unwrap_or_default()
    }

    /// Asks, and waits a little.
    fn ask(&self, source: Source) {
        let Ok(client) = self.router.client() else {
            return;
        };
        if self.asking.swap(true, Ordering::AcqRel) {
            return;
        }
        locked(&self.answers).entry(source).or_default().asked = Some(Instant::now());
        let (done, finished) = mpsc::channel::<()>();
        let (asking, answers) = (Arc::clone(&self.asking), Arc::clone(&self.answers));
        let asked = thread::Builder::new()
            .name("names".to_owned())
            .spawn(move || {
                let objects = read(&client, source).ok();
                // A router that does not answer has no names, whatever it had.
                locked(&answers).entry(source).or_default().cached =
                    objects.map(|objects| (Instant::now(), objects));
                asking.store(false, Ordering::Release);
                drop(done);
            });
        match asked {
            // The end of the thread is the message.
            Ok(_) => drop(finished.recv_timeout(PATIENCE)),
            Err(_) => self.asking.store(false, Ordering::Release),
        }
    }
}

impl Known for Objects {
    fn exists(&self, argument: &Arg, value: &str) -> bool {
        Kind::of(argument).is_some_and(|kind| {
            self.list(kind.source)
                .iter()
                .any(|object| object.name == value)
        })
    }
}

fn is_large(summary: &FibSummary) -> bool {
    let counts = summary
        .tables
        .iter()
        .flat_map(|table| &table.routes)
        .map(|routes| routes.count);
    counts.sum::<u64>() > MOST as u64
}

fn read(client: &Client, source: Source) -> Result<Vec<Object>, ClientError> {
    let mut objects: Vec<Object> = match source {
        Source::Interfaces => {
            let interfaces = client.interfaces(None)?.interfaces;
            interfaces
                .into_iter()
                .map(|interface| {
                    Object::new(interface.name, interface.description.unwrap_or_default())
                })
                .collect()
        }
        Source::AccessLists => {
            let mut names: Vec<String> = client
                .acls(None, None)?
                .terms
                .into_iter()
                .map(|term| term.acl)
                .collect();
            names.dedup();
            names
                .into_iter()
                .map(|name| Object::new(name, ""))
                .collect()
        }
        Source::Nodes => {
            let workers = client.runtime()?.workers;
            let mut names: Vec<String> = workers
                .into_iter()
                .flat_map(|worker| worker.nodes)
                .map(|node| node.name)
                .collect();
            // A router tells the nodes that did something; those of this version may be waited for.
            let graph = weir_nodes::graph(weir_nodes::IcmpLimit::default());
            names.extend(graph.specs().iter().map(|spec| spec.name.to_owned()));
            names.sort_unstable();
            names.dedup();
            let nodes = names.into_iter().map(|name| Object::new(name, ""));
            std::iter::once(Object::new("any", "from reception on"))
                .chain(nodes)
                .collect()
        }
        // A full table is nothing to choose from, and too much to ask for at a key.
        Source::Prefixes if client.fib_summary().is_ok_and(|summary| is_large(&summary)) => {
            Vec::new()
        }
        Source::Prefixes => {
            let routes = client.routes(None, None)?.routes;
            routes
                .into_iter()
                .take(MOST)
                .map(|route| Object::new(route.prefix.to_string(), route.source.to_string()))
                .collect()
        }
        Source::Revisions => {
            let revisions = client.config_history(None, None)?.revisions;
            let about = |revision: &Revision| {
                format!("{} {} {}", revision.time, revision.author, revision.comment)
            };
            revisions
                .iter()
                .map(|revision| {
                    Object::new(revision.revision.to_string(), about(revision).trim_end())
                })
                .collect()
        }
        _ => Vec::new(),
    };
    objects.truncate(MOST);
    Ok(objects)
}
