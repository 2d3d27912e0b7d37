//! Answers to requests with a body, and to everything that changes the router.
//!
//! Bodies are read and bounded here; who asked goes along to the router. `http.rs` has already
//! made sure that the caller may do it, and logs it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::endpoints::Request;
use crate::endpoints::body::{bad, one_line, read, wait};
use crate::endpoints::look::{json, must_exist};
use crate::endpoints::parameters::{NoQuery, in_path, number_in_path, query};
use crate::{
    ApiError, ApplyRequest, CaptureRequest, CaptureStream, Clear, Cleared, ConfigText, DiffRequest,
    InterfacePatch, RollbackRequest, RouteChanges, Router, SflowPatch, TraceRequest,
};

type Text = Result<Vec<u8>, ApiError>;

const LONGEST_FILE_NAME: usize = 4096;
const LONGEST_COMMENT: usize = 1000;
const LONGEST_AUTHOR: usize = 100;

/// The answer to `DELETE /v1/trace`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct TraceCleared {
    /// Always `trace`.
    cleared: String,
}

pub(super) fn trace_add(router: &dyn Router, request: &Request) -> Text {
    query::<NoQuery>(request)?;
    let wanted: TraceRequest = read(
        request,
        "a trace request",
        r#"{"node": "ip4-input", "interface": "wan", "count": 10}; all keys are optional"#,
    )?;
    if wanted.count == 0 || wanted.count > TraceRequest::most_packets() {
        let message = format!("{} packets cannot be traced", wanted.count);
        return Err(bad(
            message,
            format!("count may be 1 to {}", TraceRequest::most_packets()),
        ));
    }
    must_exist(router, wanted.interface.as_deref())?;
    router.trace_add(&wanted)?;
    json(&wanted)
}

pub(super) fn trace_clear(router: &dyn Router, request: &Request) -> Text {
    query::<NoQuery>(request)?;
    router.trace_clear()?;
    json(&TraceCleared {
        cleared: "trace".to_owned(),
    })
}

/// A capture with every limit in its bounds.
pub(super) fn capture(router: &dyn Router, request: &Request) -> Result<CaptureStream, ApiError> {
    query::<NoQuery>(request)?;
    let example =
        r#"{"drop": true, "interface": "wan", "packets": 100}; of rx, tx and drop at least one"#;
    let wanted: CaptureRequest = read(request, "a capture", example)?;
    if !(wanted.rx || wanted.tx || wanted.drop) {
        return Err(bad(
            "a capture has at least one of `rx`, `tx` and `drop`",
            "say where to look",
        ));
    }
    if !wanted.reasons.is_empty() && !wanted.drop {
        return Err(bad("`reasons` are those of drops", "say `drop` too"));
    }
    if wanted.packets == Some(0) || wanted.milliseconds == Some(0) {
        return Err(bad(
            "a capture of nothing",
            "`packets` and `milliseconds` may be 1 or more",
        ));
    }
    if wanted
        .bytes
        .is_some_and(|bytes| bytes < CaptureRequest::LEAST_BYTES)
    {
        return Err(bad(
            "`bytes` has no room for a packet",
            format!("it may be {} or more", CaptureRequest::LEAST_BYTES),
        ));
    }
    let (least, most) = (CaptureRequest::LEAST_SNAP, CaptureRequest::MOST_SNAP);
    if wanted
        .snap_bytes
        .is_some_and(|snap| !(least..=most).contains(&snap))
    {
        return Err(bad(
            "`snap_bytes` is out of bounds",
            format!("it may be {least} to {most}"),
        ));
    }
    must_exist(router, wanted.interface.as_deref())?;
    router.capture(&wanted, &request.caller)
}

pub(super) fn capture_end(router: &dyn Router, request: &Request) -> Text {
    query::<NoQuery>(request)?;
    json(&router.capture_end(number_in_path(request, "capture")?)?)
}

fn file(request: &Request) -> Result<ConfigText, ApiError> {
    query::<NoQuery>(request)?;
    let text: ConfigText = read(
        request,
        "a configuration to look at",
        r#"{"yaml": "interfaces: {}", "file": "weir.yaml"}"#,
    )?;
    one_line("file", text.file.as_deref(), LONGEST_FILE_NAME)?;
    Ok(text)
}

pub(super) fn config_check(router: &dyn Router, request: &Request) -> Text {
    json(&router.config_check(&file(request)?)?)
}

pub(super) fn config_plan(router: &dyn Router, request: &Request) -> Text {
    json(&router.config_plan(&file(request)?)?)
}

