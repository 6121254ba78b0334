//! Record files of unknown origin: damaged, cut, put together from parts, or forged with valid checksums. Reading any of
//! them ends in an error sentence or in a sound record, and takes no more memory than its bounds allow.
//!
//! The test takes about a second; `SYSCOST_FUZZ_SECONDS=600` makes it run for 600 seconds.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may")]
#![allow(clippy::print_stdout, reason = "how many inputs were tried is worth knowing")]

use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use syscost::record::{CaseRecord, FORMAT, GroupRun, Interval, Measured, Outcome, Record};
use syscost_analysis::record::bundle::{Bundle, Head, read, read_any, read_any_head, read_head, write_new};
use syscost_statistic::Random;

/// The most memory for a decompression bomb, bytes: the bounds of a head and of a run, and the extra of a growing vector.
const PEAK_OF_A_BOMB: u64 = 3 * (64 << 20) + (32 << 20);
/// The most memory for inputs of some kilobytes, bytes.
const PEAK_OF_SMALL_FILES: u64 = 32 << 20;

/// The lock of the tests that measure memory: it belongs to the whole process, so only one test at a time may measure.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The peak of the resident memory while `body` runs, less the resident memory before, bytes.
fn peak_bytes(body: impl FnOnce()) -> u64 {
    let field = |name: &str| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap().to_owned();
        line.split_whitespace().next().unwrap().parse::<u64>().unwrap() << 10
    };
    // If the kernel does not reset the earlier peak, the result is only larger.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let before = field("VmRSS:");
    body();
    field("VmHWM:").saturating_sub(before)
}

fn case(id: &str, value: f64) -> CaseRecord {
    let median = Interval { estimate: value, low: value * 0.99, high: value * 1.01 };
    let measured = Measured { median, iterations: vec![100; 8], counted: vec![9; 8], ..Measured::default() };
    CaseRecord { id: id.into(), title: id.into(), outcome: Outcome::Measured(Box::new(measured)) }
}

fn run(name: &str, started: u64) -> Record {
    let skipped = Outcome::Skipped("There is no PMU here.".into());
    let cases = vec![
        case("call/u64/3", 1.5 + started as f64),
        CaseRecord { outcome: skipped, ..case("call/pmu", 0.0) },
        case("call/u64/4", 1.9),
    ];
    Record {
        format: FORMAT,
        tool: "syscost 0.1.0".into(),
        run: name.into(),
        session: Some("one".into()),
        boot: Some("da6f6b0f".into()),
        started,
        scale: "default".into(),
        unit: "ns".into(),
        seed: 42,
        fingerprint: Default::default(),
        unfinished: false,
        groups: vec![GroupRun { name: "call".into(), version: "1".into(), cases, ..GroupRun::default() }],
    }
}

/// Sound files, which are read without an error: two bundles, a run, a baseline of two runs.
fn sound(home: &Path) -> Vec<Vec<u8>> {
    let bundle = |name: &str, records| {
        let path = home.join(name);
        write_new(&path, &Bundle::from_records(name, 7, records).unwrap()).unwrap();
        std::fs::read(path).unwrap()
    };
    let line = |record: &Record| serde_json::to_string(record).unwrap() + "\n";
    vec![
        bundle("first", vec![run("one-1", 1), run("one-2", 2), run("one-3", 3)]),
        bundle("second", vec![run("two-1", 4)]),
        line(&run("three", 5)).into_bytes(),
        (line(&run("four", 6)) + &line(&run("five", 7))).into_bytes(),
    ]
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// A generator of damaged inputs.
struct Mutation<'a> {
    sound: &'a [Vec<u8>],
    random: Random,
}

