//! Numbers in what the kernel writes, found in one pass and without a copy.

/// The digits of a number that may not fit: 19 always do.
const FEW: usize = 19;

/// The next decimal number and what follows it; blanks before it are skipped.
#[inline]
pub(super) fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let mut start = 0;
    while matches!(text.get(start)?, b' ' | b'\t' | b'\n') {
        start += 1;
    }
    let (mut value, mut end) = (0u64, start);
    while let Some(digit) = text.get(end).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10) {
        // A digit more than fits wraps, and is found below.
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        end += 1;
    }
    match end - start {
        0 => None,
        1..=FEW => Some((value, &text[end..])),
        _ => Some((std::str::from_utf8(&text[start..end]).ok()?.parse().ok()?, &text[end..])),
    }
}

/// Leaves out so many words.
#[inline]
pub(super) fn after_words(text: &[u8], words: usize) -> Option<&[u8]> {
    let mut at = 0;
    for _ in 0..words {
        while *text.get(at)? == b' ' {
            at += 1;
        }
        while *text.get(at)? != b' ' {
            at += 1;
        }
    }
    Some(&text[at..])
}

/// The number after so many words.
pub(super) fn nth(text: &[u8], words: usize) -> Option<u64> {
    Some(number(after_words(text, words)?)?.0)
}

/// The rest of the line that begins with this.
pub(super) fn line<'a>(text: &'a [u8], start: &[u8]) -> Option<&'a [u8]> {
    text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(start))
}

/// A number of seconds with two decimals, as in `/proc/uptime`: hundredths of a second.
pub(super) fn hundredths(text: &[u8]) -> Option<(u64, &[u8])> {
    let (seconds, rest) = number(text)?;
    let (hundredths, rest) = number(rest.strip_prefix(b".")?)?;
    Some((seconds.checked_mul(100)?.checked_add(hundredths)?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_and_nothing_else() {
        assert_eq!(number(b"  17 x"), Some((17, &b" x"[..])));
        assert_eq!(number(b"x"), None);
        assert_eq!(number(b""), None);
        assert_eq!(number(b"99999999999999999999"), None, "more than 64 bits");
        assert_eq!(number(b"18446744073709551615 "), Some((u64::MAX, &b" "[..])), "and just those");
        assert_eq!(number(b"000000000000000000000000001"), Some((1, &b""[..])));
        assert_eq!(nth(b"a bc 3 4", 2), Some(3));
        assert_eq!(nth(b"a bc", 2), None);
    }

    #[test]
    fn a_line_is_that_which_begins_so() {
        assert_eq!(line(b"cpu 1\ncpu0 2\n", b"cpu0 "), Some(&b"2"[..]));
        assert_eq!(line(b"cpu 1\n", b"cpu1 "), None);
    }

    #[test]
    fn seconds_are_read_in_hundredths() {
        assert_eq!(hundredths(b"12.05 30.99\n").map(|(value, _)| value), Some(1205));
        assert_eq!(hundredths(b"12 30").map(|(value, _)| value), None);
    }
}
