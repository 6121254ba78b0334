//! Tests with intact and with damaged files.

use super::*;
use crate::record::bundle::LAYOUT;
use crate::statistic::Random;
use syscost_engine::record::store::record_name;
use syscost_engine::record::{Outcome, fixture_run};
use tempfile::TempDir;

/// Three processes of two sessions.
fn bundle() -> Bundle {
    let run = |name: &str, session: &str, started| Record {
        run: name.into(),
        session: Some(session.into()),
        started,
        ..fixture_run::fixture_record()
    };
    let records = vec![run("a-2", "a", 2), run("b-1", "b", 9), run("a-1", "a", 1)];
    Bundle::from_records("main", 10, records).unwrap()
}

fn written() -> (TempDir, std::path::PathBuf, Vec<u8>) {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("main.syscost");
    write_new(&path, &bundle()).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    (home, path, bytes)
}

/// The offset at which the second member begins.
fn second_member(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    let mut decoder = flate2::bufread::GzDecoder::new(&mut rest);
    std::io::copy(&mut decoder, &mut std::io::sink()).unwrap();
    bytes.len() - rest.len()
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// The error message of [`read`] for these bytes, which [`read_any`] must refuse, too.
fn refused(bytes: &[u8]) -> String {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("x.syscost");
    std::fs::write(&path, bytes).unwrap();
    let message = read(&path).map(drop).unwrap_err().to_string();
    assert!(message.contains("x.syscost: "), "{message}");
    assert!(read_any(&path).is_err());
    message
}

#[test]
fn a_bundle_is_read_as_it_was_written() {
    let (_home, path, _) = written();
    let back = read(&path).unwrap();
    assert_eq!(back.head, bundle().head);
    assert_eq!(back.records.iter().map(|r| r.run.as_str()).collect::<Vec<_>>(), ["a-1", "a-2", "b-1"]);
    assert_eq!(
        serde_json::to_string(&back.records).unwrap(),
        serde_json::to_string(&bundle().records).unwrap()
    );
    assert_eq!((read_head(&path).unwrap(), read_any_head(&path).unwrap()), (back.head.clone(), back.head));
}

#[test]
fn a_head_read_without_the_runs_must_belong_to_them() {
    let (_home, path, bytes) = written();
    let others =
        encode_bundle(&path, &Bundle::from_records("x", 1, vec![fixture_run::fixture_record()]).unwrap())
            .unwrap();
    let (head, runs) = bytes.split_at(second_member(&bytes));
    let other_runs = &others[second_member(&others)..];
    let (last, all_but_last) = runs.split_last().unwrap();
    for runs in [other_runs, &runs[..0], &runs[..runs.len() / 2], &[all_but_last, &[last ^ 1]].concat()] {
        std::fs::write(&path, [head, runs].concat()).unwrap();
        for read in [read_head, read_any_head] {
            let message = read(&path).unwrap_err().to_string();
            assert!(message.contains("the runs: expected those that the head was made of"), "{message}");
        }
        assert!(read(&path).is_err());
    }
}

#[test]
fn a_record_without_the_end_of_its_runs_is_read() {
    let (_home, path, bytes) = written();
    let runs = &bytes[second_member(&bytes)..];
    std::fs::write(&path, [&gzip_member(&path, &[bundle().head]).unwrap()[..], runs].concat()).unwrap();
    assert_eq!((read_head(&path).unwrap(), read(&path).unwrap().head), (bundle().head, bundle().head));
}

#[test]
fn the_first_line_is_the_head_and_the_others_are_the_runs() {
    let (_home, _, bytes) = written();
    let mut text = String::new();
    flate2::bufread::MultiGzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines.len(), &lines[0]["bundle"], &lines[3]["run"]), (4, &LAYOUT.into(), &"b-1".into()));
}

#[test]
fn the_same_runs_are_the_same_bytes() {
    assert_eq!(written().2, written().2);
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let (_home, _, bytes) = written();
    for length in (0..bytes.len()).step_by(53) {
        refused(&bytes[..length]);
    }
}

#[test]
fn a_flipped_bit_is_noticed_or_changes_nothing() {
    let (_home, path, bytes) = written();
    let whole = |bundle: &Bundle| serde_json::to_string(&(&bundle.head, &bundle.records)).unwrap();
    let before = whole(&bundle());
    // An unoptimised build is slow, so it flips a random sample of the bits; an optimised build flips every bit.
    let mut random = Random::new(0x5eed);
    let bits: Vec<usize> = if cfg!(debug_assertions) {
        (0..100).map(|_| random.number_below(8 * bytes.len())).collect()
    } else {
        (0..8 * bytes.len()).collect()
    };
    let mut noticed = 0;
    for &bit in &bits {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&path, flipped).unwrap();
        match read(&path) {
            Ok(after) => assert!(whole(&after) == before, "bit {bit}"),
            Err(_) => noticed += 1,
        }
    }
    // The headers of the two members have a date, a hint and the name of a system, which no reader checks.
    assert!(20 * noticed > 19 * bits.len(), "{noticed} of {}", bits.len());
}

