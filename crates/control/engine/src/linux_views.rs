//! What the API says about Linux.

use std::sync::atomic::Ordering;

use weir_api::{
    LinuxAudit, LinuxBmp, LinuxBmpPeer, LinuxBmpSession, LinuxCount, LinuxFeed, LinuxFpm,
    LinuxInterface, LinuxPunt, LinuxRefused,
};
use weir_control::RouteSource;
use weir_port::host::HostClass;

use weir_bmp::routes::Monitored;

use crate::control::Control;

impl Control {
    pub(crate) fn linux_view(&self) -> weir_api::Linux {
        let linux = &self.config.linux;
        let kernel = RouteSource::Kernel as usize;
        let routes = self.routing.iter().flatten();
        let routes = routes.map(|table| table.counts().iter().map(|of| of[kernel]).sum::<u64>());
        let counters = &self.linux.counters;
        weir_api::Linux {
            namespace: linux.namespace.clone(),
            interfaces: linux
                .interfaces
                .keys()
                .map(|name| self.linux_interface_view(name))
                .collect(),
            feed: self.linux_feed_view(),
            fpm: self.linux_fpm_view(),
            bmp: self.linux_bmp_view(),
            convergence: self.linux.convergence.views(),
            audit: LinuxAudit {
                audits: counters.audits,
                healed: counters.healed,
                stale: counters.stale,
                set_back: counters.set_back,
                routes: routes.sum(),
            },
            refused: self
                .linux
                .refused
                .iter()
                .map(|it| LinuxRefused {
                    object: it.object.clone(),
                    error: it.error.to_string(),
                })
                .collect(),
        }
    }

    fn linux_interface_view(&self, name: &str) -> LinuxInterface {
        let number = self.index_of(name);
        let index = self.linux.link_of(number);
        let punt = self.linux.hosts.get(name).map(|host| {
            let of_class = |class: &HostClass| {
                let (passed, policed) = host.counts(*class);
                LinuxPunt {
                    punt_class: class.name().into(),
                    limit: class.rate(),
                    passed,
                    policed,
                }
            };
            HostClass::ALL.iter().map(of_class).collect()
        });
        LinuxInterface {
            interface: name.to_owned(),
            name: self.config.linux.name_of(name).unwrap_or(name).to_owned(),
            index,
            trouble: self.linux.trouble_of(name),
            followed_table: self.linux.followed.tables.get(name).copied(),
            followed_addresses: self
                .linux
                .followed
                .addresses_of(name)
                .iter()
                .map(ToString::to_string)
                .collect(),
            punt: punt.unwrap_or_default(),
        }
    }

    fn linux_feed_view(&self) -> Option<LinuxFeed> {
        let feed = self.linux.feed.as_ref()?;
        let counters = feed.counters();
        let of_feed = counters.refused();
        let of_routes = &self.linux.counters.refused;
        let refused = of_feed.iter().chain(of_routes);
        Some(LinuxFeed {
            messages: counters.messages.load(Ordering::Relaxed),
            updates: counters.updates.load(Ordering::Relaxed),
            applied: self.linux.counters.applied,
            waiting: feed.waiting() as u64,
            buffer_bytes: counters.buffer_bytes.load(Ordering::Relaxed) as u64,
            overruns: counters.overruns.load(Ordering::Relaxed),
            resyncs: counters.resyncs.load(Ordering::Relaxed),
            interrupted: counters.interrupted.load(Ordering::Relaxed),
            refused: refused
                .map(|(reason, count)| LinuxCount {
                    reason: (*reason).to_owned(),
                    count: *count,
                })
                .collect(),
        })
    }

    fn linux_fpm_view(&self) -> Option<LinuxFpm> {
        let wanted = self.config.linux.fpm.as_ref()?;
        let address = std::net::SocketAddr::from((wanted.address, wanted.port)).to_string();
        let Some(fpm) = &self.linux.fpm else {
            return Some(LinuxFpm {
                address,
                ..LinuxFpm::default()
            });
        };
        let counters = fpm.counters();
        Some(LinuxFpm {
            address,
            connected: counters.is_connected.load(Ordering::Relaxed),
            sessions: counters.sessions.load(Ordering::Relaxed),
            frames: counters.frames.load(Ordering::Relaxed),
            messages: counters.messages.load(Ordering::Relaxed),
            updates: counters.updates.load(Ordering::Relaxed),
            waiting: fpm.waiting() as u64,
            objects: counters.objects.load(Ordering::Relaxed),
            parked: self.linux.objects.parked() as u64,
            refused: counters
                .refused()
                .into_iter()
                .map(|(reason, count)| LinuxCount {
                    reason: reason.to_owned(),
                    count,
                })
                .collect(),
        })
    }

    fn linux_bmp_view(&self) -> Option<LinuxBmp> {
        let wanted = self.config.linux.bmp.as_ref()?;
        let mut view = LinuxBmp {
            address: std::net::SocketAddr::from((wanted.address, wanted.port)).to_string(),
            most_paths: wanted.paths.into(),
            ..LinuxBmp::default()
        };
        let Some(server) = &self.linux.bmp.server else {
            return Some(view);
        };
        let (status, peers) = (server.status(), server.routes().peers());
        let (paths, prefixes) = server.routes().counts();
        (view.paths, view.prefixes) = (paths as u64, prefixes as u64);
        view.begun = status.begun;
        view.messages = status.messages;
        (view.announced, view.withdrawn) = (status.announced, status.withdrawn);
        for (address, session) in &status.sessions {
            let its = peers
                .iter()
                .filter(|(number, _)| session.peers.contains(number));
            view.sessions.push(LinuxBmpSession {
                address: address.to_string(),
                name: session.name.clone(),
                messages: session.messages,
                peers: its
                    .map(|(_, peer)| LinuxBmpPeer {
                        address: peer.address,
                        as_number: peer.number,
                        table: match peer.table {
                            Monitored::PrePolicy => "pre-policy",
                            Monitored::PostPolicy => "post-policy",
                            Monitored::LocRib => "loc-rib",
                        }
                        .to_owned(),
                    })
                    .collect(),
            });
        }
        let refused = status.refused.into_iter();
        view.refused = refused
            .map(|(reason, count)| LinuxCount {
                reason: reason.to_owned(),
                count,
            })
            .collect();
        Some(view)
    }
}
