//! tap
