//! memif ports: frames between two programs over memory that both map.

#![deny(unsafe_code)]

#[cfg(test)]
mod message;
