//! The XDP host path against the real kernel: programs by BPF_PROG_TEST_RUN, and the daemon between network
//! namespaces. Needs root; says so and passes where it cannot run.

mod bed;
mod forwarding;
mod model;
mod object;
mod programs;
mod rules;
mod scale;
mod services;
