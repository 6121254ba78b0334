//! The page as a file: its data, and that no text in a record can become markup.

use super::*;
use crate::fixture_head::head;
use syscost_analysis::study::comparison::{Options, compare};
use syscost_engine::record::{CaseRecord, Displaced, Interval, Measured, Outcome, fixture_run};

fn html(record: &Record) -> String {
    Page { record: Some(record), ..Page::default() }.to_html()
}

/// The text between the first `from` and the next `to`.
fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let start = text.find(from).expect(from) + from.len();
    &text[start..start + text[start..].find(to).expect(to)]
}

fn data(html: &str) -> Value {
    serde_json::from_str(between(html, "<script type=\"application/json\" id=\"data\">", "</script>"))
        .unwrap()
}

#[test]
fn every_case_is_in_the_data_with_its_figures() {
    let record = fixture_run::fixture_record();
    let data = data(&html(&record));
    let groups = data["groups"].as_array().unwrap();
    let read: Vec<&Value> = groups.iter().flat_map(|group| group["cases"].as_array().unwrap()).collect();
    let cases: Vec<&CaseRecord> = record.cases().map(|(_, case)| case).collect();
    assert_eq!((read.len(), &data["run"]), (cases.len(), &Value::from(&*record.run)));
    for (read, case) in read.into_iter().zip(cases) {
        assert_eq!(read["id"], *case.id);
        let figure = case.measured().map(|measured| measured.figure().estimate);
        assert_eq!(read["figure"][0].as_f64(), figure);
        assert_eq!(read["sentence"].is_string(), figure.is_none());
    }
}

#[test]
fn a_hostile_record_stays_text() {
    let hostile = "</script><img src=x onerror=alert(1)><!-- \u{202e}\u{2028} \" ' ` &lt; \u{1b}[2J \u{5e9}";
    let long = "x".repeat(10_000);
    let mut record = fixture_run::fixture_record();
    record.run = hostile.into();
    record.fingerprint.cpu_model = Some(hostile.into());
    record.groups[0].name = hostile.into();
    record.groups[0].notes = vec![hostile.into()];
    record.groups[0].cases[0].id = hostile.into();
    record.groups[0].cases[1].title = long.clone();
    let page = html(&record);
    assert_eq!(
        page.matches("</script").count(),
        html(&fixture_run::fixture_record()).matches("</script").count()
    );
    assert!(!page.contains("<img") && !page.contains(hostile));
    let data = data(&page);
    assert_eq!(data["groups"][0]["cases"][0]["id"], hostile);
    assert_eq!(data["groups"][0]["cases"][1]["title"], *long);
}

#[test]
fn the_policy_allows_only_the_script_and_style_of_the_page() {
    let page = html(&fixture_run::fixture_record());
    let policy = between(&page, "http-equiv=\"Content-Security-Policy\" content=\"", "\"");
    let hash = |text| format!("'sha256-{}'", hash(text));
    let (script, style) = (between(&page, "<script>", "</script>"), between(&page, "<style>", "</style>"));
    assert!(policy.starts_with("default-src 'none'; "), "{policy}");
    assert_eq!(between(policy, "script-src ", ";"), hash(script));
    assert_eq!(between(policy, "style-src ", ";"), hash(style));
    assert!(!policy.contains("unsafe") && !policy.contains("http") && !policy.contains('*'), "{policy}");
    for way in
        ["<link rel=\"stylesheet", "src=", "@import", "url(", "fetch(", "XMLHttp", "innerHTML", "eval("]
    {
        assert!(!script.replace("-src=", "").contains(way) || uplot_has(way), "{way} in the script");
        assert!(!style.contains(way), "{way} in the style sheet");
    }
}

/// Whether the chart library contains this word: it sets the markup of titles and legends, which the page does not use.
fn uplot_has(way: &str) -> bool {
    way == "innerHTML"
}

#[test]
fn the_charts_library_is_pinned_and_its_licence_is_in_the_page() {
    let page = html(&fixture_run::fixture_record());
    assert!(page.contains("uPlot (v1.6.32)"));
    assert!(LICENSE.starts_with("The MIT License"));
    assert!(page.contains("Permission is hereby granted, free of charge") && page.contains("Leon Sorokin"));
}

