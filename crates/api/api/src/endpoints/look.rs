//! Answers that change nothing: they ask the router, narrow its reply down to what was asked for,
//! and write JSON.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::endpoints::Request;
use crate::endpoints::parameters::{
    AclsQuery, BridgeQuery, ErrorsQuery, FlowsQuery, HistoryQuery, InterfacesQuery, L2fibAsked,
    LogQuery, MplsFibQuery, NeighborsQuery, NoQuery, OfInterfaceQuery, RoutesQuery, number_in_path,
    place, query,
};
use crate::{
    AclQuery, AclTermKey, AdjacencyQuery, ApiError, Destinations, DropCounter, ErrorCode, Errors,
    InterfaceQuery, L2fibKey, L2fibQuery, NeighborKey, NeighborQuery, Page, RouteKey, RouteQuery,
    Router, WhyRequest,
};

type Text = Result<Vec<u8>, ApiError>;

pub(super) fn json(value: &impl Serialize) -> Text {
    let mut text = serde_json::to_vec(value).map_err(|error| {
        ApiError::new(
            ErrorCode::Internal,
            format!("the reply cannot be written as JSON: {error}"),
            "",
        )
    })?;
    text.push(b'\n');
    Ok(text)
}

/// Refuses names that no interface has, so that a typing error is not answered by an empty list.
pub(super) fn must_exist(router: &dyn Router, name: Option<&str>) -> Result<(), ApiError> {
    let Some(name) = name else { return Ok(()) };
    let all = router.interfaces()?.interfaces;
    if all.iter().any(|interface| interface.name == name) {
        return Ok(());
    }
    Err(ApiError::unknown(
        "interface",
        name,
        all.iter().map(|interface| interface.name.as_str()),
    ))
}

/// Cuts a list of at most `limit` + 1 entries to `limit`, and says where it goes on.
fn cut<T, K: ToString>(
    entries: &mut Vec<T>,
    limit: usize,
    key: impl Fn(&T) -> K,
) -> Option<String> {
    let more = entries.len() > limit;
    entries.truncate(limit);
    entries
        .last()
        .filter(|_| more)
        .map(|last| key(last).to_string())
}

pub(super) fn version(router: &dyn Router, request: &Request) -> Text {
    query::<NoQuery>(request)?;
    json(&router.version()?)
}

pub(super) fn system(router: &dyn Router, request: &Request) -> Text {
    query::<NoQuery>(request)?;
    json(&router.system()?)
}

pub(super) fn log(router: &dyn Router, request: &Request) -> Text {
    let asked: LogQuery = query(request)?;
    let bus = router
        .events()
        .ok_or_else(|| ApiError::not_available("the log"))?;
    json(&bus.log(asked.limit()?, asked.level))
}

pub(super) fn interfaces(router: &dyn Router, request: &Request) -> Text {
    let asked: InterfacesQuery = query(request)?;
    let limit = asked.limit()?;
    if let Some(name) = asked.name {
        let mut part = router.interfaces()?;
        let found = part
            .interfaces
            .iter()
            .position(|interface| interface.name == name);
        let known = || {
            part.interfaces
                .iter()
                .map(|interface| interface.name.as_str())
        };
        let place = found.ok_or_else(|| ApiError::unknown("interface", &name, known()))?;
        part.interfaces = vec![part.interfaces.swap_remove(place)];
        return json(&Page { part, next: None });
    }
    let mut part = router.interfaces_where(&InterfaceQuery {
        after: asked.after,
        most: limit + 1,
    })?;
    let next = cut(&mut part.interfaces, limit, |interface| interface.index);
    json(&Page { part, next })
}

pub(super) fn hardware(router: &dyn Router, request: &Request) -> Text {
    let OfInterfaceQuery { interface } = query(request)?;
    must_exist(router, interface.as_deref())?;
    let mut reply = router.hardware()?;
    reply.ports.retain(|port| {
        interface
            .as_ref()
            .is_none_or(|name| *name == port.interface)
    });
    json(&reply)
}

pub(super) fn rx_placement(router: &dyn Router, request: &Request) -> Text {
    let OfInterfaceQuery { interface } = query(request)?;
    must_exist(router, interface.as_deref())?;
    let mut reply = router.rx_placement()?;
    reply.queues.retain(|queue| {
        interface
            .as_ref()
            .is_none_or(|name| *name == queue.interface)
    });
    json(&reply)
}

pub(super) fn linux(router: &dyn Router, request: &Request) -> Text {
    query::<NoQuery>(request)?;
    json(&router.linux()?)
}

pub(super) fn bonds(router: &dyn Router, request: &Request) -> Text {
    let OfInterfaceQuery { interface } = query(request)?;
    must_exist(router, interface.as_deref())?;
    let mut reply = router.bonds()?;
    reply.bonds.retain(|bond| {
        interface
            .as_ref()
            .is_none_or(|name| *name == bond.interface)
    });
    json(&reply)
}

