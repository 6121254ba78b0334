//! Lists of CPUs or nodes as the kernel writes them: `0-3,8`.

/// The CPUs of a list in the kernel's notation. A part that is no number or range is left out, so that no CPU is
/// reported that does not exist.
pub fn parse(list: &str) -> Vec<usize> {
    list.trim().split(',').filter_map(parse_range).flatten().collect()
}

fn parse_range(part: &str) -> Option<std::ops::RangeInclusive<usize>> {
    let (first, last) = part.split_once('-').unwrap_or((part, part));
    Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
}

/// A list in the kernel's notation, of CPUs in ascending order.
pub fn format(cpus: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for &cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let text = |(first, last): (usize, usize)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.into_iter().map(text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_written_as_it_is_read() {
        for list in ["0-3,8", "5", "", "1,3,5-6"] {
            assert_eq!(format(&parse(list)), list);
        }
        assert_eq!(parse("0-3,8\n"), [0, 1, 2, 3, 8]);
    }

    #[test]
    fn an_empty_or_broken_list_names_no_cpu() {
        assert!(parse("\n").is_empty());
        assert_eq!(parse("a-b,2"), [2]);
    }
}