#[test]
fn a_file_that_is_no_record_is_refused() {
    let (_home, _, bytes) = written();
    assert!(refused(b"").contains("expected a record of syscost"));
    assert!(refused(b"hello").contains("no gzip"));
    assert!(refused(&gzip(b"hello")).contains("gzip of something else"));
    assert!(refused(&gzip(b"{}")).contains("the version of a record"));
    assert!(refused(&[&bytes[..], b"more"].concat()).contains("the runs"));
    assert!(refused(&[&bytes[..], &gzip(b"more")].concat()).contains("line 4"));
    let directory = tempfile::tempdir().unwrap();
    assert!(read_any(directory.path()).unwrap_err().to_string().contains("directory"));
    let missing = read_head(&directory.path().join("no.syscost")).unwrap_err().to_string();
    assert!(missing.contains("no.syscost: opening failed"), "{missing}");
}

#[test]
fn a_newer_layout_is_called_newer() {
    let message = refused(&gzip(br#"{"bundle":9,"unheard_of":1}"#));
    assert!(message.contains("written by a newer syscost") && message.contains("found 9"), "{message}");
}

#[test]
fn the_head_of_other_runs_is_refused() {
    let (_home, _, bytes) = written();
    let head = |change: fn(&mut Head)| {
        let mut head = bundle().head;
        change(&mut head);
        let text = serde_json::to_vec(&head).unwrap();
        refused(&[&gzip(&text), &bytes[second_member(&bytes)..]].concat())
    };
    assert!(head(|head| head.runs[1].name = "c".into()).contains("run 1: expected c, found \"a-2\""));
    assert!(
        head(|head| head.series[0].values[0].median.low = 0.0).contains("series: expected what the runs say")
    );
    assert!(head(|head| head.unit = "instructions".into()).contains("unit"));
    assert!(head(|head| head.runs[0].boot = "another".into()).contains("runs"));
    assert!(head(|head| head.runs[0].fingerprint = 9).contains("runs[0].fingerprint"));
}

#[test]
fn a_decompression_bomb_is_refused_at_the_limit() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    std::io::copy(&mut std::io::repeat(b' ').take(80 << 20), &mut encoder).unwrap();
    let bomb = encoder.finish().unwrap();
    assert!(bomb.len() < 1 << 20);
    assert!(refused(&bomb).contains("the head: expected at most 64 MiB"));
    let (_home, _, bytes) = written();
    let runs = [&bytes[..second_member(&bytes)], &bomb].concat();
    assert!(refused(&runs).contains("a run: expected at most 64 MiB"));
}

#[test]
fn plain_runs_are_a_bundle_too() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("old.json");
    let json = |run: &str| {
        serde_json::to_string(&Record { run: run.into(), ..fixture_run::fixture_record() }).unwrap()
    };
    std::fs::write(&path, json("a")).unwrap();
    let bundle = read_any(&path).unwrap();
    assert_eq!((bundle.head.name.as_str(), bundle.head.runs[0].session.as_str()), ("old", "a"));
    std::fs::write(&path, format!("{}\n{}\n", json("a"), json("b"))).unwrap();
    assert_eq!(read_any_head(&path).unwrap().runs.len(), 2);
    std::fs::write(&path, json("a") + &json("b").replace("\"ns\"", "\"page-faults\"")).unwrap();
    assert!(read_any_head(&path).unwrap_err().to_string().contains("unit: expected ns as in the first run"));
    assert!(read_head(&path).unwrap_err().to_string().contains("no gzip"));
}

#[test]
fn runs_that_do_not_belong_together_are_refused() {
    let error_after = |change: fn(&mut Record)| {
        let mut other = Record { run: "b".into(), ..fixture_run::fixture_record() };
        change(&mut other);
        Bundle::from_records("x", 1, vec![fixture_run::fixture_record(), other])
            .map(drop)
            .unwrap_err()
            .to_string()
    };
    assert!(error_after(|other| other.unit = "instructions".into()).contains("agree in their unit"));
    assert!(error_after(|other| other.scale = "smoke".into()).contains("agree in their scale"));
    assert!(error_after(|other| other.run = fixture_run::fixture_record().run).contains("is there twice"));
    assert!(Bundle::from_records("x", 1, Vec::new()).unwrap_err().to_string().contains("no run to record"));
}

#[test]
fn an_unreadable_bundle_is_not_written() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("x.syscost");
    let mut record = fixture_run::fixture_record();
    if let Outcome::Measured(measured) = &mut record.groups[0].cases[0].outcome {
        measured.median.low = f64::NAN;
    }
    let bundle = Bundle::from_records("x", 1, vec![record]).unwrap();
    assert!(write_new(&path, &bundle).is_err());
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
}

#[test]
fn a_record_is_kept_under_its_name_until_it_is_removed() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::at(home.path());
    assert!(store.record_files().unwrap().is_empty());
    let bundle = Bundle::from_records("v1.2", 7, vec![fixture_run::fixture_record()]).unwrap();
    let path = bundle.save_in(&store).unwrap();
    assert!(path.ends_with("syscost/records/v1.2.syscost"));
    assert_eq!(store.record_files().unwrap(), std::slice::from_ref(&path));
    assert_eq!((record_name(&path).as_str(), read(&path).unwrap().head), ("v1.2", bundle.head.clone()));
    let message = bundle.save_in(&store).unwrap_err().to_string();
    assert!(message.contains("never replaces another"), "{message}");
    store.remove_record("v1.2").unwrap();
    assert!(store.record_files().unwrap().is_empty() && store.remove_record("v1.2").is_err());
}
