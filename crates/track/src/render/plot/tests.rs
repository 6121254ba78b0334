use super::*;
use syscost_engine::record::{CaseRecord, Interval, LevelRecord, Measured, Point, Predicted, fixture_run};

fn curve(title: &str, factor: f64) -> CurveRecord {
    let value = |i: u32| Interval {
        estimate: factor * f64::from(1 + i),
        low: factor * f64::from(i),
        high: 2.0 * factor * f64::from(1 + i),
    };
    CurveRecord {
        prefix: format!("chase/{title}/"),
        title: title.into(),
        chart: "latency".into(),
        parameter: "size of the ring".into(),
        bytes: true,
        unit: "ns".into(),
        points: (0..9).map(|i| Point { at: 1024 << i, value: value(i) }).collect(),
        ..CurveRecord::default()
    }
}

fn record() -> Record {
    let mut record = fixture_run::fixture_record();
    let mut first = curve("random & <wild>", 1.0);
    first.levels = vec![LevelRecord {
        name: Some("L1".into()),
        first: 1024,
        last: 4096,
        latency: Interval { estimate: 1.5, low: 1.4, high: 1.6 },
        step: Some((4096, 8192)),
        reported: Some(65_536),
        ..LevelRecord::default()
    }];
    record.groups[0].curves = vec![
        first,
        curve("stride", 0.0),
        CurveRecord { chart: "other things".into(), ..curve("alone", 3.0) },
    ];
    let matrix = Matrix { cpus: vec![0, 1, 4], rows: vec![vec![], vec![20.0], vec![100.0, 60.0]] };
    let measured = Measured { matrix: Some(matrix), ..Measured::default() };
    record.groups[1].cases.push(fixture_run::measured_case("core_to_core/every-pair", measured));
    record
}

#[test]
fn curves_of_a_chart_share_a_picture_and_a_map_has_its_own() {
    let record = record();
    let names: Vec<_> = record_pictures(&record).into_iter().map(|picture| picture.name).collect();
    assert_eq!(names, ["clock_read-latency", "clock_read-other-things", "core_to_core-every-pair"]);
    assert!(record_pictures(&fixture_run::fixture_record()).is_empty());
}

#[test]
fn a_picture_names_its_axes_its_curves_and_its_levels() {
    let record = record();
    let svg = record_pictures(&record)[0].to_svg();
    for words in [
        "latency",
        "size of the ring",
        "random &amp; &lt;wild&gt;",
        "stride",
        "L1 4 KiB",
        "L1 reported 64 KiB",
    ] {
        assert!(svg.contains(words), "{words}");
    }
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
}

/// A measured case of this cost, predicted to cost 10 ns.
fn case(id: &str, ns: f64) -> CaseRecord {
    let predicted = Some(Predicted { hardware: 4.0, software: 6.0, ..Predicted::default() });
    let median = Interval { estimate: ns, low: 0.9 * ns, high: 1.2 * ns };
    fixture_run::measured_case(id, Measured { median, predicted, ..Measured::default() })
}

#[test]
fn the_overview_has_each_headline_and_the_predictions_name_the_worst() {
    let mut record = record();
    let ids = ["far/off", "near/1", "near/2", "near/3", "near/4", "near/5"];
    record.groups[1].cases = ids.map(|id| case(id, if id == "far/off" { 70.0 } else { 11.0 })).into();
    let headlines = ids.map(|id| (id.to_owned(), Headline::new(1, "case", "an operation of the suite")));
    let pictures = run_pictures(&record, &headlines);
    let svg = pictures.iter().map(|picture| picture.to_svg()).collect::<Vec<_>>();
    assert_eq!(svg[0].matches("an operation of the suite").count(), 6);
    assert_eq!(svg[0].matches("70.00 ns").count(), 1);
    assert!(svg[1].contains("far/off") && !svg[1].contains("near/1"));
    assert!(run_pictures(&record, &headlines[..3]).is_empty(), "a part of a run is no whole");
}