#[test]
fn three_hundred_cases_fit_into_a_megabyte() {
    let mut record = fixture_run::fixture_record();
    let (_, case) = record.cases().find(|(_, case)| case.measured().is_some()).unwrap();
    let mut full = case.clone();
    if let Outcome::Measured(measured) = &mut full.outcome {
        fill(measured);
    }
    let group = &mut record.groups[0];
    group.cases = (0..300).map(|i| CaseRecord { id: format!("group/variant/{i}"), ..full.clone() }).collect();
    let manuals = BTreeMap::from([(group.name.clone(), "A manual's line of text.\n".repeat(6000))]);
    let page = Page { record: Some(&record), manuals, ..Page::default() };
    let bytes = page.to_html().len();
    assert!(bytes < 1_000_000, "{bytes}");
}

/// Fills a case with as many data as in a long run.
fn fill(measured: &mut Measured) {
    measured.executions = vec![measured.executions[0]; 12];
    measured.counted = measured.counted.repeat(12);
    measured.iterations = measured.iterations.repeat(12);
    measured.evidence = vec!["The call was made once an iteration, as 1234 steps of a child show.".into(); 5];
}

#[test]
fn a_comparison_is_in_the_data_in_its_order() {
    let record = fixture_run::fixture_record();
    let comparison = compare(&[head("a", 5, 1), head("b", 5, 1)], &[], Options::default());
    let page = Page { record: Some(&record), comparison: Some(&comparison), ..Page::default() };
    let data = data(&page.to_html());
    let ids: Vec<_> = data["comparison"]["rows"].as_array().unwrap().iter().map(|row| &row["id"]).collect();
    assert_eq!(ids, comparison.rows.iter().map(|row| &*row.id).collect::<Vec<_>>());
    assert_eq!(data["comparison"]["baselines"][1]["name"], "b");
}

#[test]
fn a_run_with_numbers_for_the_paper_has_its_tables() {
    let mut record = fixture_run::fixture_record();
    assert!(data(&html(&record))["groups"].as_array().unwrap().iter().all(|group| group["paper"].is_null()));
    let case = |us: f64| {
        let cost = Some(Interval { estimate: 1e3 * us, low: 900.0 * us, high: 1_100.0 * us });
        let displaced = Some(Displaced { charged: cost, gap: cost, ..Displaced::default() });
        let outcome = Outcome::Measured(Box::new(Measured { displaced, ..Measured::default() }));
        CaseRecord { id: format!("{GROUP}/compute/{us}us"), title: String::new(), outcome }
    };
    record.groups =
        vec![GroupRun { name: GROUP.into(), cases: vec![case(400.0), case(800.0)], ..GroupRun::default() }];
    let paper = &data(&html(&record))["groups"][0]["paper"];
    let titles = |of: &str| -> Vec<String> {
        let all = paper[of].as_array().unwrap().iter();
        all.map(|one| one["title"].as_str().unwrap()[..7].to_owned()).collect()
    };
    assert_eq!(
        (titles("tables"), titles("figures")),
        (vec!["Table 1".into(), "Error t".into()], vec!["Figure ".into()])
    );
    assert_eq!(paper["tables"][0]["rows"][1][4], "800.0");
}

#[test]
fn an_unsettled_case_counts_as_measured_on_the_page_as_in_the_tally() {
    let mut record = fixture_run::fixture_record();
    let open =
        record.groups.iter_mut().flat_map(|group| &mut group.cases).find_map(|case| case.measured_mut());
    let open = open.expect("a measured case");
    (open.quiet, open.left_out) = (None, vec!["others had the CPU".into()]);
    let (tally, data) = (record.tally(), data(&html(&record)));
    let cases =
        data["groups"].as_array().unwrap().iter().flat_map(|group| group["cases"].as_array().unwrap());
    let cases: Vec<_> = cases.map(|case| case["outcomes"].as_array().unwrap()).collect();
    let count = |word: &str| cases.iter().filter(|outcomes| outcomes.iter().any(|one| one == word)).count();
    assert!(tally.unsettled > 0);
    assert_eq!(
        [count("measured"), count("not settled"), count("skipped")],
        [tally.measured, tally.unsettled, tally.skipped]
    );
}

#[test]
fn no_asset_can_end_its_block() {
    assert!(!SCRIPT.contains("</script") && !SCRIPT.contains("<!--"));
    assert!(!STYLE.contains("</style"));
}