impl Mutation<'_> {
    fn next(&mut self) -> Vec<u8> {
        let mut bytes = self.sound[self.random.number_below(self.sound.len())].clone();
        for _ in 0..1 + self.random.number_below(2) {
            bytes = match self.random.number_below(6) {
                0 => self.flipped(bytes),
                1 => self.cut(bytes),
                2 => self.spliced(&bytes),
                3 => self.repeated(bytes),
                _ => self.edited(&bytes),
            };
        }
        bytes
    }

    fn random_position(&mut self, bytes: &[u8]) -> usize {
        self.random.number_below(bytes.len() + 1)
    }

    fn flipped(&mut self, mut bytes: Vec<u8>) -> Vec<u8> {
        for _ in 0..1 + self.random.number_below(8) {
            let at = self.random_position(&bytes);
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << self.random.number_below(8);
            }
        }
        bytes
    }

    fn cut(&mut self, mut bytes: Vec<u8>) -> Vec<u8> {
        let length = self.random_position(&bytes);
        bytes.truncate(length);
        bytes
    }

    fn spliced(&mut self, bytes: &[u8]) -> Vec<u8> {
        let other = self.sound[self.random.number_below(self.sound.len())].clone();
        let (end, begin) = (self.random_position(bytes), self.random_position(&other));
        [&bytes[..end], &other[begin..]].concat()
    }

    fn repeated(&mut self, bytes: Vec<u8>) -> Vec<u8> {
        let (a, b) = (self.random_position(&bytes), self.random_position(&bytes));
        let part = &bytes[a.min(b)..a.max(b)];
        let times = 1 + self.random.number_below(3);
        [&bytes[..a], &part.repeat(times), &bytes[a..]].concat()
    }

    /// An input with valid checksums and mostly valid JSON, but wrong content.
    fn edited(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut text = String::new();
        let inflated = MultiGzDecoder::new(bytes).read_to_string(&mut text).is_ok();
        if !inflated {
            text = String::from_utf8_lossy(bytes).into_owned();
        }
        let mut lines: Vec<Vec<u8>> = text.lines().map(|line| line.as_bytes().to_vec()).collect();
        if lines.is_empty() {
            return Vec::new();
        }
        let at = self.random.number_below(lines.len());
        lines[at] = match serde_json::from_slice::<Value>(&lines[at]) {
            Ok(mut value) if self.random.number_below(8) > 0 => {
                self.edit(&mut value);
                value.to_string().into_bytes()
            }
            _ => {
                let line = lines[at].clone();
                self.flipped(line)
            }
        };
        if !inflated && self.random.number_below(2) == 0 {
            return lines.join(&b'\n');
        }
        let (head, runs) = lines.split_at(1);
        [gzip(&[&head[0], &b"\n"[..]].concat()), gzip(&[runs.join(&b'\n'), b"\n".to_vec()].concat())].concat()
    }

    /// Replaces a random part by something else.
    fn edit(&mut self, value: &mut Value) {
        let deeper = self.random.number_below(5) > 0;
        match value {
            Value::Object(map) if deeper && !map.is_empty() => {
                let key = map.keys().nth(self.random.number_below(map.len())).unwrap().clone();
                match self.random.number_below(12) {
                    0 => drop(map.remove(&key)),
                    _ => self.edit(map.get_mut(&key).unwrap()),
                }
            }
            Value::Array(items) if deeper && !items.is_empty() => {
                let at = self.random.number_below(items.len());
                match self.random.number_below(8) {
                    0 => drop(items.remove(at)),
                    1 => items.push(items[at].clone()),
                    _ => self.edit(&mut items[at]),
                }
            }
            _ => *value = self.random_value(),
        }
    }

    fn random_value(&mut self) -> Value {
        let nested = (0..200).fold(json!(1), |inner, _| json!([inner]));
        let all = [
            json!(null),
            json!(0),
            json!(1),
            json!(2),
            json!(-1),
            json!(u64::MAX),
            json!(i64::MIN),
            json!(1e308),
            json!(-1e-300),
            json!(0.5),
            json!(""),
            json!("x"),
            json!("\u{1b}[2J\n\t\u{0}"),
            json!("é".repeat(300)),
            json!([]),
            json!({}),
            json!([[[]]]),
            json!(true),
            nested,
            json!(99),
            json!("2.0"),
        ];
        all[self.random.number_below(all.len())].clone()
    }
}

/// Whether a head has the properties that a comparison relies on.
fn is_sound(head: &Head) -> bool {
    let runs = head.runs.iter().all(|run| run.fingerprint < head.fingerprints.len() && !run.name.is_empty());
    let values = head.series.iter().flat_map(|series| &series.values).all(|value| {
        let numbers = [value.median.low, value.median.estimate, value.median.high];
        value.run < head.runs.len() && numbers.iter().all(|n| n.is_finite()) && numbers.is_sorted()
    });
    let ids = head.series.iter().all(|s| !s.id.is_empty() && !s.id.chars().any(char::is_control));
    runs && values && ids && !head.runs.is_empty()
}

