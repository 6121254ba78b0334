//! Runs that were damaged or forged by an attacker. The program names them and uses none of their content, and no control
//! sequence in them reaches a terminal.

use crate::place::{Place, files};
use crate::stored;
use serde_json::Value;
use syscost::record::{Outcome, Record, store::Store};

/// Control characters that clear the screen, set the title, write from right to left, hide text and break the line.
const HOSTILE: &str = "\u{1b}[2J\u{1b}]0;x\u{7}\u{202e}\u{200b}\u{9b}1m\u{2028}\rharm";

fn is_hostile(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t') || "\u{202e}\u{200b}\u{2028}".contains(c)
}

/// A run with the hostile text in every sentence.
fn with_hostile_sentences() -> Record {
    let mut record = stored::run(stored::NAME);
    let text = || format!("{HOSTILE} text");
    record.fingerprint.kernel_release = Some(text());
    for group in &mut record.groups {
        group.notes = vec![text()];
        for case in &mut group.cases {
            case.title = text();
        }
        if let Outcome::Measured(measured) = &mut group.cases[0].outcome {
            (measured.evidence, measured.unasked, measured.left_out) =
                (vec![text()], vec![text()], vec![text()]);
        }
        group.cases[1].outcome = Outcome::Failed(text());
    }
    record
}

#[test]
fn no_control_character_of_a_file_reaches_the_terminal() {
    let place = Place::new();
    let store = Store::at(&place.home());
    let run = store.save_run(&with_hostile_sentences()).unwrap();
    std::fs::create_dir(place.home().join("syscost/baselines")).unwrap();
    std::fs::copy(&run, place.home().join("syscost/baselines/flag.json")).unwrap();
    place.end(place.syscost(&["baseline", "save", "main"])).says(0, &["main.syscost"]);
    for words in [
        "runs",
        "runs --json",
        "report",
        "report --format markdown",
        "report --format csv",
        "report --format json",
        "report flag",
        "report --output out --format markdown",
        "baseline list",
        "report main",
        "compare main flag",
        "compare main flag --format markdown",
    ] {
        let ended = place.end(place.syscost(&words.split(' ').collect::<Vec<_>>()));
        assert!(matches!(ended.code, Some(0)), "{words}: {ended:?}");
        let said = ended.output.replace("\r\n", "\n") + &ended.error;
        assert!(!said.contains(is_hostile), "{words}: {said:?}");
        if words.starts_with("report") && !words.contains("output") {
            assert!(said.contains("harm"), "{words}: {said}");
        }
    }
    let output = std::fs::read_to_string(place.path().join("out")).unwrap();
    assert!(output.contains("harm") && !output.contains(is_hostile), "{output:?}");
}

#[test]
fn an_id_that_is_unprintable_empty_or_too_long_is_refused() {
    let place = Place::new();
    let file = stored::save(&place, stored::NAME);
    let text = stored::unsealed(&std::fs::read_to_string(&file).unwrap());
    let mut open: Value = serde_json::from_str(&text).unwrap();
    let long = "x".repeat(10 << 20);
    for id in [HOSTILE, "call/\u{202e}46u", "two\nlines", "", &long] {
        open["groups"][0]["cases"][0]["id"] = id.into();
        std::fs::write(&file, open.to_string()).unwrap();
        // Checking a long name takes a while in a test build.
        let commands = ["report", "runs", "baseline save new", "report --format csv"];
        for words in commands.into_iter().take(if id.len() > 1_000 { 1 } else { 4 }) {
            let ended = place.end(place.syscost(&words.split(' ').collect::<Vec<_>>()));
            let said = ended.output + &ended.error;
            assert_eq!(ended.code, Some(2), "{words}: {said}");
            assert!(
                said.contains(stored::NAME) && said.contains("expected a name of 1 to 200 bytes"),
                "{said}"
            );
            assert!(!said.contains(is_hostile) && said.len() < 2_000, "{words}: {said:?}");
        }
    }
    stored::save(&place, stored::NAME);
    let name = "exe.\u{202e}gnp";
    place.end(place.syscost(&["baseline", "save", name])).refuses(&["cannot name a record"]);
}

#[test]
fn a_flipped_bit_is_found_wherever_it_is() {
    let place = Place::new();
    let file = stored::save(&place, stored::NAME);
    let whole = std::fs::read(&file).unwrap();
    let bits = whole.len() * 8;
    let mut believed = Vec::new();
    for bit in (0..80).map(|i| i * (bits - 1) / 79) {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&file, damaged).unwrap();
        match Store::load(&file) {
            Ok(_) => believed.push(bit),
            Err(error) => assert!(error.to_string().contains(stored::NAME), "{error}"),
        }
    }
    assert_eq!(believed, [0; 0], "of {bits} bits");
}

#[test]
fn a_damaged_run_is_named_by_every_command_that_meets_it_and_the_others_are_shown() {
    let place = Place::new();
    stored::save(&place, stored::NAME);
    let file = stored::save(&place, "20270101T000000-1");
    let text = std::fs::read_to_string(&file).unwrap().replace("2000", "2001");
    std::fs::write(&file, text).unwrap();
    let damaged = "20270101T000000-1";
    place
        .end(place.syscost(&["runs"]))
        .says(2, &[damaged, "damaged", "seal: expected the checksum", stored::NAME]);
    place.end(place.syscost(&["runs", "--json"])).says(2, &[damaged, "\"damaged\"", stored::NAME]);
    place.end(place.syscost(&["report", stored::NAME])).says(0, &["u64/3"]);
    for words in [&["report"][..], &["report", damaged], &["compare", damaged, stored::NAME]] {
        place.end(place.syscost(words)).refuses(&[damaged, "seal", "restore it from a copy"]);
    }
    assert_eq!(files(&place.home(), ".json").len(), 2);
    place.end(place.syscost(&["baseline", "save", "whole", stored::NAME])).says(0, &["whole"]);
    std::fs::write(place.home().join("syscost/records/half.syscost"), "half").unwrap();
    place.end(place.syscost(&["baseline", "list"])).says(2, &["half\tdamaged", "whole\trecord"]);
}
