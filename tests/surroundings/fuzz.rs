//! Files of chance: a sound run and a sound record with something else in a place of them, by fixed seeds. Whatever is
//! read, it is an error of bounded length or a run; nothing panics.

use crate::place::Place;
use crate::stored;
use serde_json::{Value, json};
use std::path::Path;
use syscost::internals::record::Store;
use syscost::internals::record::bundle::{Bundle, read_any, read_any_head, write_new};
use syscost::internals::statistic::Random;

const FILES: usize = 150;

/// What a place may hold instead.
fn other(random: &mut Random) -> Value {
    match random.below(12) {
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

/// Puts something else into a place that is drawn on the way down.
fn spoil(value: &mut Value, random: &mut Random) {
    let here = random.below(4) == 0;
    match value {
        Value::Array(values) if !here && !values.is_empty() => {
            let at = random.below(values.len());
            if random.below(8) == 0 {
                let again = values[at].clone();
                values.push(again);
            } else {
                spoil(&mut values[at], random);
            }
        }
        Value::Object(fields) if !here && !fields.is_empty() => {
            let at = random.below(fields.len());
            let name = fields.keys().nth(at).cloned().unwrap();
            if random.below(8) == 0 {
                fields.remove(&name);
            } else {
                spoil(&mut fields[&name], random);
            }
        }
        place => *place = other(random),
    }
}

fn is_tame<T>(read: Result<T, syscost::Error>) {
    if let Err(error) = read {
        let text = error.to_string();
        assert!(text.chars().count() < 2_000 && !text.contains(char::is_control), "{text:?}");
    }
}

fn is_read(path: &Path) {
    is_tame(Store::load(path));
    is_tame(read_any(path));
    is_tame(read_any_head(path));
}

#[test]
fn a_run_with_something_else_in_it_is_read_or_refused() {
    let place = Place::new();
    let sound = serde_json::to_value(stored::run(stored::NAME)).unwrap();
    let path = place.path().join("run.json");
    for seed in 0..FILES {
        let (mut random, mut run) = (Random::new(seed as u64), sound.clone());
        (0..=random.below(3)).for_each(|_| spoil(&mut run, &mut random));
        std::fs::write(&path, run.to_string()).unwrap();
        is_read(&path);
    }
}

#[test]
fn bytes_of_chance_in_a_run_or_a_record_are_read_or_refused() {
    let place = Place::new();
    let [run, record] = ["run.json", "main.syscost"].map(|name| place.path().join(name));
    std::fs::write(&run, serde_json::to_vec(&stored::run(stored::NAME)).unwrap()).unwrap();
    write_new(&record, &Bundle::of("main", 1, vec![stored::run("a"), stored::run("b")]).unwrap()).unwrap();
    for path in [&run, &record] {
        let sound = std::fs::read(path).unwrap();
        for seed in 0..FILES {
            let (mut random, mut bytes) = (Random::new(seed as u64), sound.clone());
            for _ in 0..=random.below(4) {
                let at = random.below(bytes.len());
                match random.below(4) {
                    0 => bytes.truncate(at + 1),
                    1 => bytes.splice(at..at, sound[at / 2..at / 2 + 9].iter().copied()).for_each(drop),
                    2 => drop(bytes.drain(at..(at + random.below(40)).min(bytes.len()))),
                    _ => bytes[at] = random.below(256) as u8,
                }
                if bytes.is_empty() {
                    break;
                }
            }
            std::fs::write(path, bytes).unwrap();
            is_read(path);
        }
    }
}
