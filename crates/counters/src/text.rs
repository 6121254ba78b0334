//! Parsing of the kernel's text files in one pass, without copies.

/// The number of digits of a number that always fits into 64 bits.
const FEW: usize = 19;

/// Parses the next decimal number and returns it with the text after it. Blanks before the number are skipped.
#[inline]
pub(super) fn parse_number(text: &[u8]) -> Option<(u64, &[u8])> {
    let mut start = 0;
    while matches!(text.get(start)?, b' ' | b'\t' | b'\n') {
        start += 1;
    }
    let (mut value, mut end) = (0u64, start);
    while let Some(digit) = text.get(end).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10) {
        // A number that is too long wraps here, and is parsed again below.
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        end += 1;
    }
    match end - start {
        0 => None,
        1..=FEW => Some((value, &text[end..])),
        _ => Some((std::str::from_utf8(&text[start..end]).ok()?.parse().ok()?, &text[end..])),
    }
}

/// The highest bit of each of eight bytes.
const HIGHEST: u64 = 0x8080_8080_8080_8080;

/// The text after `words` words. It tests eight bytes at once. Byte by byte, the processor would mispredict a branch at the
/// end of each word, and a line of `/proc/PID/stat` has ten words before the page faults.
#[inline]
pub(super) fn skip_words(text: &[u8], words: usize) -> Option<&[u8]> {
    if words == 0 {
        return Some(text);
    }
    // The text counts as preceded by a blank, so that a blank at its beginning does not end a word.
    let (mut left, mut before) = (words as u32, 0x80);
    for at in (0..text.len()).step_by(8) {
        let blanks = equal_bytes_mask(load_eight_bytes(text, at), b' ');
        let mut ends = blanks & !((blanks << 8) | before);
        before = blanks >> 56;
        if ends.count_ones() < left {
            left -= ends.count_ones();
            continue;
        }
        for _ in 1..left {
            ends &= ends - 1;
        }
        return text.get(at + ends.trailing_zeros() as usize / 8..);
    }
    None
}

/// The last position of a byte, which must not be zero.
#[inline]
pub(super) fn last_position(text: &[u8], byte: u8) -> Option<usize> {
    (0..text.len()).step_by(8).fold(None, |last, at| {
        match equal_bytes_mask(load_eight_bytes(text, at), byte) {
            0 => last,
            equal => Some(at + 7 - equal.leading_zeros() as usize / 8),
        }
    })
}

/// Eight bytes from position `at`, the first one lowest; zeroes beyond the end.
#[inline]
fn load_eight_bytes(text: &[u8], at: usize) -> u64 {
    let left = text.len() - at;
    match (text[at..].first_chunk(), text.last_chunk()) {
        (Some(eight), _) => u64::from_le_bytes(*eight),
        (None, Some(last)) => u64::from_le_bytes(*last) >> (8 * (8 - left)),
        (None, None) => text[at..].iter().rfold(0, |eight, byte| (eight << 8) | u64::from(*byte)),
    }
}

/// A mask with the highest bit of each byte that equals `byte`.
#[inline]
fn equal_bytes_mask(eight: u64, byte: u8) -> u64 {
    let differs = eight ^ u64::from_ne_bytes([byte; 8]);
    !(((differs & !HIGHEST) + !HIGHEST) | differs) & HIGHEST
}

/// The number after `words` words.
pub(super) fn nth_number(text: &[u8], words: usize) -> Option<u64> {
    Some(parse_number(skip_words(text, words)?)?.0)
}

/// The rest of the first line that begins with `start`.
#[inline]
pub(super) fn rest_of_line<'a>(mut text: &'a [u8], start: &[u8]) -> Option<&'a [u8]> {
    loop {
        if let Some(rest) = text.strip_prefix(start) {
            return Some(first_position(rest, b'\n').map_or(rest, |end| &rest[..end]));
        }
        text = skip_line(text)?;
    }
}

