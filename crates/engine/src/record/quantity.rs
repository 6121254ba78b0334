//! Formats numbers for people: four significant digits, in the unit that makes them short. Files for programs hold all
//! decimals.

use crate::platform::plain_file::random_word;
use crate::record::Interval;
use std::time::{SystemTime, UNIX_EPOCH};

/// The unit in which a record's values are durations.
pub const NANOSECONDS: &str = "ns";
/// The unit of a record whose values are displaced CPU time, ns. These are never compared with plain durations.
pub const DISPLACED: &str = "displaced-ns";
/// The unit of a record whose values are instructions in user space, counted by single steps.
pub const INSTRUCTIONS: &str = "user-instructions";
/// The same, counted by Valgrind's callgrind. Its emulated processor may take another path through a library.
pub const CALLGRIND: &str = "callgrind-instructions";

/// Whether values in this unit are instructions, which repeat exactly.
pub fn is_instruction_unit(unit: &str) -> bool {
    unit == INSTRUCTIONS || unit == CALLGRIND
}

/// Whether values in this unit are times, and not counts of an event.
pub fn is_time_unit(unit: &str) -> bool {
    unit == NANOSECONDS || unit == DISPLACED
}

/// A divisor with its name.
type Step = (f64, &'static str);

const TIME: [Step; 4] = [(1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")];
/// Steps of ticks and events. Counts stay whole up to a million, because they are compared digit by digit.
const COUNT: [Step; 3] = [(1.0, ""), (1e6, "M"), (1e9, "G")];

/// Formats a duration in the largest unit in which it is at least one: `0.3134 ns`, `88.12 ns`, `2.314 µs`.
pub fn format_duration(ns: f64) -> String {
    let (divisor, unit) = unit_step(ns, &TIME);
    format!("{} {unit}", format_digits(ns / divisor, decimal_places(ns / divisor)))
}

/// A duration with all of its digits, as a report prints it: `18.117232 ms`.
pub fn format_exact_duration(ns: f64) -> String {
    let (divisor, unit) = unit_step(ns, &TIME);
    // Nine significant digits hide the rounding error of the division.
    let scaled: f64 = format!("{:.8e}", ns / divisor).parse().unwrap_or(ns / divisor);
    format!("{scaled} {unit}")
}

/// A number without a unit: `0.8125`, `312.3`, `71146`, `45.29 M`.
pub fn format_count(value: f64) -> String {
    let (divisor, unit) = unit_step(value, &COUNT);
    let scaled = value / divisor;
    format!("{} {unit}", format_digits(scaled, decimal_places(scaled))).trim_end().to_owned()
}

/// Formats a value of a record: as a duration if the unit is a time, else as a count.
pub fn format_amount(value: f64, unit: &str) -> String {
    if is_time_unit(unit) { format_duration(value) } else { format_count(value) }
}

/// A size in the largest unit in which it is at least one: `32 KiB`, `861 KiB`, `1.5 MiB`.
pub fn format_size(bytes: u64) -> String {
    const SIZE: [(u64, &str); 5] = [(0, "B"), (10, "KiB"), (20, "MiB"), (30, "GiB"), (40, "TiB")];
    let (shift, unit) = SIZE.into_iter().rev().find(|(shift, _)| bytes >> shift > 0).unwrap_or(SIZE[0]);
    let scaled = bytes as f64 / (1u64 << shift) as f64;
    let places = if scaled.fract() < 0.005 || scaled >= 99.5 { 0 } else { 1 + usize::from(scaled < 9.95) };
    format!("{scaled:.places$} {unit}")
}

/// Both ends of an interval, in the unit and with the decimals of its estimate: `[0.3129, 0.3141]`.
pub fn format_interval(interval: &Interval, unit: &str) -> String {
    let steps: &[Step] = if is_time_unit(unit) { &TIME } else { &COUNT };
    let (divisor, _) = unit_step(interval.estimate, steps);
    let places = decimal_places(interval.estimate / divisor);
    format!(
        "[{}, {}]",
        format_digits(interval.low / divisor, places),
        format_digits(interval.high / divisor, places)
    )
}

/// The larger half of an interval as a share of its estimate: `±0.16%`. If that share is about 100 % or more, the ratio of the
/// upper end to the estimate: `≤4.2×`. Empty for an estimate of zero.
pub fn format_half_width(interval: &Interval) -> String {
    let half = (interval.high - interval.estimate).max(interval.estimate - interval.low);
    let percent = 100.0 * half / interval.estimate.abs();
    match percent {
        p if !p.is_finite() => String::new(),
        p if p < 0.995 => format!("±{p:.2}%"),
        p if p < 9.95 => format!("±{p:.1}%"),
        p if p >= 99.5 && interval.high > 1.9 * interval.estimate.abs() => {
            format!("≤{}", format_ratio(interval.high / interval.estimate))
        }
        p => format!("±{p:.0}%"),
    }
}

/// A ratio: `1.08×`, `12.3×`, `240×`.
pub fn format_ratio(ratio: f64) -> String {
    let places = if ratio.abs() >= 99.95 { 0 } else { usize::from(ratio.abs() < 9.995) + 1 };
    format!("{}×", format_digits(ratio, places))
}

/// A ratio less 1 in percent: `+5.2%`, `-0.3%`, `+140%`; `0.0%` without a sign.
pub fn format_change(ratio: f64) -> String {
    let percent = 100.0 * (ratio - 1.0);
    let places = usize::from(percent.abs() < 99.95);
    match format!("{percent:+.places$}%") {
        nothing if nothing.ends_with("0.0%") && nothing.len() == 5 => "0.0%".into(),
        text => text,
    }
}

/// The current time in Unix seconds; 0 if the clock is before 1970, which only makes names wrong.
pub fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

/// Formats a moment in universal time for file names: `20261120T134405`.
pub fn format_utc(unix_seconds: u64) -> String {
    let (days, second) = (unix_seconds / 86_400, unix_seconds % 86_400);
    // Days to a date by the method of Hinnant (chrono-compatible low-level date algorithms, 2013).
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}")
}

/// A moment in universal time by RFC 3339: `2026-11-20T13:44:05+00:00`.
pub fn format_rfc3339(unix_seconds: u64) -> String {
    let utc = format_utc(unix_seconds);
    // A year may have more than four digits.
    let (year, rest) = utc.split_at(utc.len() - "0101T000000".len());
    let part = |at: usize| &rest[at..at + 2];
    format!("{year}-{}-{}T{}:{}:{}+00:00", part(0), part(2), part(5), part(7), part(9))
}

/// The largest unit in which the value is at least one after rounding to four digits, so that 999.96 ns are
/// 1.000 µs and not "1000 ns".
fn unit_step(value: f64, steps: &[Step]) -> Step {
    let reached = |&&(divisor, _): &&Step| value.abs() >= 0.999_95 * divisor;
    *steps.iter().rev().find(reached).unwrap_or(&steps[0])
}

/// The number of decimals for four significant digits, at most four: a tenth of a femtosecond is noise.
fn decimal_places(value: f64) -> usize {
    [0.999_95, 9.999_5, 99.995, 999.95].iter().filter(|&&bound| value.abs() < bound).count()
}

/// Formats with this many decimals. Exactly zero is `0`; a value that rounds to zero keeps its decimals but not its sign.
fn format_digits(value: f64, places: usize) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let text = format!("{value:.places$}");
    let zero = text.chars().all(|c| "-0.".contains(c));
    if zero { text.trim_start_matches('-').to_owned() } else { text }
}

// Names of runs, records and comparisons. A name begins with its time, so that names sort by time. It ends in random
// characters, because containers that share a directory may have equal process ids and start in the same second.

/// Random characters of a name, 5 bits each: two runs that begin in one millisecond have equal names once in 33 million pairs.
const RANDOM_CHARACTERS: u32 = 5;

/// The current time in Unix seconds, and a fresh name for a run that begins now: `20261120T134405-217k3x9q`. The first three
/// digits after the dash are milliseconds.
pub fn fresh_run_name() -> (u64, String) {
    // A clock before 1970 only makes the name wrong.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, milliseconds) = (now.as_secs(), now.subsec_millis());
    (seconds, format!("{}-{milliseconds:03}{}", format_utc(seconds), random_word(RANDOM_CHARACTERS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_four_digits_in_its_own_unit() {
        let read = [
            (0.0, "0 ns"),
            (0.313_44, "0.3134 ns"),
            (0.004_2, "0.0042 ns"),
            (2.9, "2.900 ns"),
            (88.12, "88.12 ns"),
            (312.33, "312.3 ns"),
            (999.94, "999.9 ns"),
            (999.96, "1.000 µs"),
            (2314.0, "2.314 µs"),
            (18_117_232.0, "18.12 ms"),
            (2.5e9, "2.500 s"),
            (4.0e12, "4000 s"),
            (-0.3, "-0.3000 ns"),
            (-0.000_01, "0.0000 ns"),
        ];
        for (ns, text) in read {
            assert_eq!(format_duration(ns), text);
        }
    }

    #[test]
    fn a_published_duration_keeps_its_digits() {
        let texts = [18_117_232.0, 0.001_316, 115_455.0, 1.857].map(format_exact_duration);
        assert_eq!(texts, ["18.117232 ms", "0.001316 ns", "115.455 µs", "1.857 ns"]);
    }

    #[test]
    fn a_count_is_whole_up_to_a_million() {
        for (value, text) in [(0.8125, "0.8125"), (52.0, "52.00"), (71146.0, "71146"), (45.29e6, "45.29 M")] {
            assert_eq!(format_count(value), text);
        }
    }

    #[test]
    fn a_size_is_shown_in_its_largest_binary_unit() {
        let read = [
            (0, "0 B"),
            (512, "512 B"),
            (32 << 10, "32 KiB"),
            (38_976, "38.1 KiB"),
            (881_728, "861 KiB"),
            (7_053_952, "6.73 MiB"),
            (1 << 30, "1 GiB"),
        ];
        for (bytes, text) in read {
            assert_eq!(format_size(bytes), text);
        }
    }

    #[test]
    fn an_interval_keeps_the_scale_of_its_estimate() {
        let interval = Interval { estimate: 1001.0, low: 998.0, high: 1004.0 };
        assert_eq!(format_interval(&interval, NANOSECONDS), "[0.998, 1.004]");
        assert_eq!(format_interval(&interval, "instructions"), "[998, 1004]");
        assert_eq!(format_half_width(&interval), "±0.30%");
    }

    #[test]
    fn the_half_width_of_an_estimate_of_zero_is_empty() {
        assert_eq!(format_half_width(&Interval { estimate: 0.0, low: -1.0, high: 1.0 }), "");
        assert_eq!(format_half_width(&Interval { estimate: -2.0, low: -3.0, high: -1.0 }), "±50%");
    }

    #[test]
    fn an_interval_much_wider_than_its_estimate_is_shown_as_a_factor() {
        assert_eq!(format_half_width(&Interval { estimate: 2.0, low: 1.0, high: 36.6 }), "≤18.3×");
        assert_eq!(format_half_width(&Interval { estimate: 2.0, low: -3.0, high: 3.0 }), "±250%");
    }

    #[test]
    fn a_ratio_has_three_digits() {
        for (ratio, text) in [(1.084, "1.08×"), (0.021, "0.02×"), (12.34, "12.3×"), (240.4, "240×")] {
            assert_eq!(format_ratio(ratio), text);
        }
    }

    #[test]
    fn a_change_has_a_sign_unless_it_rounds_to_zero() {
        let read = [(1.052, "+5.2%"), (0.997, "-0.3%"), (1.000_4, "0.0%"), (0.999_6, "0.0%"), (2.4, "+140%")];
        for (ratio, text) in read {
            assert_eq!(format_change(ratio), text);
        }
        assert_eq!(format_change(1.1), "+10.0%");
        assert_eq!(format_change(1.9996), "+100%");
    }

    #[test]
    fn times_are_formatted_in_universal_time() {
        assert_eq!(format_utc(0), "19700101T000000");
        assert_eq!(format_utc(951_782_399), "20000228T235959");
        assert_eq!(format_utc(951_782_400), "20000229T000000");
        assert_eq!(format_utc(1_795_182_245), "20261120T134405");
        assert_eq!(format_rfc3339(1_795_182_245), "2026-11-20T13:44:05+00:00");
    }

    #[test]
    fn names_of_one_moment_differ_and_sort_by_time() {
        let names: Vec<_> = (0..100).map(|_| fresh_run_name()).collect();
        let distinct: std::collections::HashSet<_> = names.iter().map(|(_, name)| name).collect();
        assert_eq!(distinct.len(), 100);
        for (seconds, name) in &names {
            let length = "20261120T134405-217k3x9q".len();
            assert!(name.starts_with(&format_utc(*seconds)) && name.len() == length, "{name}");
        }
        let moments: Vec<_> = names.iter().map(|(_, name)| &name[..19]).collect();
        assert!(moments.is_sorted(), "{moments:?}");
    }
}
