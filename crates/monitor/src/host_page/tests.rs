use super::*;
use crate::exposition::{Scene, render_page};
use syscost_counters::Process;
use syscost_engine::render::metric_page::MetricFormat;

#[test]
fn a_page_of_the_monitor_is_parsed() {
    let own = Process::open(std::process::id() as i32).expect("ourselves");
    let text = render_page(&Scene::capture(&own).expect("a look"), MetricFormat::Prometheus);
    let page = HostPage { at: Instant::now(), samples: parse_samples(&text).expect("its own page") };
    assert_eq!(
        page.sum_by_name("syscost_cpus_online"),
        Some(syscost_platform::process::cpus_online() as f64)
    );
    let idle = page.sum_where_label("syscost_cpu_seconds_total", "mode", |mode| mode == "idle");
    assert!(idle.is_some_and(|idle| idle > 0.0) && page.sum_by_name("nothing").is_none());
    assert!(page.first_label("syscost_kernel_info", "release").is_some_and(|release| !release.is_empty()));
}

#[test]
fn a_page_is_split_by_a_label() {
    let body = "a{cpu=\"0\",mode=\"idle\"} 1\na{cpu=\"1\",mode=\"idle\"} 2\na{cpu=\"0\",mode=\"user\"} 4\nb{cpu=\"2\"} 9\n";
    let page = HostPage { at: Instant::now(), samples: parse_samples(body).expect("a page") };
    let parts = page.split_by_label("a", "cpu");
    let sums: Vec<_> = parts.iter().map(|(cpu, part)| (cpu.as_str(), part.sum_by_name("a"))).collect();
    assert_eq!(sums, [("0", Some(5.0)), ("1", Some(2.0))]);
}

#[test]
fn labels_may_contain_any_character() {
    let its = parse_sample(r#"a{b="x\"}, \\ y",c="z"} 2"#).expect("a sample");
    assert_eq!(its.labels, [("b".into(), r#"x"}, \ y"#.into()), ("c".into(), "z".into())]);
    for bad in ["a", "a{b=\"c} 1", "a{b} 1", "a x", "a{\"} 1"] {
        assert!(parse_sample(bad).is_none(), "{bad}");
    }
}

#[test]
fn an_address_without_a_listener_gives_a_sentence() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").and_then(|port| port.local_addr()).expect("a port");
    assert!(HostPage::fetch(gone, Duration::from_millis(200)).is_err_and(|why| !why.is_empty()));
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = silent.local_addr().expect("its address");
    let answer = HostPage::fetch(at, Duration::from_millis(200));
    assert_eq!(answer.expect_err("it says nothing"), "it does not answer");
}