/// The text after the end of this line.
#[inline]
pub(super) fn skip_line(text: &[u8]) -> Option<&[u8]> {
    Some(&text[first_position(text, b'\n')? + 1..])
}

/// The first position of a byte, which must not be zero.
#[inline]
fn first_position(text: &[u8], byte: u8) -> Option<usize> {
    let at =
        (0..text.len()).step_by(8).find(|at| equal_bytes_mask(load_eight_bytes(text, *at), byte) != 0)?;
    Some(at + equal_bytes_mask(load_eight_bytes(text, at), byte).trailing_zeros() as usize / 8)
}

/// A number of seconds with two decimals, as in `/proc/uptime`, in hundredths of a second.
pub(super) fn parse_hundredths(text: &[u8]) -> Option<(u64, &[u8])> {
    let (seconds, rest) = parse_number(text)?;
    let (hundredths, rest) = parse_number(rest.strip_prefix(b".")?)?;
    Some((seconds.checked_mul(100)?.checked_add(hundredths)?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_are_parsed() {
        assert_eq!(parse_number(b"  17 x"), Some((17, &b" x"[..])));
        assert_eq!(parse_number(b"x"), None);
        assert_eq!(parse_number(b""), None);
        assert_eq!(parse_number(b"99999999999999999999"), None, "more than 64 bits");
        assert_eq!(parse_number(b"18446744073709551615 "), Some((u64::MAX, &b" "[..])), "and just those");
        assert_eq!(parse_number(b"000000000000000000000000001"), Some((1, &b""[..])));
        assert_eq!(nth_number(b"a bc 3 4", 2), Some(3));
        assert_eq!(nth_number(b"a bc", 2), None);
    }

    #[test]
    fn the_first_and_last_positions_of_a_byte_are_found() {
        let text = b"17 (a) S 9\n(b) R 1 2 \xa9 3";
        for end in 0..text.len() {
            for byte in *b")( \xa9" {
                let text = &text[..end];
                assert_eq!(
                    first_position(text, byte),
                    text.iter().position(|its| *its == byte),
                    "{text:?} {byte}"
                );
                assert_eq!(
                    last_position(text, byte),
                    text.iter().rposition(|its| *its == byte),
                    "{text:?} {byte}"
                );
            }
        }
    }

    #[test]
    fn skipping_words_equals_skipping_byte_by_byte() {
        let slowly = |text: &[u8], words: usize| {
            let mut at = 0;
            for _ in 0..words {
                at += text[at..].iter().position(|byte| *byte != b' ')?;
                at += text[at..].iter().position(|byte| *byte == b' ')?;
            }
            Some(text[at..].to_vec())
        };
        let texts: [&[u8]; 8] = [
            b"",
            b" ",
            b"one",
            b" S 1 22 333 4444 55555 666666 7777777 88888888 999999999 0",
            b"12345678 12345678 ",
            b"  several   blanks  between \x80\xa0\xff and behind  ",
            b"1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17",
            b"aaaaaaa bbbbbbb ccccccc ",
        ];
        for text in texts {
            for start in 0..text.len() {
                for words in 0..20 {
                    let text = &text[start..];
                    assert_eq!(
                        skip_words(text, words).map(<[u8]>::to_vec),
                        slowly(text, words),
                        "{text:?} {words}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_line_is_found_by_its_beginning() {
        assert_eq!(rest_of_line(b"cpu 1\ncpu0 2\n", b"cpu0 "), Some(&b"2"[..]));
        assert_eq!(rest_of_line(b"cpu 1\n", b"cpu1 "), None);
        assert_eq!(rest_of_line(b"a much longer line\nand the last", b"and "), Some(&b"the last"[..]));
        assert_eq!(rest_of_line(b"", b"x"), None);
    }

    #[test]
    fn seconds_are_parsed_in_hundredths() {
        assert_eq!(parse_hundredths(b"12.05 30.99\n").map(|(value, _)| value), Some(1205));
        assert_eq!(parse_hundredths(b"12 30").map(|(value, _)| value), None);
    }
}