pub(super) fn features(router: &dyn Router, request: &Request) -> Text {
    let OfInterfaceQuery { interface } = query(request)?;
    must_exist(router, interface.as_deref())?;
    let mut reply = router.features()?;
    reply
        .interfaces
        .retain(|it| interface.as_ref().is_none_or(|name| *name == it.interface));
    json(&reply)
}

pub(super) fn pseudowires(router: &dyn Router, request: &Request) -> Text {
    let OfInterfaceQuery { interface } = query(request)?;
    must_exist(router, interface.as_deref())?;
    let mut reply = router.pseudowires()?;
    reply
        .pseudowires
        .retain(|it| interface.as_ref().is_none_or(|name| *name == it.interface));
    json(&reply)
}

pub(super) fn vxlan_tunnels(router: &dyn Router, request: &Request) -> Text {
    let OfInterfaceQuery { interface } = query(request)?;
    must_exist(router, interface.as_deref())?;
    let mut reply = router.vxlan_tunnels()?;
    reply.tunnels.retain(|tunnel| {
        interface
            .as_ref()
            .is_none_or(|name| *name == tunnel.interface)
    });
    json(&reply)
}

pub(super) fn memif(router: &dyn Router, request: &Request) -> Text {
    let OfInterfaceQuery { interface } = query(request)?;
    must_exist(router, interface.as_deref())?;
    let mut reply = router.memif()?;
    reply.ports.retain(|port| {
        interface
            .as_ref()
            .is_none_or(|name| *name == port.interface)
    });
    json(&reply)
}

pub(super) fn bridge_domains(router: &dyn Router, request: &Request) -> Text {
    let BridgeQuery { bridge } = query(request)?;
    let mut reply = router.bridge_domains()?;
    reply
        .bridges
        .retain(|it| bridge.as_ref().is_none_or(|name| *name == it.name));
    match bridge {
        Some(name) if reply.bridges.is_empty() => Err(no_bridge(&name)),
        _ => json(&reply),
    }
}

fn no_bridge(name: &str) -> ApiError {
    ApiError::new(
        ErrorCode::NotFound,
        format!("there is no bridge domain \"{name}\""),
        "`weir show bridge-domain` lists them",
    )
}

pub(super) fn l2fib(router: &dyn Router, request: &Request) -> Text {
    let asked: L2fibAsked = query(request)?;
    let limit = asked.limit()?;
    let after = place::<L2fibKey>(asked.after.as_deref())?;
    if let Some(name) = &asked.bridge
        && !router
            .bridge_domains()?
            .bridges
            .iter()
            .any(|it| it.name == *name)
    {
        return Err(no_bridge(name));
    }
    let mut part = router.l2fib_where(&L2fibQuery {
        bridge: asked.bridge,
        after,
        most: limit + 1,
    })?;
    let next = cut(&mut part.stations, limit, |station| L2fibKey::from(station));
    json(&Page { part, next })
}

pub(super) fn runtime(router: &dyn Router, request: &Request) -> Text {
    query::<NoQuery>(request)?;
    json(&router.runtime()?)
}

pub(super) fn errors(router: &dyn Router, request: &Request) -> Text {
    let ErrorsQuery {
        interface,
        by_worker,
    } = query(request)?;
    must_exist(router, interface.as_deref())?;
    let mut reply = router.errors()?;
    reply
        .errors
        .retain(|error| interface.is_none() || error.interface == interface);
    if !by_worker {
        reply = summed_over_workers(reply);
    }
    json(&reply)
}

pub(crate) fn summed_over_workers(errors: Errors) -> Errors {
    let mut sums: BTreeMap<_, DropCounter> = BTreeMap::new();
    for error in errors.errors {
        let place = (
            error.node.clone(),
            error.reason.clone(),
            error.interface.clone(),
        );
        match sums.get_mut(&place) {
            Some(sum) => sum.count = sum.count.saturating_add(error.count),
            None => {
                sums.insert(
                    place,
                    DropCounter {
                        worker: None,
                        ..error
                    },
                );
            }
        }
    }
    Errors {
        errors: sums.into_values().collect(),
    }
}

pub(super) fn neighbors(router: &dyn Router, request: &Request) -> Text {
    let asked: NeighborsQuery = query(request)?;
    let limit = asked.limit()?;
    let after = place::<NeighborKey>(asked.after.as_deref())?;
    must_exist(router, asked.interface.as_deref())?;
    let mut part = router.neighbors_where(&NeighborQuery {
        interface: asked.interface,
        after,
        most: limit + 1,
    })?;
    let next = cut(&mut part.neighbors, limit, |neighbor| {
        NeighborKey::from(neighbor)
    });
    json(&Page { part, next })
}

pub(super) fn adjacencies(router: &dyn Router, request: &Request) -> Text {
    let asked: NeighborsQuery = query(request)?;
    let limit = asked.limit()?;
    let after = place::<u32>(asked.after.as_deref())?;
    must_exist(router, asked.interface.as_deref())?;
    let mut part = router.adjacencies_where(&AdjacencyQuery {
        interface: asked.interface,
        after,
        most: limit + 1,
    })?;
    let next = cut(&mut part.adjacencies, limit, |it| it.number);
    json(&Page { part, next })
}