pub(super) fn config_diff(router: &dyn Router, request: &Request) -> Text {
    query::<NoQuery>(request)?;
    let wanted: DiffRequest = read(
        request,
        "a comparison",
        r#"{"yaml": "interfaces: {}"} or {"revision": 17}"#,
    )?;
    if wanted.yaml.is_some() == wanted.revision.is_some() {
        return Err(bad(
            "a comparison has one of `yaml` and `revision`",
            "say which of the two to compare with what runs",
        ));
    }
    json(&router.config_diff(&wanted)?)
}

pub(super) fn config_apply(router: &dyn Router, request: &Request) -> Text {
    query::<NoQuery>(request)?;
    let example = r#"{"yaml": "interfaces: {}", "comment": "why", "confirm_seconds": 300}; only yaml is needed"#;
    let mut wanted: ApplyRequest = read(request, "a configuration to apply", example)?;
    one_line("file", wanted.file.as_deref(), LONGEST_FILE_NAME)?;
    one_line("comment", wanted.comment.as_deref(), LONGEST_COMMENT)?;
    one_line("author", wanted.author.as_deref(), LONGEST_AUTHOR)?;
    wait(wanted.confirm_seconds)?;
    wanted.author.get_or_insert_with(|| request.caller.author());
    json(&router.config_apply(&wanted, &request.caller)?)
}

pub(super) fn config_confirm(router: &dyn Router, request: &Request) -> Text {
    query::<NoQuery>(request)?;
    json(&router.config_confirm(&request.caller)?)
}

pub(super) fn config_rollback(router: &dyn Router, request: &Request) -> Text {
    query::<NoQuery>(request)?;
    let example = r#"{"revision": 17} or {"steps_back": 1}; all keys are optional"#;
    let mut wanted: RollbackRequest = read(request, "a rollback", example)?;
    if wanted.revision.is_some() && wanted.steps_back.is_some() {
        return Err(bad(
            "a rollback has at most one of `revision` and `steps_back`",
            "say one of the two",
        ));
    }
    if wanted.steps_back == Some(0) {
        return Err(bad(
            "no steps back is no rollback",
            "steps_back may be 1 or more",
        ));
    }
    one_line("comment", wanted.comment.as_deref(), LONGEST_COMMENT)?;
    one_line("author", wanted.author.as_deref(), LONGEST_AUTHOR)?;
    wait(wanted.confirm_seconds)?;
    wanted.author.get_or_insert_with(|| request.caller.author());
    json(&router.config_rollback(&wanted, &request.caller)?)
}

pub(super) fn routes_change(router: &dyn Router, request: &Request) -> Text {
    query::<NoQuery>(request)?;
    let example =
        r#"{"set": [{"prefix": "203.0.113.0/24", "paths": [{"next_hop": "192.0.2.1"}]}]}"#;
    let changes: RouteChanges = read(request, "a change of routes", example)?;
    let most = RouteChanges::MOST;
    if changes.set.len() + changes.delete.len() > most {
        return Err(bad(
            format!("the request has more than {most} routes"),
            "send them in several requests",
        ));
    }
    if changes.set.is_empty() && changes.delete.is_empty() && changes.resync.is_none() {
        return Err(bad(
            "the request changes nothing",
            "known: set, delete, resync",
        ));
    }
    json(&router.routes_change(&changes, &request.caller)?)
}

pub(super) fn sflow_patch(router: &dyn Router, request: &Request) -> Text {
    query::<NoQuery>(request)?;
    let patch: SflowPatch = read(
        request,
        "an edit of sFlow",
        r#"{"sampling_rate": 1000, "header_bytes": null}; null = the default"#,
    )?;
    if patch == SflowPatch::default() {
        return Err(bad(
            "the edit has no key",
            "known: sampling_rate, polling_interval_seconds, header_bytes",
        ));
    }
    json(&router.sflow_patch(&patch, &request.caller)?)
}

pub(super) fn interface_patch(router: &dyn Router, request: &Request) -> Text {
    query::<NoQuery>(request)?;
    let patch: InterfacePatch = read(
        request,
        "an edit of an interface",
        r#"{"state": "up", "mtu": null}; null = the default"#,
    )?;
    if patch == InterfacePatch::default() {
        return Err(bad(
            "the edit has no key",
            "known: sflow, state, mtu, description",
        ));
    }
    let name = in_path(request)?;
    must_exist(router, Some(name))?;
    json(&router.interface_patch(name, &patch, &request.caller)?)
}

fn clear(router: &dyn Router, request: &Request, what: Clear) -> Text {
    query::<NoQuery>(request)?;
    router.clear(what)?;
    json(&Cleared { cleared: what })
}

pub(super) fn clear_interfaces(router: &dyn Router, request: &Request) -> Text {
    clear(router, request, Clear::Interfaces)
}

pub(super) fn clear_runtime(router: &dyn Router, request: &Request) -> Text {
    clear(router, request, Clear::Runtime)
}

pub(super) fn clear_errors(router: &dyn Router, request: &Request) -> Text {
    clear(router, request, Clear::Errors)
}
