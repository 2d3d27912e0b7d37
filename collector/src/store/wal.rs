//! The write-ahead log: batches that are not in a Parquet file yet.
//!
//! A segment is a file of frames: magic, length, CRC-32, and one Arrow IPC stream. A segment that was cut anywhere gives back
//! every whole frame. A failed write is taken back, so that later frames stay readable.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::arrow::ipc::writer::StreamWriter;

use super::StoreError;

const MAGIC: [u8; 4] = *b"WRW1";
/// Bytes of a frame that is believed; a batch of a fifth of a second is far below.
const MOST_FRAME: u32 = 1 << 30;

/// A segment that is being written.
#[derive(Debug)]
pub(super) struct Segment {
    path: PathBuf,
    file: File,
    length: u64,
    dirty: bool,
}

impl Segment {
    pub(super) fn create(folder: &Path, id: &str) -> Result<Segment, StoreError> {
        let path = folder.join(format!("{id}.wal"));
        let file = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(true)
            .open(&path)
            .map_err(StoreError::io(&path))?;
        Ok(Segment {
            path,
            file,
            length: 0,
            dirty: false,
        })
    }

    /// Appends a batch; after an error the segment is as before.
    pub(super) fn append(&mut self, batch: &RecordBatch) -> Result<(), StoreError> {
        let mut frame = vec![0; 12];
        {
            let mut writer = StreamWriter::try_new(&mut frame, &batch.schema())?;
            writer.write(batch)?;
            writer.finish()?;
        }
        let (head, payload) = frame.split_at_mut(12);
        let length =
            u32::try_from(payload.len()).map_err(|_| StoreError::FrameTooLarge(payload.len()))?;
        head[..4].copy_from_slice(&MAGIC);
        head[4..8].copy_from_slice(&length.to_be_bytes());
        head[8..].copy_from_slice(&crc32fast::hash(payload).to_be_bytes());
        if let Err(error) = self.file.write_all(&frame) {
            self.file
                .set_len(self.length)
                .and_then(|()| self.file.seek(SeekFrom::Start(self.length)))
                .map_err(StoreError::io(&self.path))?;
            return Err(StoreError::io(&self.path)(error));
        }
        self.length += frame.len() as u64;
        self.dirty = true;
        Ok(())
    }

    /// Makes durable what was appended.
    pub(super) fn sync(&mut self) -> Result<(), StoreError> {
        if self.dirty {
            self.file.sync_data().map_err(StoreError::io(&self.path))?;
            self.dirty = false;
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub(super) fn bytes(&self) -> u64 {
        self.length
    }
}

/// What a segment gave back.
pub(super) struct Recovered {
    pub(super) batches: Vec<RecordBatch>,
    /// Bytes behind the last whole frame.
    pub(super) torn: u64,
}

/// Reads a segment up to the first frame that is not whole.
pub(super) fn read(path: &Path) -> Result<Recovered, StoreError> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|mut file| file.read_to_end(&mut bytes))
        .map_err(StoreError::io(path))?;
    let mut rest = bytes.as_slice();
    let mut batches = Vec::new();
    while let Some((payload, behind)) = frame(rest) {
        let Ok(reader) = StreamReader::try_new(payload, None) else {
            break;
        };
        let Ok(mut read) = reader.collect::<Result<Vec<_>, _>>() else {
            break;
        };
        batches.append(&mut read);
        rest = behind;
    }
    Ok(Recovered {
        batches,
        torn: rest.len() as u64,
    })
}

/// The payload of the first frame and what is behind it; `None` when it is not whole.
fn frame(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<12>()?;
    let [a, b, c, d, l0, l1, l2, l3, c0, c1, c2, c3] = *head;
    let length = u32::from_be_bytes([l0, l1, l2, l3]);
    if [a, b, c, d] != MAGIC || length > MOST_FRAME {
        return None;
    }
    let (payload, behind) = rest.split_at_checked(length as usize)?;
    (crc32fast::hash(payload) == u32::from_be_bytes([c0, c1, c2, c3])).then_some((payload, behind))
}
