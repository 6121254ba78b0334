//! Names of hosts as schedulers write them: `node[01-04,07]` is five hosts.

/// The hosts that one entry stands for; `None` if its brackets hold no range of numbers, or a backward one.
pub(super) fn expand_hosts(entry: &str) -> Option<Vec<String>> {
    let Some((before, rest)) = entry.split_once('[') else { return Some(vec![entry.to_owned()]) };
    let (inner, after) = rest.split_once(']')?;
    let ranges = inner.split(',').map(expand_range).collect::<Option<Vec<_>>>()?;
    Some(ranges.into_iter().flatten().map(|number| format!("{before}{number}{after}")).collect())
}

/// `08-10` as `08`, `09`, `10`: as wide as the first end is written.
fn expand_range(range: &str) -> Option<Vec<String>> {
    const MOST: u32 = 100_000;
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let number = |text: &str| text.parse::<u32>().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()));
    let (from, to) = (number(first)?, number(last)?);
    let is_range = from <= to && to - from < MOST;
    is_range.then(|| (from..=to).map(|number| format!("{number:0width$}", width = first.len())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_keeps_its_leading_zeros() {
        assert_eq!(expand_hosts("n[08-10,2]x").unwrap(), ["n08x", "n09x", "n10x", "n2x"]);
        assert_eq!(expand_hosts("host").unwrap(), ["host"]);
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for wrong in ["n[", "n[]", "n[3-1]", "n[a-b]", "n[1-+2]", "n[0-4294967295]", "n[1-2"] {
            assert_eq!(expand_hosts(wrong), None, "{wrong}");
        }
    }
}
