//! Sources of routes and their administrative distances.

/// Where a route comes from. The order is that of preference at equal distance and metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum RouteSource {
    /// An own address.
    Local,
    /// The configuration file.
    Static,
    /// The subnet of an own address.
    Connected,
    /// A client of the API.
    Api,
    /// FRR's zebra, by the forwarding plane manager protocol.
    Fpm,
    /// The Linux kernel, by netlink.
    Kernel,
    /// A neighbour on a link.
    Neighbor,
}

impl RouteSource {
    /// All of them.
    pub const ALL: [RouteSource; 7] = [
        RouteSource::Local,
        RouteSource::Static,
        RouteSource::Connected,
        RouteSource::Api,
        RouteSource::Fpm,
        RouteSource::Kernel,
        RouteSource::Neighbor,
    ];

    /// The administrative distance: the lowest wins. The routes of the kernel have one distance, whatever protocol
    /// they are of, because the daemons have chosen among them already, by metric.
    #[must_use]
    pub const fn distance(self) -> u8 {
        match self {
            RouteSource::Local => 0,
            RouteSource::Static => 1,
            RouteSource::Connected => 2,
            RouteSource::Api => 5,
            RouteSource::Fpm => 20,
            RouteSource::Kernel => 21,
            RouteSource::Neighbor => 255,
        }
    }

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            RouteSource::Local => "local",
            RouteSource::Static => "static",
            RouteSource::Connected => "connected",
            RouteSource::Api => "api",
            RouteSource::Fpm => "fpm",
            RouteSource::Kernel => "kernel",
            RouteSource::Neighbor => "neighbor",
        }
    }
}

/// What tells a route from the others of its prefix: its source and, as in Linux, its metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RouteId {
    /// Where it comes from.
    pub source: RouteSource,
    /// The lowest of a source wins.
    pub metric: u32,
}

impl RouteId {
    /// The lower, the better.
    pub(crate) fn rank(self) -> Rank {
        (self.source.distance(), self.metric, self.source)
    }
}

/// Distance, metric, source.
pub(crate) type Rank = (u8, u32, RouteSource);

impl From<RouteSource> for RouteId {
    fn from(source: RouteSource) -> RouteId {
        RouteId { source, metric: 0 }
    }
}