/// Reads a file in every way. Returns whether any of them accepted it.
fn is_accepted(path: &Path, copy: &Path) -> bool {
    let heads = [read_head(path), read_any_head(path)];
    let bundles = [read(path), read_any(path)];
    for error in
        heads.iter().filter_map(|r| r.as_ref().err()).chain(bundles.iter().filter_map(|r| r.as_ref().err()))
    {
        assert!(error.to_string().starts_with(path.to_str().unwrap()), "{error}");
    }
    let of_bundles = bundles.iter().flatten().map(|bundle| &bundle.head);
    let mut taken = 0;
    for head in heads.iter().flatten().chain(of_bundles) {
        assert!(is_sound(head), "{head:?}");
        taken += 1;
    }
    if let Ok(bundle) = &bundles[0] {
        write_new(copy, bundle).unwrap();
        assert_eq!(read_head(copy).unwrap(), bundle.head, "what was read can be written and read again");
        std::fs::remove_file(copy).unwrap();
    }
    taken > 0
}

fn fuzz_duration() -> Duration {
    let asked = std::env::var("SYSCOST_FUZZ_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(asked.unwrap_or(1))
}

fn input_files(home: &Path) -> (PathBuf, PathBuf) {
    (home.join("input.syscost"), home.join("copy.syscost"))
}

#[test]
fn reading_a_damaged_file_ends_in_a_sentence_or_a_sound_record() {
    let _alone = alone();
    let home = tempfile::tempdir().unwrap();
    let sound = sound(home.path());
    let (path, copy) = input_files(home.path());
    for bytes in &sound {
        std::fs::write(&path, bytes).unwrap();
        assert!(is_accepted(&path, &copy));
    }
    let mut mutation = Mutation { sound: &sound, random: Random::new(20_261_120) };
    let (mut inputs, mut taken) = (0_u64, 0_u64);
    let peak = peak_bytes(|| {
        let begun = Instant::now();
        while begun.elapsed() < fuzz_duration() || inputs < 300 {
            std::fs::write(&path, mutation.next()).unwrap();
            inputs += 1;
            taken += u64::from(is_accepted(&path, &copy));
        }
    });
    println!("{inputs} inputs, {taken} of them taken, {} KiB more memory at the most", peak >> 10);
    assert!(taken > 0 && taken < inputs, "{taken} of {inputs}: the inputs are not near enough to sound ones");
    assert!(peak < PEAK_OF_SMALL_FILES, "{peak} bytes");
}

/// A compressed file of the repeated `part`, which inflates to `bytes` bytes.
fn bomb(part: &str, bytes: usize) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let chunk = part.repeat((1 << 20) / part.len());
    for _ in 0..bytes / chunk.len() {
        encoder.write_all(chunk.as_bytes()).unwrap();
    }
    encoder.finish().unwrap()
}

#[test]
fn a_bomb_is_refused_within_its_bounds() {
    let _alone = alone();
    let home = tempfile::tempdir().unwrap();
    let head = gzip(&serde_json::to_vec(&Head::from_records("x", 1, &[run("one", 1)])).unwrap());
    let (path, _) = input_files(home.path());
    for part in [" ", "{", "\n"] {
        let bomb = bomb(part, 80 << 20);
        assert!(bomb.len() < 1 << 20, "{} bytes", bomb.len());
        for (bytes, stands_first) in [(bomb.clone(), true), ([&head[..], &bomb].concat(), false)] {
            std::fs::write(&path, bytes).unwrap();
            // Reading only the head does not reach a bomb behind it.
            let peak =
                peak_bytes(|| assert!(read(&path).is_err() && read_any_head(&path).is_err() == stands_first));
            assert!(peak < PEAK_OF_A_BOMB, "{part:?}: {} MiB", peak >> 20);
        }
    }
}

#[test]
fn a_file_that_never_ends_is_refused_within_its_bounds() {
    let _alone = alone();
    for device in ["/dev/zero", "/dev/null"] {
        let peak =
            peak_bytes(|| assert!(read_any(Path::new(device)).is_err() && read(Path::new(device)).is_err()));
        assert!(peak < PEAK_OF_A_BOMB, "{device}: {} MiB", peak >> 20);
    }
}
