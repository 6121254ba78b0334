use super::*;
use serde_json::Value;
use syscost_engine::record::{Outcome, Record, fixture_run};

const HOSTILE: &str = "a\"<b>&'\\\n\u{1b}]]>\u{202e}";

fn hostile() -> Record {
    let mut record = fixture_run::fixture_record();
    record.groups[0].name = HOSTILE.into();
    record.groups[0].cases[0].id = HOSTILE.into();
    record.groups[0].cases[1].outcome = Outcome::Failed(HOSTILE.into());
    record.groups[0].cases[2].outcome = Outcome::Disturbed(HOSTILE.into());
    record
}

#[test]
fn bencher_has_a_value_and_its_ends_for_every_measured_case() {
    let record = fixture_run::fixture_record();
    let read: Value = serde_json::from_str(&bencher_json(&record).unwrap()).unwrap();
    assert_eq!(read.as_object().unwrap().len(), record.tally().measured);
    let latency = &read["call/u64/3"]["latency"];
    let figure =
        record.cases().find(|(_, case)| case.id == "call/u64/3").unwrap().1.measured().unwrap().figure();
    let ends = ["value", "lower_value", "upper_value"].map(|end| latency[end].as_f64().unwrap());
    assert_eq!(ends, [figure.estimate, figure.low, figure.high]);
}

#[test]
fn action_benchmark_is_a_list_with_units() {
    let record = hostile();
    let read: Value = serde_json::from_str(&action_benchmark_json(&record).unwrap()).unwrap();
    let list = read.as_array().unwrap();
    assert_eq!(list.len(), record.tally().measured);
    assert!(list.iter().all(|one| one["unit"] == "ns" && one["value"].is_f64() && one["name"].is_string()));
    assert_eq!(list[0]["name"], HOSTILE);
}

#[test]
fn every_case_is_a_test_and_every_text_is_escaped() {
    let record = hostile();
    let text = junit_xml(&record);
    assert_eq!(text.matches("<testcase ").count(), record.cases().count());
    assert_eq!(text.matches("<failure ").count(), record.tally().failed);
    assert_eq!(text.matches("<skipped ").count(), record.tally().skipped + record.tally().disturbed);
    assert!(!text.contains("<b>") && !text.contains('\u{1b}'), "{text}");
    assert!(text.contains("a&quot;&lt;b&gt;&amp;"), "{text}");
}

#[test]
fn metrics_have_one_line_a_value_and_an_end() {
    let mut record = hostile();
    record.fingerprint.kernel_release = Some("6.12.1".into());
    let text = open_metrics_text(&record, Some("h\"1"));
    let figures = text.lines().filter(|line| line.starts_with("syscost_operation_seconds{")).count();
    assert_eq!(figures, record.tally().measured);
    let run =
        format!(r#"syscost_run_info{{host="h\"1",kernel="6.12.1",run="{}",version="0.1.0"}} 1"#, record.run);
    assert!(text.contains(&run), "{text}");
    assert!(!open_metrics_text(&record, None).contains("host="), "a host that is unknown");
    assert!(text.ends_with("# EOF\n") && text.contains(r#"id="a\"<b>&'\\\n"#), "{text}");
    assert!(text.lines().all(|line| line.starts_with("# ") || line.contains("} ")), "{text}");
}

#[test]
fn lava_has_a_line_for_each_case_without_ambiguous_words() {
    let record = hostile();
    let text = lava_lines(&record);
    assert_eq!(text.lines().count(), record.cases().count());
    for line in text.lines() {
        let words: Vec<_> = line.split(' ').collect();
        assert!(words[0].chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)), "{line}");
        match words[1] {
            "pass" => {
                assert!(words.len() == 4 && words[2].parse::<f64>().is_ok() && words[3] == "ns", "{line}")
            }
            "fail" | "skip" => assert_eq!(words.len(), 2),
            _ => panic!("{line}"),
        }
    }
}

#[test]
fn counts_are_not_in_seconds() {
    let record = Record { unit: "instructions".into(), ..fixture_run::fixture_record() };
    assert!(open_metrics_text(&record, None).contains("syscost_operation_events{"));
    assert!(bencher_json(&record).unwrap().contains("\"instructions\""));
    assert!(action_benchmark_json(&record).unwrap().contains("\"unit\": \"instructions\""));
}

#[test]
fn every_case_is_a_test_of_the_build_with_its_figure_in_seconds() {
    let record = fixture_run::fixture_record();
    let report: Value = serde_json::from_str(&kcidb_report(&record, "ours:6.12").unwrap()).unwrap();
    let tests = report["tests"].as_array().unwrap();
    assert_eq!(tests.len(), record.cases().count());
    for (test, (_, case)) in tests.iter().zip(record.cases()) {
        assert!(test["id"].as_str().unwrap().starts_with("ours:syscost:") && test["build_id"] == "ours:6.12");
        let figure = case.measured().map(|measured| 1e-9 * measured.figure().estimate);
        assert_eq!(test["number"]["value"].as_f64(), figure);
        assert_eq!(test["status"] == "DONE", figure.is_some());
    }
}

#[test]
fn a_build_without_an_origin_is_refused() {
    for wrong in ["", "6.12", ":6.12", "Ours:6.12", "our s:1"] {
        assert!(kcidb_report(&fixture_run::fixture_record(), wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_path_matches_the_schema() {
    assert_eq!(dotted_path("chase/random/16 KiB"), "chase.random.16_KiB");
    assert_eq!(dotted_path("a//\u{202e}b.c"), "a._._b_c");
}
