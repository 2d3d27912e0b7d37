//! The feed with a socket buffer that is far too small: the kernel drops messages, and all tables are read again.
//!
//! Needs root for a network namespace, and iproute2.

use std::collections::HashMap;
use std::io::Write as _;
use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ipnet::IpNet;
use weir_control::RouteUpdate;
use weir_linux::feed::{Feed, FeedMessage};
use weir_netlink::lab::{has_program, preflight};
use weir_netlink::netns::NetNs;

const PATIENCE: Duration = Duration::from_secs(60);
/// Room for some two notifications.
const SMALL: usize = 2048;

/// Routes as a table of routes would keep them: by prefix, with the reading in which they were set last.
#[derive(Default)]
struct Kept {
    routes: HashMap<IpNet, u32>,
    reading: u32,
    ended: u32,
}

impl Kept {
    fn take(&mut self, message: FeedMessage) {
        match message {
            FeedMessage::Begin => self.reading += 1,
            FeedMessage::Routes(updates, _) => {
                for update in updates {
                    match update {
                        RouteUpdate::Set(route) => {
                            self.routes.insert(route.prefix, self.reading);
                        }
                        RouteUpdate::Remove { prefix, .. } => drop(self.routes.remove(&prefix)),
                    }
                }
            }
            FeedMessage::End(_) => {
                let reading = self.reading;
                self.routes.retain(|_, set_in| *set_in == reading);
                self.ended += 1;
            }
            FeedMessage::Objects(_) | FeedMessage::Labels(_) | FeedMessage::Others(_) => {}
        }
    }
}

/// `ip -batch` with these commands.
fn batch(namespace: &NetNs, commands: &str) {
    let mut command = namespace.command("ip");
    command.args(["-batch", "-"]).stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(commands.as_bytes()).unwrap();
    drop(input);
    assert!(child.wait().unwrap().success());
}

fn net(number: u32) -> IpNet {
    let address = std::net::Ipv4Addr::from(0x1400_0000 + (number << 8));
    ipnet::Ipv4Net::new(address, 24).unwrap().into()
}

fn routes(verb: &str, numbers: impl Iterator<Item = u32>) -> String {
    let line = |number| format!("route {verb} blackhole {} proto bird\n", net(number));
    numbers.map(line).collect()
}

#[test]
fn lost_messages_are_made_up_for_by_reading_all_tables() {
    if let Err(why) = preflight() {
        eprintln!("skipped: {why}");
        return;
    }
    if !has_program("ip") {
        eprintln!("skipped: iproute2 is not installed");
        return;
    }
    let namespace = NetNs::new().unwrap();
    batch(&namespace, &routes("add", 0..500));
    let feed = Feed::start(Some(&namespace), SMALL, || {}).unwrap();
    let mut kept = Kept::default();
    let began = Instant::now();
    while kept.ended == 0 {
        assert!(began.elapsed() < PATIENCE, "the tables were not read");
        feed.next()
            .into_iter()
            .for_each(|message| kept.take(message));
    }
    assert_eq!(kept.routes.len(), 500);
    // Nobody takes messages: the queue fills, then the socket's buffer.
    let (began, mut next) = (Instant::now(), 500);
    while feed.counters().overruns.load(Ordering::Relaxed) == 0 {
        assert!(began.elapsed() < PATIENCE, "nothing was lost");
        batch(&namespace, &routes("add", next..next + 500));
        next += 500;
        // With the buffer full the thread notices the loss when it may go on: it has room for one batch more.
        feed.next()
            .into_iter()
            .for_each(|message| kept.take(message));
    }
    // Of these the feed hears nothing, or only some: most of the kernel's messages are dropped.
    batch(&namespace, &routes("del", 0..400));
    let expected = next as usize - 400;
    let began = Instant::now();
    while kept.ended < 2 || kept.routes.len() != expected {
        assert!(
            began.elapsed() < PATIENCE,
            "{} of {expected} routes after {} readings",
            kept.routes.len(),
            kept.ended
        );
        match feed.next() {
            Some(message) => kept.take(message),
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    assert!((0..400).all(|number| !kept.routes.contains_key(&net(number))));
    assert!((400..next).all(|number| kept.routes.contains_key(&net(number))));
    assert!(feed.counters().resyncs.load(Ordering::Relaxed) >= 2);
}
