//! pcap

pub mod file;
