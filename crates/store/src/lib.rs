//! The configuration store: applied revisions on disk, whole after any crash.

#![forbid(unsafe_code)]
