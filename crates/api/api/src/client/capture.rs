//! A capture as an iterator over its pieces, as they come.

use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::runtime::Runtime;

use crate::client::ClientError;

/// A capture: pcapng in pieces. Ends when the capture does, when the router stops, and after an error.
/// A capture of nothing says nothing, for as long as it likes.
#[derive(Debug)]
pub struct CapturePieces {
    /// The capture's number, by which [`Client::capture_end`](crate::Client::capture_end) ends it.
    pub number: u64,
    pub(super) router: String,
    pub(super) runtime: Runtime,
    /// Nothing after the end.
    pub(super) body: Option<Incoming>,
}

impl Iterator for CapturePieces {
    type Item = Result<Vec<u8>, ClientError>;

    fn next(&mut self) -> Option<Self::Item> {
        let body = self.body.as_mut()?;
        match self.runtime.block_on(body.frame()) {
            Some(Ok(frame)) => Some(Ok(frame.into_data().unwrap_or_default().to_vec())),
            Some(Err(error)) => {
                self.body = None;
                Some(Err(ClientError::Broken {
                    router: self.router.clone(),
                    reason: error.to_string(),
                }))
            }
            None => {
                self.body = None;
                None
            }
        }
    }
}
