//! The last part of an id as a number.

use super::Axis;

/// The number in `256KiB`, `1.5MiB`, `64`, or `all`, which stands for `cpus`. `None` for any other text, which is no
/// point of a curve.
pub(super) fn read(text: &str, axis: Axis, cpus: u64) -> Option<u64> {
    match axis {
        Axis::Bytes(_) => parse_size(text),
        Axis::Mebibytes(_) => parse_digits(text)?.checked_mul(1 << 20),
        Axis::Count(_) if text == "all" => Some(cpus).filter(|&cpus| cpus > 0),
        Axis::Others(_) if text == "all" => cpus.checked_sub(1),
        Axis::Count(_) | Axis::Others(_) => parse_digits(text),
    }
}

/// Digits only: "inf" and "+1" would parse as numbers too.
fn parse_digits(text: &str) -> Option<u64> {
    text.chars().all(|c| c.is_ascii_digit()).then(|| text.parse().ok())?
}

/// The bytes in `64KiB`, `1.5MiB`; `None` for any other text.
pub fn parse_size(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 5] = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40), ("B", 0)];
    let (digits, shift) = UNITS.iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, shift)))?;
    let plain = digits.chars().all(|c| c.is_ascii_digit() || c == '.');
    let number: f64 = plain.then(|| digits.parse().ok())??;
    Some((number * (1u64 << shift) as f64).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_their_unit() {
        let sizes =
            [("0KiB", 0), ("512B", 512), ("256KiB", 256 << 10), ("1.5MiB", 3 << 19), ("1GiB", 1 << 30)];
        for (text, bytes) in sizes {
            assert_eq!(read(text, Axis::Bytes("size"), 2), Some(bytes), "{text}");
        }
        for text in ["", "KiB", "256", "64KB", "infKiB", "-1KiB", "1e3KiB", "8MiB-unguarded"] {
            assert_eq!(read(text, Axis::Bytes("size"), 2), None, "{text}");
        }
    }

    #[test]
    fn numbers_are_read_and_all_is_as_many_as_there_are() {
        assert_eq!(read("64", Axis::Mebibytes("memory"), 2), Some(64 << 20));
        assert_eq!(read("64", Axis::Count("processes"), 2), Some(64));
        assert_eq!(read("all", Axis::Count("processes"), 2), Some(2));
        assert_eq!(read("all", Axis::Count("processes"), 0), None);
        assert_eq!(read("all", Axis::Others("readers"), 8), Some(7));
        for text in ["inf", "+1", "all", "2x", ""] {
            assert_eq!(read(text, Axis::Mebibytes("memory"), 2), None, "{text}");
        }
    }
}
