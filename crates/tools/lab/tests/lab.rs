//! The lab as a whole: capture files read by other programs, runs through a test device.

mod lab {
    mod frames;
    mod imports;
    mod loops;
    mod search;
}
