//! The seal of a stored run: a CRC-32 over all of it, so that one flipped bit is found. It stands in the JSON itself,
//! where older versions overlook it: `{"sealed":true,…,"seal":"01234567"}`. The mark at the beginning says that there is one
//! at the end, so that a damaged seal is not taken for none.

/// How a sealed text begins.
const MARK: &[u8] = b"{\"sealed\":true,";
/// What stands before the checksum at the end.
const KEY: &[u8] = b",\"seal\":\"";
/// Bytes from the key to the end.
const TAIL: usize = KEY.len() + 8 + 2;

/// The JSON object with its seal.
pub fn add_seal(json: &[u8]) -> Vec<u8> {
    let Some(inner) = json.strip_prefix(b"{").and_then(|rest| rest.strip_suffix(b"}")) else {
        return json.to_vec();
    };
    let mut text = [MARK, inner].concat();
    let tail = seal_tail(&text);
    text.extend(tail);
    text
}

/// Whether the text is as it was sealed, or never was sealed.
pub fn is_seal_valid(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    let (before, end) = text.split_at(text.len().saturating_sub(TAIL));
    if !text.starts_with(MARK) && !end.starts_with(KEY) {
        return true;
    }
    end == seal_tail(before)
}

fn seal_tail(before: &[u8]) -> Vec<u8> {
    [KEY, format!("{:08x}", crc32fast::hash(before)).as_bytes(), b"\"}"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_of_a_sealed_text_breaks_the_json_or_the_seal() {
        let text = add_seal(br#"{"format":3,"run":"a"}"#);
        assert!(is_seal_valid(&text) && serde_json::from_slice::<serde_json::Value>(&text).is_ok());
        for bit in 0..text.len() * 8 {
            let mut damaged = text.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let is_json = serde_json::from_slice::<serde_json::Value>(&damaged).is_ok();
            assert!(!is_json || !is_seal_valid(&damaged), "bit {bit}");
        }
    }

    #[test]
    fn a_text_without_a_seal_holds() {
        for text in ["{}", "", "{\"format\":3}", "[]", "x"] {
            assert!(is_seal_valid(text.as_bytes()), "{text}");
        }
        assert!(is_seal_valid(&[add_seal(b"{\"a\":1}"), b"\n".to_vec()].concat()), "a line");
        assert_eq!(add_seal(b"[]"), b"[]");
    }
}
