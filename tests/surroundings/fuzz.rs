//! Randomly damaged files: a sound run, a sound record and Criterion's files of a baseline, in which fixed seeds replace one part.
//! Reading each of them gives an error of bounded length or a consistent value, within a second of CPU time; nothing
//! panics. `SYSCOST_FUZZ_SECONDS` is the duration.

use crate::place::Place;
use crate::stored;
use nix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use syscost::record::baseline::{check_cases, is_readable_baseline};
use syscost::record::store::Store;
use syscost_analysis::record::bundle::{Bundle, read_any, read_any_head, write_new};
use syscost_statistic::Random;

/// The least number of files that are tried.
const FILES: u64 = 150;
/// The most CPU time for reading one file.
const MOST: Duration = Duration::from_secs(1);

/// Tries file after file, each with its own seed.
fn each(kind: &str, mut tried: impl FnMut(&mut Random)) {
    let seconds = std::env::var("SYSCOST_FUZZ_SECONDS").map_or(0.0, |text| text.parse().unwrap());
    let cpu = || Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap());
    let (begun, mut files, mut slowest) = (Instant::now(), 0, Duration::ZERO);
    while files < FILES || begun.elapsed().as_secs_f64() < seconds {
        let before = cpu();
        tried(&mut Random::new(files));
        slowest = slowest.max(cpu() - before);
        files += 1;
    }
    println!("{files} {kind} in {seconds} s, the slowest took {slowest:?}");
    assert!(slowest < MOST, "{kind}: {slowest:?}");
}

/// A random value, to replace a part of a file.
fn random_value(random: &mut Random) -> Value {
    match random.number_below(12) {
        0 => Value::Null,
        1 => json!(-1),
        2 => json!(1e308),
        3 => json!(u64::MAX),
        4 => json!("x".repeat(100_000)),
        5 => json!("\u{1b}[2J\u{202e}"),
        6 => json!([[[[]]]]),
        7 => json!({"": {"": []}}),
        8 => json!(vec![0; 1_000]),
        9 => json!(true),
        10 => json!(0.5),
        _ => json!(""),
    }
}

/// Replaces a random part of a value, which is chosen while descending into it.
fn replace_random_part(value: &mut Value, random: &mut Random) {
    let here = random.number_below(4) == 0;
    match value {
        Value::Array(values) if !here && !values.is_empty() => {
            let at = random.number_below(values.len());
            if random.number_below(8) == 0 {
                let again = values[at].clone();
                values.push(again);
            } else {
                replace_random_part(&mut values[at], random);
            }
        }
        Value::Object(fields) if !here && !fields.is_empty() => {
            let at = random.number_below(fields.len());
            let name = fields.keys().nth(at).cloned().unwrap();
            if random.number_below(8) == 0 {
                fields.remove(&name);
            } else {
                replace_random_part(&mut fields[&name], random);
            }
        }
        place => *place = random_value(random),
    }
}

fn assert_bounded_error<T>(read: Result<T, syscost::Error>) {
    if let Err(error) = read {
        let text = error.to_string();
        assert!(text.chars().count() < 2_000 && !text.contains(char::is_control), "{text:?}");
    }
}

fn assert_read_or_refused(path: &Path) {
    assert_bounded_error(Store::load(path));
    assert_bounded_error(read_any(path));
    assert_bounded_error(read_any_head(path));
}

#[test]
fn a_run_with_something_else_in_it_is_read_or_refused() {
    let place = Place::new();
    let sound = serde_json::to_value(stored::run(stored::NAME)).unwrap();
    let path = place.path().join("run.json");
    each("runs", |random| {
        let mut run = sound.clone();
        (0..=random.number_below(3)).for_each(|_| replace_random_part(&mut run, random));
        std::fs::write(&path, run.to_string()).unwrap();
        assert_read_or_refused(&path);
    });
}

#[test]
fn bytes_of_chance_in_a_run_or_a_record_are_read_or_refused() {
    let place = Place::new();
    let [run, record] = ["run.json", "main.syscost"].map(|name| place.path().join(name));
    std::fs::write(&run, serde_json::to_vec(&stored::run(stored::NAME)).unwrap()).unwrap();
    write_new(&record, &Bundle::from_records("main", 1, vec![stored::run("a"), stored::run("b")]).unwrap())
        .unwrap();
    for path in [&run, &record] {
        let sound = std::fs::read(path).unwrap();
        each("runs and records of bytes", |random| {
            let mut bytes = sound.clone();
            for _ in 0..=random.number_below(4) {
                let at = random.number_below(bytes.len());
                match random.number_below(4) {
                    0 => bytes.truncate(at + 1),
                    1 => bytes.splice(at..at, sound[at / 2..at / 2 + 9].iter().copied()).for_each(drop),
                    2 => drop(bytes.drain(at..(at + random.number_below(40)).min(bytes.len()))),
                    _ => bytes[at] = random.number_below(256) as u8,
                }
                if bytes.is_empty() {
                    break;
                }
            }
            std::fs::write(path, bytes).unwrap();
            assert_read_or_refused(path);
        });
    }
}

#[test]
fn files_of_criterions_with_something_else_in_them_are_compared_with_or_named() {
    let place = Place::new();
    let saved = place.path().join("call/u64_3/main");
    std::fs::create_dir_all(&saved).unwrap();
    let estimate = json!({
        "confidence_interval": {"confidence_level": 0.95, "lower_bound": 3.0, "upper_bound": 3.2},
        "point_estimate": 3.1,
        "standard_error": 0.1,
    });
    let names = ["mean", "median", "median_abs_dev", "std_dev"];
    let estimates = Value::from_iter(names.map(|name| (name, estimate.clone())));
    let sample = json!({"sampling_mode": "Flat", "iters": [1.0, 2.0], "times": [3.1, 6.2]});
    let ids = [("call/u64/3".to_owned(), "call/u64_3".into())];
    let (mut sound, mut named) = (0, 0);
    each("files of Criterion's", |random| {
        let mut files = [("estimates.json", estimates.clone()), ("sample.json", sample.clone())];
        let at = random.number_below(2);
        (0..=random.number_below(2)).for_each(|_| replace_random_part(&mut files[at].1, random));
        for (name, value) in &files {
            let mut bytes = value.to_string().into_bytes();
            if random.number_below(4) == 0 {
                bytes.truncate(random.number_below(bytes.len() + 1));
            }
            std::fs::write(saved.join(name), bytes).unwrap();
        }
        let complaints = check_cases(place.path(), "main", &ids, "ns");
        assert_eq!(complaints.is_empty(), is_readable_baseline(&saved), "{complaints:?}");
        for complaint in &complaints {
            let sentence = &complaint.sentence;
            assert!(sentence.chars().count() < 2_000 && !sentence.contains(char::is_control), "{sentence:?}");
        }
        if complaints.is_empty() { sound += 1 } else { named += 1 }
    });
    assert!(sound > 0 && named > sound, "{sound} sound, {named} named");
}
