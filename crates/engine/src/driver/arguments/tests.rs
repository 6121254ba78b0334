use super::*;

fn parsed(line: &str) -> Arguments {
    Arguments::parse(line.split_ascii_whitespace().map(OsString::from).collect()).expect("a good line")
}

#[test]
fn the_mode_follows_criterions_flags() {
    assert_eq!(parsed("--bench").mode, Mode::Measure);
    assert_eq!(parsed("").mode, Mode::Test);
    assert_eq!(parsed("--bench --test").mode, Mode::Test);
    assert_eq!(parsed("--bench --list --format terse").mode, Mode::List);
    assert_eq!(parsed("--bench --profile-time 5").mode, Mode::Foreign);
}

#[test]
fn all_before_the_dashes_is_parsed_and_not_passed_to_criterion() {
    let all = parsed("--bench --all -- --all");
    assert!(all.all && !parsed("--bench -- --all").all);
    assert_eq!(all.for_measuring_process(), ["--bench", "--", "--all"]);
}

#[test]
fn a_run_saves_as_base_unless_a_name_or_a_comparison_is_given() {
    assert_eq!(parsed("--bench").save.as_deref(), Some("base"));
    assert_eq!(parsed("--bench -s a").save.as_deref(), Some("a"));
    assert_eq!(parsed("--bench -b a").save, None);
    assert_eq!(parsed("--bench -b a").compare.as_deref(), Some("a"));
}

#[test]
fn a_run_that_may_not_save_passes_discard_baseline_to_criterion() {
    for line in
        ["--bench -s a", "--bench --save-baseline a", "--bench --save-baseline=a", "--bench -sa", "--bench"]
    {
        let words = parsed(line).without_saving().for_measuring_process();
        assert_eq!(words, ["--bench", "--discard-baseline"], "{line}");
    }
    let words = parsed("--bench -b a").without_saving().for_measuring_process();
    assert_eq!(words, ["--bench", "--baseline-lenient=a"]);
}

#[test]
fn values_at_which_criterion_would_panic_are_refused() {
    let lines = "--sample-size=9 --nresamples=0 --warm-up-time=0 --measurement-time=0 --confidence-level=1 \
        --significance-level=0 --noise-threshold=0 --profile-time=0 --output-format=x --color=x \
        --load-baseline=a --baseline=.. --save-baseline=a/b --save-baseline=new --save-baseline=";
    for line in lines.split_ascii_whitespace() {
        assert!(Arguments::parse(vec!["--bench".into(), line.into()]).is_err(), "{line}");
    }
    parsed("--sample-size 10 --nresamples 1 --warm-up-time 0.1 --confidence-level 0.99 --color never");
}

#[test]
fn a_measuring_process_gets_the_lenient_form_of_baseline() {
    for line in ["--bench --baseline a x", "--bench -b a x"] {
        assert_eq!(
            parsed(line).for_measuring_process(),
            ["--bench", "--baseline-lenient=a", "--", "x"],
            "{line}"
        );
    }
    for line in ["--baseline=a x", "-ba x", "-b=a x"] {
        assert_eq!(parsed(line).for_measuring_process(), ["--baseline-lenient=a", "--", "x"], "{line}");
    }
    for (line, words) in [
        ("--bench -s a", "--bench --save-baseline=a"),
        ("-- -ba", "-- -ba"),
        ("--bench --load-baseline a --baseline b", "--bench --baseline=b --load-baseline=a"),
    ] {
        assert_eq!(parsed(line).for_measuring_process().join(" ".as_ref()), words, "{line}");
    }
}

#[test]
fn help_shows_every_described_option_and_hides_the_others() {
    let asked = |line: &str| requested_help(line.split_ascii_whitespace().map(OsString::from));
    let text = asked("--help --bench").expect("an answer");
    for words in ["Usage: cargo bench -- ", "SYSCOST_CLOCK", "--exact ", "--sample-size <N>", "FILTER"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(HELP.iter().all(|(name, ..)| criterion_command().get_arguments().any(|a| a.get_id() == name)));
    assert!(!text.contains("noplot") && !text.contains("nresamples"), "{text}");
    assert_eq!((asked("--bench"), asked("--bogus")), (None, None));
}

#[test]
fn filters_are_expressions_unless_exact() {
    assert!(parsed("u64/.$ --bench").matcher().expect("regex")("call/u64/3"));
    assert!(!parsed("call/u64 --exact").matcher().expect("id")("call/u64/3"));
    assert!(!parsed("--ignored").matcher().expect("none")("call/u64/3"));
    let error = parsed("( --bench").matcher().err().expect("unbalanced").to_string();
    assert!(error.contains("regular expression"), "{error}");
}

#[test]
fn flags_of_other_harnesses_are_accepted() {
    for line in [
        "--bench --test-threads=1 -q --format json -Z unstable-options --report-time",
        "--test-threads 1 --nocapture --no-capture --show-output --shuffle --logfile x",
        "--list --format terse --ignored",
        "call/u64/3 --exact --nocapture --include-ignored",
        "-n -c never --bench",
    ] {
        parsed(line);
    }
    assert_eq!(parsed("--bench -q --format json x").for_measuring_process(), ["--bench", "--", "x"]);
    let matches = parsed("--skip u64/3 --skip f64").matcher().expect("texts");
    assert_eq!(["call/u64/3", "call/f64/1", "call/u64/4"].map(matches), [false, false, true]);
    let matches = parsed("--skip u64 --exact --skip call/u64/3").matcher().expect("texts");
    assert_eq!(["call/u64/3", "call/u64/4"].map(matches), [false, true]);
}

#[test]
fn a_word_that_is_refused_is_named() {
    for line in ["--bogus", "--bench -X", "x y", "--sample-size=2", "--color=x", "--skip", "--test-threads"] {
        let words: Vec<OsString> = line.split_ascii_whitespace().map(OsString::from).collect();
        let error = Arguments::parse(words).expect_err("wrong").to_string();
        let last = line.split_ascii_whitespace().last().expect("a word");
        let named = last.split('=').next().expect("a word");
        assert!(error.contains(named) && !error.contains("tip:"), "{line}: {error}");
    }
}

#[test]
fn only_criterions_own_options_are_passed_to_it() {
    for (line, known) in [
        ("--bench --test-threads=1 x", "--bench -- x"),
        ("--bench --test-threads 1 x", "--bench -- x"),
        ("--skip a --skip=b --exact x", "--exact -- x"),
        ("--format json --list", "--list"),
        ("--format=terse --list", "--list"),
        ("-q --bench", "--bench"),
        ("-qv --bench", "--bench --verbose"),
        ("-Z unstable-options --report-time=plain -Zx x", "-- x"),
        ("--report-time x", "-- x"),
        ("-P2 --bench", "--bench"),
        ("--copies=4 --bench", "--bench"),
        ("--all --bench -- --all", "--bench -- --all"),
        ("--nocapture --quiet -s quick", "--nocapture --quiet --save-baseline=quick"),
    ] {
        assert_eq!(parsed(line).for_measuring_process().join(" ".as_ref()), known, "{line}");
    }
}
