use super::*;
use std::io::Write as _;
use std::process::{Command, Stdio};
use syscost_platform::testing::print_skipped;

fn scene() -> Scene {
    let own = Process::open(std::process::id() as i32).expect("ourselves");
    Scene::capture(&own).expect("/proc")
}

fn value(page: &str, name: &str) -> f64 {
    let line = page.lines().find(|line| line.starts_with(&format!("{name} ")));
    let value = line.and_then(|line| line.rsplit(' ').next()).and_then(|value| value.parse().ok());
    value.unwrap_or_else(|| panic!("no {name} in {page}"))
}

#[test]
fn a_value_on_the_page_equals_the_library_s_counter() {
    let before = Snapshot::take().expect("/proc");
    let page = render_page(&scene(), MetricFormat::Prometheus);
    let after = Snapshot::take().expect("/proc");
    assert_eq!(value(&page, "syscost_memory_size_bytes"), before.memory.total as f64);
    assert_eq!(value(&page, "syscost_boot_time_seconds"), before.booted as f64);
    assert_eq!(value(&page, "syscost_cpus_online"), before.cpus.len() as f64);
    let between = before.context_switches as f64..=after.context_switches as f64;
    assert!(between.contains(&value(&page, "syscost_context_switches_total")));
}

#[test]
fn every_name_keeps_the_conventions_and_occurs_once() {
    for (at, Family { head: family, .. }) in FAMILIES.iter().enumerate() {
        assert!(
            family.name.starts_with("syscost_") || family.name.starts_with("process_"),
            "{}",
            family.name
        );
        let reserved = ["_total", "_count", "_sum", "_bucket", "_created"];
        assert!(reserved.iter().all(|end| !family.name.ends_with(end)), "{}", family.name);
        assert!(family.help.ends_with('.'), "{}", family.name);
        assert!(FAMILIES[..at].iter().all(|other| other.head.name != family.name), "{}", family.name);
    }
}

#[test]
fn openmetrics_ends_with_eof_and_names_families_without_total() {
    let page = render_page(&scene(), MetricFormat::OpenMetrics);
    assert!(page.ends_with("# EOF\n") && page.matches("# EOF").count() == 1);
    assert!(page.contains("# TYPE syscost_interrupts counter\n"));
    assert!(page.contains("\nsyscost_interrupts_total "));
    assert!(page.contains("# UNIT syscost_cpu_seconds seconds\n"));
    assert_eq!(
        MetricFormat::from_accept_header("application/openmetrics-text;version=1.0.0,*/*;q=0.1"),
        MetricFormat::OpenMetrics
    );
    assert_eq!(MetricFormat::from_accept_header("*/*"), MetricFormat::Prometheus);
}

#[test]
fn promtool_accepts_the_page() {
    let started = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut promtool) = started else {
        print_skipped("there is no `promtool` here (Debian's package `prometheus`)");
        return;
    };
    let page = render_page(&scene(), MetricFormat::Prometheus);
    promtool.stdin.take().expect("a pipe").write_all(page.as_bytes()).expect("written");
    let said = promtool.wait_with_output().expect("ended");
    let words = String::from_utf8_lossy(&[said.stdout, said.stderr].concat()).into_owned();
    assert!(said.status.success() && words.trim().is_empty(), "{words}");
}

/// Collects every text below a key of this name.
fn collect_texts<'a>(value: &'a serde_json::Value, key: &str, found: &mut Vec<&'a str>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                found.extend(value.as_str().filter(|_| name == key));
                collect_texts(value, key, found);
            }
        }
        serde_json::Value::Array(values) => values.iter().for_each(|value| collect_texts(value, key, found)),
        _ => {}
    }
}

/// The words of a query that can only be names: not quoted texts, labels, or keywords of the language.
fn names(query: &str) -> Vec<String> {
    const LANGUAGE: [&str; 13] = [
        "rate",
        "sum",
        "by",
        "on",
        "group_left",
        "label_values",
        "instance",
        "mode",
        "device",
        "node",
        "__rate_interval",
        "cpu",
        "reading",
    ];
    let outside: String = query.split('"').step_by(2).collect::<Vec<_>>().join(" ");
    let words = outside.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let named = words.filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'));
    named.filter(|word| !LANGUAGE.contains(word)).map(str::to_owned).collect()
}

#[test]
fn the_dashboard_queries_only_existing_names() {
    let dashboard: serde_json::Value =
        serde_json::from_str(include_str!("../../grafana.json")).expect("JSON");
    let (mut queries, mut own) = (Vec::new(), Vec::new());
    collect_texts(&dashboard, "expr", &mut queries);
    collect_texts(&dashboard, "definition", &mut own);
    assert!(queries.len() >= 10 && !own.is_empty());
    let mut known: Vec<_> = FAMILIES.iter().map(|family| family.head.sample_name()).collect();
    // For the annotations: a metric of `syscost fleet status --metrics`.
    known.push("syscost_job_begin_timestamp_seconds".into());
    for query in queries.into_iter().chain(own) {
        let asked = names(query);
        assert!(!asked.is_empty(), "{query}");
        assert!(asked.iter().all(|name| known.contains(name)), "{query} asks for {asked:?}");
    }
    assert_eq!(names("rate(no_such_total{mode=\"a_b\"}[5m])"), ["no_such_total"], "the test can fail");
}
