//! CRC-32 as in ISO 3309 and zlib: reflected polynomial 0xEDB88320.
//!
//! It tells a torn file from a whole one; it is no protection against forgery.

const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut value = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 {
                value >> 1 ^ 0xEDB8_8320
            } else {
                value >> 1
            };
            bit += 1;
        }
        table[byte] = value;
        byte += 1;
    }
    table
}

/// The checksum of `bytes`.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum, &byte| {
        sum >> 8 ^ TABLE[usize::from(sum as u8 ^ byte)]
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_check_value_of_the_catalogue() {
        assert_eq!(super::crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(super::crc32(b""), 0);
    }
}