pub(super) fn acls(router: &dyn Router, request: &Request) -> Text {
    let asked: AclsQuery = query(request)?;
    let limit = asked.limit()?;
    let after = place::<AclTermKey>(asked.after.as_deref())?;
    must_exist(router, asked.interface.as_deref())?;
    let mut part = router.acls_where(&AclQuery {
        acl: asked.acl,
        interface: asked.interface,
        after,
        most: limit + 1,
    })?;
    let next = cut(&mut part.terms, limit, |term| AclTermKey::from(term));
    json(&Page { part, next })
}

pub(super) fn routes(router: &dyn Router, request: &Request) -> Text {
    let asked: RoutesQuery = query(request)?;
    let limit = asked.limit()?;
    let after = place::<RouteKey>(asked.after.as_deref())?;
    let destinations = asked
        .prefix
        .as_deref()
        .map_or(Ok(Destinations::All), destinations)?;
    let mut part = router.routes_where(&RouteQuery {
        table: asked.table,
        family: asked.family,
        destinations,
        after,
        most: limit + 1,
    })?;
    let next = cut(&mut part.routes, limit, |route| RouteKey::from(route));
    json(&Page { part, next })
}

fn destinations(text: &str) -> Result<Destinations, ApiError> {
    if let Ok(address) = text.parse() {
        return Ok(Destinations::LongestMatch(address));
    }
    text.parse().map(Destinations::Prefix).map_err(|_| {
        let message = format!("\"{text}\" is neither a prefix nor an address");
        ApiError::new(
            ErrorCode::BadRequest,
            message,
            "a prefix is written as 192.0.2.0/24, an address as 192.0.2.7",
        )
    })
}

pub(super) fn mpls_fib(router: &dyn Router, request: &Request) -> Text {
    let asked: MplsFibQuery = query(request)?;
    let limit = asked.limit()?;
    let after = place::<u32>(asked.after.as_deref())?;
    let mut part = router.mpls_fib(asked.label()?, after, limit + 1)?;
    let next = cut(&mut part.labels, limit, |entry| entry.label);
    json(&Page { part, next })
}

pub(super) fn fib_summary(router: &dyn Router, request: &Request) -> Text {
    query::<NoQuery>(request)?;
    json(&router.fib_summary()?)
}

pub(super) fn buffers(router: &dyn Router, request: &Request) -> Text {
    query::<NoQuery>(request)?;
    json(&router.buffers()?)
}

pub(super) fn ipfix(router: &dyn Router, request: &Request) -> Text {
    query::<NoQuery>(request)?;
    json(&router.ipfix()?)
}

pub(super) fn flows(router: &dyn Router, request: &Request) -> Text {
    let asked = query::<FlowsQuery>(request)?.read()?;
    must_exist(router, asked.interface.as_deref())?;
    json(&router.flows_where(&asked)?)
}

pub(super) fn sflow(router: &dyn Router, request: &Request) -> Text {
    query::<NoQuery>(request)?;
    json(&router.sflow()?)
}

pub(super) fn why(router: &dyn Router, request: &Request) -> Text {
    let asked: WhyRequest = query(request)?;
    json(&router.why(&asked)?)
}

pub(super) fn trace(router: &dyn Router, request: &Request) -> Text {
    query::<NoQuery>(request)?;
    json(&router.trace()?)
}

pub(super) fn captures(router: &dyn Router, request: &Request) -> Text {
    query::<NoQuery>(request)?;
    json(&router.captures()?)
}

pub(super) fn totals(router: &dyn Router, request: &Request) -> Text {
    query::<NoQuery>(request)?;
    json(&router.totals()?)
}

pub(super) fn config(router: &dyn Router, request: &Request) -> Text {
    query::<NoQuery>(request)?;
    json(&router.config()?)
}

pub(super) fn config_dump(router: &dyn Router, request: &Request) -> Text {
    query::<NoQuery>(request)?;
    json(&router.config_dump()?)
}

pub(super) fn config_schema(router: &dyn Router, request: &Request) -> Text {
    query::<NoQuery>(request)?;
    json(&router.config_schema()?)
}

pub(super) fn config_history(router: &dyn Router, request: &Request) -> Text {
    let asked: HistoryQuery = query(request)?;
    let limit = asked.limit()?;
    let mut history = router.config_history(limit + 1, asked.before()?)?;
    let more = history.revisions.len() > limit;
    history.revisions.truncate(limit);
    history.next = history
        .revisions
        .last()
        .filter(|_| more)
        .map(|last| last.revision);
    json(&history)
}

pub(super) fn config_revision(router: &dyn Router, request: &Request) -> Text {
    query::<NoQuery>(request)?;
    json(&router.config_revision(number_in_path(request, "revision")?)?)
}

pub(super) fn metrics(router: &dyn Router, request: &Request) -> Text {
    query::<NoQuery>(request)?;
    crate::metrics::of(router).map(String::into_bytes)
}

pub(super) fn openapi(_: &dyn Router, request: &Request) -> Text {
    query::<NoQuery>(request)?;
    json(&crate::openapi::document())
}
