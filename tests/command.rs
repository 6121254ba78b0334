//! Tests of the binary as a person or a program uses it: its output, the stream of the output, and the exit code.
#![allow(clippy::unwrap_used, reason = "a test may")]
#![allow(clippy::print_stdout, reason = "a test that is skipped says so")]

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;
use syscost_platform::testing::print_skipped;

const HEADINGS: [&str; 6] =
    ["What is timed", "What is not", "How we know", "What fools it", "Reading the number", "Source"];
const GROUPS: [&str; 5] = ["clock_read", "empty_loop", "known_work", "call", "syscall"];

/// A directory of Criterion's files that no other test knows.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("criterion")
    }

    /// Runs the binary with these arguments, without the variables that the user who runs the tests may have set.
    fn syscost(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_syscost"));
        for variable in ["SCALE", "MEASURE", "PREDICTIONS"] {
            command.env_remove(format!("SYSCOST_{variable}"));
        }
        command.env_remove("COLUMNS").env_remove("SYSCOST_TASK");
        command.args(arguments).env("CRITERION_HOME", self.path()).current_dir(self.0.path());
        command.stdin(Stdio::null()).output().unwrap()
    }

    /// The standard output of a command that must succeed.
    fn answer(&self, arguments: &[&str]) -> String {
        let output = self.syscost(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// The single sentence on the standard error with which the command must refuse.
    fn refusal(&self, arguments: &[&str]) -> String {
        let output = self.syscost(arguments);
        let sentence = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {sentence}");
        assert_eq!(sentence.matches("syscost: ").count(), 1, "{sentence}");
        assert!(sentence.starts_with("syscost: ") && output.stdout.is_empty(), "{sentence}");
        sentence
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// One smoke run, which several tests read and none changes.
static MEASURED: LazyLock<(Home, String)> = LazyLock::new(|| {
    let home = Home::new();
    let table = home.answer(&["run", "known_work", "--scale", "smoke", "--save-baseline", "main"]);
    (home, table)
});

#[test]
fn every_id_is_listed_in_order() {
    let listed = Home::new().answer(&["list"]);
    let ids: String = listed.lines().map(|line| line.split('\t').next().unwrap().to_owned() + "\n").collect();
    // A test of the library compares the ids with the lists in `fixtures`, one for each architecture.
    let of_group =
        |group: &syscost::Group| (group.cases)().iter().map(|c| group.id(c) + "\n").collect::<String>();
    assert_eq!(ids, syscost::suite::GROUPS.iter().map(of_group).collect::<String>());
}

#[test]
fn a_case_in_a_pipe_is_a_line_of_three_cells() {
    let listed = Home::new().answer(&["list"]);
    for line in listed.lines() {
        let cells: Vec<_> = line.split('\t').collect();
        assert!(cells.len() == 3 && cells.iter().all(|cell| !cell.is_empty()), "{line}");
    }
}

#[test]
fn a_list_for_a_program_says_the_same() {
    let home = Home::new();
    let cases: Vec<Value> = serde_json::from_str(&home.answer(&["list", "known_work", "--json"])).unwrap();
    assert_eq!(cases[0]["id"], "known_work/add");
    assert_eq!(cases.len(), home.answer(&["list", "known_work"]).lines().count());
    for case in cases {
        assert_eq!(case["runs_here"].as_bool().unwrap(), case["missing"].is_null(), "{case}");
    }
}

#[test]
fn a_filter_lists_a_part() {
    let home = Home::new();
    assert_eq!(home.answer(&["list", "known_work/add", "--exact"]).lines().count(), 1);
    assert!(home.refusal(&["list", "known_work/ad", "--exact"]).contains("no case matches"));
    assert!(home.refusal(&["list", "("]).contains("not a regular expression"));
}

#[test]
fn every_manual_has_all_its_headings() {
    for group in GROUPS {
        let manual = Home::new().answer(&["explain", group]);
        for heading in HEADINGS {
            assert!(manual.lines().any(|line| line == heading), "{group}: {heading}\n{manual}");
        }
        assert!(manual.lines().all(|line| line.chars().count() <= 80), "{manual}");
    }
}

#[test]
fn a_case_is_explained_with_its_claims() {
    let text = Home::new().answer(&["explain", "call/u64/3"]);
    for words in ["direct call, 3 u64 arguments", "entered once an iteration", "core cycles", "What fools it"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn the_beginning_of_ids_explains_the_cases_below_it() {
    let text = Home::new().answer(&["explain", "call/u64"]);
    assert!(text.contains("direct call, 3 u64 arguments") && !text.contains("u32 arguments"), "{text}");
}

#[test]
fn an_unknown_name_is_refused_with_the_nearest_known_ones() {
    let home = Home::new();
    let sentence = home.refusal(&["explain", "coll"]);
    assert!(
        sentence.contains("no group coll; the nearest are call, ") && sentence.contains("syscost list"),
        "{sentence}"
    );
    assert!(home.refusal(&["help", "metod"]).contains("the nearest topics are method, "));
    let sentence = home.refusal(&["explain", "call/u65/3"]);
    assert!(sentence.contains("no case call/u65/3; the nearest are call/u6"), "{sentence}");
    assert!(home.refusal(&["run", "getpdi"]).contains("syscall/getpid"));
    assert!(home.refusal(&["run", "--measure", "miles"]).contains("no event miles"));
    assert!(home.refusal(&["run", "--scale", "huge"]).contains("smoke, default, full"));
    assert!(home.refusal(&["run", "--sample-size", "3"]).contains("--sample-size"));
    assert!(home.refusal(&["lst"]).contains("list"));
}

#[test]
fn without_arguments_the_program_prints_an_overview() {
    let home = Home::new();
    let output = home.syscost(&[]);
    assert_eq!(output.status.code(), Some(0));
    let overview = text(&output.stdout);
    assert!(
        overview.contains("syscost report") && overview.contains("Nothing was measured here"),
        "{overview}"
    );
    assert!(home.answer(&["--version"]).starts_with("syscost "));
    let commands = [
        "run",
        "record",
        "baseline",
        "list",
        "explain",
        "report",
        "compare",
        "runs",
        "doctor",
        "fingerprint",
    ];
    for command in commands {
        assert!(home.answer(&["--help"]).contains(command));
        assert!(home.answer(&[command, "--help"]).contains("Usage:"), "{command}");
    }
}

#[test]
fn a_run_ends_with_a_table() {
    let (_, table) = &*MEASURED;
    assert!(table.contains("known_work") && table.contains("expected"), "{table}");
    assert!(table.contains("2 measured, 0 skipped, 0 failed"), "{table}");
}

#[test]
fn a_run_is_reported_in_every_format() {
    let (home, _) = &*MEASURED;
    for format in ["terminal", "markdown", "json", "csv"] {
        let report = home.answer(&["report", "--format", format]);
        for name in ["add", "multiply"] {
            assert!(report.contains(name), "{format}: {report}");
        }
    }
    let record: Value = serde_json::from_str(&home.answer(&["report", "--format", "json"])).unwrap();
    assert_eq!(record["groups"][0]["cases"][1]["id"], "known_work/multiply");
    let csv = home.answer(&["report", "--format", "csv"]);
    let ids: Vec<_> = csv.lines().skip(1).map(|line| line.split(',').next().unwrap()).collect();
    assert_eq!(ids, ["known_work/add", "known_work/multiply"]);
}

#[test]
fn a_run_is_found_by_name_by_path_and_under_a_home() {
    let (home, _) = &*MEASURED;
    let runs: Vec<Value> = serde_json::from_str(&home.answer(&["runs", "--json"])).unwrap();
    let (name, path) = (runs[0]["run"].as_str().unwrap(), runs[0]["path"].as_str().unwrap());
    assert_eq!((&runs[0]["measured"], &runs[0]["scale"]), (&2.into(), &"smoke".into()));
    let newest = home.answer(&["report"]);
    assert_eq!(home.answer(&["report", name]), newest);
    assert_eq!(Home::new().answer(&["report", path]), newest);
    assert_eq!(Home::new().answer(&["report", "--home", home.path().to_str().unwrap()]), newest);
    let line = home.answer(&["runs"]);
    assert!(line.starts_with(&format!("{name}\t")) && line.ends_with("\t2\t0\t0\t0\n"), "{line}");
}

/// Writes a file `NAME.json` with five boots of the measured run, in which the cost of `known_work/add` is multiplied by `factor`.
fn boots(home: &Home, name: &str, factor: f64) {
    let whole = MEASURED.0.answer(&["report", "--format", "json"]);
    let record: Value = serde_json::from_str(&whole).unwrap();
    let boot = |at: u32| {
        let mut record = record.clone();
        record["run"] = format!("{name}-{at}").into();
        record["session"] = Value::Null;
        record["boot"] = format!("{name}-{at}").into();
        for case in record["groups"][0]["cases"].as_array_mut().unwrap() {
            let is_add = case["id"] == "known_work/add";
            let noise = 1.0 + 0.0001 * f64::from(at);
            let cost = Value::from(if is_add { factor } else { 1.0 } * noise * 100.0);
            let measured = &mut case["outcome"]["measured"];
            for end in measured["median"].as_object_mut().unwrap().values_mut() {
                *end = cost.clone();
            }
            measured["executions"][0]["low"] = cost;
        }
        record.to_string() + "\n"
    };
    home.file(&format!("{name}.json"), &(0..5).map(boot).collect::<String>());
}

#[test]
fn baselines_are_compared_in_every_format() {
    let home = Home::new();
    boots(&home, "old", 1.0);
    boots(&home, "new", 1.1);
    let asked = ["compare", "old.json", "new.json"];
    let rows = home.answer(&asked);
    let cells: Vec<_> = rows.lines().next().unwrap().split('\t').collect();
    assert_eq!((cells.len(), cells[0], cells[4]), (5, "known_work/add", "slower"), "{rows}");
    assert!(rows.lines().nth(1).unwrap().ends_with("\tsame"), "{rows}");
    let format = |format: &str| home.answer(&[&asked[..], &["--format", format]].concat());
    let table = format("terminal");
    assert!(table.starts_with("new against old\n") && table.contains(" *+10.0%*\n"), "{table}");
    assert!(table.contains("1 slower, 0 faster, 1 same, 0 inconclusive, 0 incomparable; the median row"));
    assert!(format("markdown").contains("**+10.0%**"));
    assert!(format("csv").contains("known_work/add,known_work,new,old,ns,"));
    let json: Value = serde_json::from_str(&format("json")).unwrap();
    assert_eq!(json["tally"]["verdicts"]["slower"], 1);
    assert_eq!(json["rows"][0]["cells"][1]["change"]["verdict"], "slower");
    assert_eq!(format("json"), format("json"));
    assert_eq!(
        home.answer(&["compare", "old.json", "new.json", "--format", "csv", "--output", "out.csv"]),
        ""
    );
    assert_eq!(std::fs::read_to_string(home.0.path().join("out.csv")).unwrap(), format("csv"));
}

#[test]
fn a_comparison_shows_what_is_asked_for() {
    let home = Home::new();
    boots(&home, "old", 1.0);
    boots(&home, "new", 1.1);
    let shown = |more: &[&str]| {
        let asked = [&["compare", "new.json", "old.json", "old.json", "--format", "terminal"], more].concat();
        home.answer(&asked)
    };
    let changed = shown(&["--only", "changed"]);
    assert!(
        changed.contains("1 row without a change left out") && !changed.contains("multiply"),
        "{changed}"
    );
    assert!(changed.contains("0 slower, 2 faster, 2 same"), "what was left out is counted: {changed}");
    assert!(!shown(&["--filter", "add$"]).contains("multiply"));
    assert!(shown(&["--threshold", "20%"]).contains("0 slower, 0 faster, 4 same"));
}

#[test]
fn one_run_a_side_is_shown_and_not_judged() {
    let (home, _) = &*MEASURED;
    let output = home.syscost(&["compare", "main", "main", "--format", "terminal"]);
    let table = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0));
    for words in ["main (2)", "unreplicated: one ", "1 of its runs are also in main", ")?"] {
        assert!(table.contains(words), "{words}: {table}");
    }
}

#[test]
fn the_kernels_of_one_file_are_sides_by_kernel() {
    let home = Home::new();
    boots(&home, "old", 1.0);
    boots(&home, "new", 2.0);
    let read = |name: &str| std::fs::read_to_string(home.0.path().join(name)).unwrap();
    let record: Value = serde_json::from_str(read("new.json").lines().next().unwrap()).unwrap();
    let release = format!("\"kernel_release\":{}", record["fingerprint"]["kernel_release"]);
    let other = read("new.json").replace(&release, "\"kernel_release\":\"9.9.9-other\"");
    home.file("both.json", &(read("old.json") + &other));
    let table = home.answer(&["compare", "--by", "kernel", "both.json", "--format", "terminal"]);
    assert!(table.contains("9.9.9-other"), "{table}");
    let rows = home.answer(&["compare", "--by", "kernel", "both.json"]);
    let add = rows.lines().find(|line| line.starts_with("known_work/add\t")).unwrap();
    assert_eq!(add.split('\t').count(), 5, "{add}");
    assert!(home.refusal(&["compare", "--by", "kernel", "old.json"]).contains("compares kernels"));
}

#[test]
fn what_cannot_be_compared_is_refused_by_its_reason() {
    let home = Home::new();
    boots(&home, "old", 1.0);
    let whole = std::fs::read_to_string(home.0.path().join("old.json")).unwrap();
    home.file("counts.json", &whole.replace("\"unit\":\"ns\"", "\"unit\":\"page-faults\""));
    let sentence = home.refusal(&["compare", "old.json", "counts.json"]);
    assert!(sentence.contains("old counts ns, counts page-faults"), "{sentence}");
    assert!(home.refusal(&["compare", "old.json"]).contains("name two or more"));
    assert!(home.refusal(&["compare", "old.json", "nosuch"]).contains("nosuch"));
    assert!(
        home.refusal(&["compare", "old.json", "old.json", "--filter", "("]).contains("regular expression")
    );
    assert!(home.refusal(&["compare", "old.json", "old.json", "--filter", "xyz"]).contains("matches"));
    assert!(home.refusal(&["compare", "old.json", "old.json", "--threshold", "much"]).contains("percent"));
}

#[test]
fn a_run_is_stored_in_the_named_home() {
    let (home, elsewhere) = (Home::new(), Home::new());
    let directory = elsewhere.path();
    let told =
        ["run", "known_work/add", "--exact", "--scale", "smoke", "--home", directory.to_str().unwrap()];
    home.answer(&told);
    assert_eq!(home.answer(&["runs"]), "");
    assert_eq!(elsewhere.answer(&["runs"]).lines().count(), 1);
    assert!(directory.join("known_work/add/base/estimates.json").is_file());
}

#[test]
fn the_sources_of_published_values_stand_below_the_table() {
    let (home, _) = &*MEASURED;
    for how in [&["--format", "terminal", "--all"][..], &["--format", "markdown"]] {
        let report = home.answer(&[&["report", "--against", "csc501,cse221"], how].concat());
        assert!(report.contains("csc501: CSC501 project, ThinkPad"), "{report}");
        assert!(report.contains("cse221: CSE221 project"), "{report}");
        assert!(!report.contains("csc501 syscall/getpid"), "{report}");
    }
}

#[test]
fn the_rows_of_both_reports_stand_beside_ours() {
    let (home, _) = &*MEASURED;
    let report = home.answer(&["report", "--against", "csc501,cse221"]);
    for words in [
        "they expected",
        "getppid called in a loop",
        "memcpy of 16 MB",
        "no row: figure",
        "not in this run",
        "CSE221 project",
    ] {
        assert!(report.contains(words), "{words}: {report}");
    }
}

#[test]
fn a_group_and_a_pattern_choose_what_is_reported() {
    let (home, _) = &*MEASURED;
    let whole = home.answer(&["report", "--all"]);
    assert!(whole.contains("── known_work ") && whole.contains("multiply"), "{whole}");
    assert_eq!(home.answer(&["report", "--group", "known_work"]), whole);
    let only = home.answer(&["report", "--only", "known_work/a*"]);
    assert!(only.contains("add") && !only.contains("multiply"), "{only}");
    assert!(home.refusal(&["report", "--only", "nosuch*"]).contains("nosuch*"));
    assert!(home.refusal(&["report", "--group", "call"]).contains("it has known_work"));
}

#[test]
fn a_run_of_several_groups_is_one_screen_unless_its_tables_are_asked_for() {
    let (home, _) = &*MEASURED;
    let mut record: Value = serde_json::from_str(&home.answer(&["report", "--format", "json"])).unwrap();
    let mut other = record["groups"][0].clone();
    other["name"] = "other".into();
    for case in other["cases"].as_array_mut().unwrap() {
        let id = case["id"].as_str().unwrap().replacen("known_work", "other", 1);
        case["id"] = id.into();
    }
    record["groups"].as_array_mut().unwrap().push(other);
    let elsewhere = Home::new();
    let file = elsewhere.file("two.json", &record.to_string());
    let screen = elsewhere.answer(&["report", &file]);
    assert!(
        screen.lines().count() <= 50 && screen.lines().all(|line| line.chars().count() <= 100),
        "{screen}"
    );
    assert!(screen.contains("operation") && screen.contains("syscost report --group NAME`"), "{screen}");
    assert!(elsewhere.answer(&["report", &file, "--all"]).contains("── other "));
}

#[test]
fn completions_and_manual_pages_list_the_commands() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(home.answer(&["completions", shell]).contains("explain"), "{shell}");
    }
    let complete = |words: &str| bash_completion(&home, words, "");
    for command in ["run", "ab", "record"] {
        assert_eq!(complete(&format!("syscost {command} --scale")), "smoke default full", "{command}");
    }
    let topics = complete("syscost help");
    for word in ["tracking", "limits", "run", "history"] {
        assert!(topics.split(' ').any(|offered| offered == word), "{word}: {topics}");
    }
    assert!(complete("syscost help baseline").contains("save"));
    let directory = home.path().join("man");
    home.answer(&["man", directory.to_str().unwrap()]);
    let page = std::fs::read_to_string(directory.join("syscost-run.1")).unwrap();
    assert!(page.contains("scale") && directory.join("syscost.1").is_file(), "{page}");
}

/// The completions that bash offers after `words` for a word that begins with `begun`.
fn bash_completion(home: &Home, words: &str, begun: &str) -> String {
    // The script is in a file, because it is longer than a word of a command line may be.
    let file = home.file("syscost.bash", &home.answer(&["completions", "bash"]));
    let text = format!(
        "source '{file}'\nCOMP_WORDS=({words} '{begun}'); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n_syscost syscost '{begun}' \"${{COMP_WORDS[COMP_CWORD-1]}}\"; echo \"${{COMPREPLY[@]}}\""
    );
    shell_output("bash", &text).unwrap()
}

/// The output of this shell, with our program first in its search path; `None` if the shell is not installed.
fn shell_output(shell: &str, text: &str) -> Option<String> {
    let directory = std::path::Path::new(env!("CARGO_BIN_EXE_syscost")).parent().unwrap().display();
    let path = format!("{directory}:{}", std::env::var("PATH").unwrap_or_default());
    let output =
        Command::new(shell).args(["-c", text]).env("PATH", path).stdin(Stdio::null()).output().ok()?;
    assert!(output.stderr.is_empty(), "{shell}: {}", self::text(&output.stderr));
    Some(self::text(&output.stdout).trim().to_owned())
}

#[test]
fn bash_completes_ids_wherever_one_may_stand() {
    let home = Home::new();
    for command in ["run", "ab", "record", "gate", "list", "explain"] {
        let offered = bash_completion(&home, &format!("syscost {command}"), "known_work/");
        assert_eq!(offered, "known_work/add known_work/multiply", "{command}");
    }
    assert!(bash_completion(&home, "syscost run", "--").contains("--scale"));
    assert_eq!(bash_completion(&home, "syscost doctor", "known_work/"), "");
}

#[test]
fn fish_completes_ids_and_their_titles() {
    let home = Home::new();
    let file = home.file("syscost.fish", &home.answer(&["completions", "fish"]));
    let text = format!("source '{file}'; complete -C 'syscost explain known_work/m'");
    let Some(offered) = shell_output("fish", &text) else { return print_skipped("there is no fish") };
    assert!(offered.starts_with("known_work/multiply\t"), "{offered}");
    assert_eq!(offered.lines().count(), 1, "{offered}");
}

/// A terminal of zsh, in which the user begins an id and presses the tabulator key.
const ZSH: &str = r#"zmodload zsh/zpty; zpty t zsh -f -i
zpty -w t 'PS1=; autoload -Uz compinit; compinit -u -D; source FILE; print rea''dy'
zpty -r t seen '*ready*' && zpty -w -n t $'syscost explain known_work/m\t' && zpty -r t seen '*/multiply*' && print complete"#;

#[test]
fn zsh_completes_ids() {
    let home = Home::new();
    let file = home.file("_syscost", &home.answer(&["completions", "zsh"]));
    // If the completion fails, zsh waits for ever.
    let ended = format!("timeout -k 1 60 zsh -fc {}", shell_quoted(&ZSH.replace("FILE", &file)));
    if shell_output("zsh", "zmodload zsh/zpty").is_none() {
        return print_skipped("there is no zsh");
    }
    assert_eq!(shell_output("sh", &ended).unwrap(), "complete");
}

fn shell_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[test]
fn bash_completes_what_an_installed_tool_has() {
    let tool = std::path::Path::new(env!("CARGO_BIN_EXE_syscost")).with_file_name("syscost-track");
    if !tool.is_file() {
        return print_skipped("syscost-track is not built: cargo build --workspace");
    }
    let home = Home::new();
    let offered = bash_completion(&home, "syscost history", "");
    for word in ["measure", "changes", "bisect"] {
        assert!(offered.split(' ').any(|one| one == word), "{word}: {offered}");
    }
    assert_eq!(bash_completion(&home, "syscost history measure", "known_work/m"), "known_work/multiply");
    assert_eq!(bash_completion(&home, "syscost fleet plan --print", ""), "name store");
    assert!(bash_completion(&home, "syscost help fleet", "").contains("collect"));
}

#[test]
fn a_report_is_written_whole() {
    let (measured, _) = &*MEASURED;
    let home = Home::new();
    let file = home.file("out.csv", "what was there before");
    let from = measured.path();
    let asked = ["report", "--home", from.to_str().unwrap(), "--format", "csv", "--output", "out.csv"];
    assert_eq!(home.answer(&asked), "");
    assert_eq!(std::fs::read_to_string(file).unwrap(), measured.answer(&["report", "--format", "csv"]));
}

#[test]
fn one_group_is_reported_by_itself() {
    let (home, _) = &*MEASURED;
    assert_eq!(home.answer(&["report", "--group", "known_work"]), home.answer(&["report"]));
    assert!(home.refusal(&["report", "--group", "call"]).contains("it has known_work"));
}

#[test]
fn without_a_run_the_error_says_how_to_start_one() {
    let home = Home::new();
    let sentence = home.refusal(&["report"]);
    assert!(sentence.contains("cargo bench") && sentence.contains("syscost run"), "{sentence}");
    assert!(sentence.contains(home.path().to_str().unwrap()), "{sentence}");
    assert!(home.refusal(&["report", "20261120T134405-1"]).contains("20261120T134405-1"));
    assert_eq!(home.answer(&["runs"]), "");
    assert_eq!(text(&home.syscost(&["runs"]).stderr), sentence);
    assert_eq!(home.answer(&["runs", "--json"]).trim(), "[]");
}

#[test]
fn a_truncated_run_is_named_and_hides_no_other() {
    let home = Home::new();
    let whole = MEASURED.0.answer(&["report", "--format", "json"]);
    home.file("criterion/syscost/runs/20260101T000000-1.json", &whole);
    home.file("criterion/syscost/runs/20260102T000000-1.json", &whole[..whole.len() / 2]);
    assert!(home.refusal(&["report"]).contains("20260102T000000-1.json"));
    home.answer(&["report", "20260101T000000-1"]);
    let listed = |words: &[&str]| {
        let listed = home.syscost(words);
        assert_eq!(listed.status.code(), Some(2), "{listed:?}");
        text(&listed.stdout)
    };
    let runs = listed(&["runs"]);
    assert!(runs.lines().nth(1).unwrap().starts_with("20260102T000000-1\tdamaged\t"), "{runs}");
    let runs: Vec<Value> = serde_json::from_str(&listed(&["runs", "--json"])).unwrap();
    assert!(runs[0]["damaged"].is_null() && runs[1]["damaged"].is_string());
}

#[test]
fn a_run_in_another_unit_is_found_too() {
    let home = Home::new();
    let whole = MEASURED.0.answer(&["report", "--format", "json"]).replace("\"ns\"", "\"page-faults\"");
    home.file("criterion-page-faults/syscost/runs/20260101T000000-1.json", &whole);
    assert!(home.answer(&["report", "--format", "csv"]).contains(",page-faults,"));
    assert!(home.refusal(&["report", "--against", "csc501"]).contains("page-faults"));
}

#[test]
fn predictions_are_shown_or_refused_by_place() {
    let (home, _) = &*MEASURED;
    let elsewhere = Home::new();
    let good =
        elsewhere.file("good.toml", "[\"known_work/add\"]\nhardware_ns = 123.0\n[\"no/case\"]\nwhy = \"\"");
    let output = home.syscost(&["report", "--predictions", &good]);
    assert!(text(&output.stdout).contains("123.0 ns"), "{}", text(&output.stdout));
    assert!(text(&output.stderr).contains("no/case"), "{}", text(&output.stderr));
    let sentence = home.refusal(&["run", "known_work", "--predictions", &good]);
    assert!(sentence.contains("no case no/case to predict; the nearest are"), "{sentence}");
    let filtered = elsewhere.file("filtered.toml", "[\"call/u64/3\"]\nhardware_ns = 1.0");
    let silent = home.syscost(&["report", "--predictions", &filtered]);
    assert_eq!(text(&silent.stderr), "");
    let bad = elsewhere.file("bad.toml", "[\"known_work/add\"]\nhardware_ns = -1");
    for command in ["report", "run"] {
        let sentence = home.refusal(&[command, "--predictions", &bad]);
        for words in ["bad.toml", "key `hardware_ns`", "expected a number of nanoseconds"] {
            assert!(sentence.contains(words), "{words}: {sentence}");
        }
    }
}

#[test]
fn an_unknown_machine_is_answered_with_the_known_ones() {
    let sentence = MEASURED.0.refusal(&["report", "--against", "nosuch"]);
    assert!(sentence.contains("`nosuch`") && sentence.contains("csc501"), "{sentence}");
}

#[test]
fn the_doctor_speaks_json_and_exits_by_what_was_found() {
    let output = Home::new().syscost(&["doctor", "--json"]);
    let findings: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(i32::from(!findings.is_empty())));
    for finding in findings {
        assert!(["fact", "why", "remedy"].iter().all(|part| finding[part].is_string()), "{finding}");
    }
}

#[test]
fn a_machine_is_comparable_with_itself() {
    let (home, _) = &*MEASURED;
    let path = home.path();
    let path = path.to_str().unwrap();
    let facts = home.answer(&["fingerprint"]);
    assert!(facts.lines().any(|line| line.starts_with("kernel_release\t")), "{facts}");
    let facts: Value = serde_json::from_str(&home.answer(&["fingerprint", "--json"])).unwrap();
    assert!(facts["architecture"].is_string());
    let runs: Vec<Value> = serde_json::from_str(&home.answer(&["runs", "--json"])).unwrap();
    let asked = ["fingerprint", "--home", path, "--against", runs[0]["run"].as_str().unwrap(), "--json"];
    let differences: Vec<Value> = serde_json::from_str(&home.answer(&asked)).unwrap();
    assert!(differences.iter().all(|d| d["weight"] != "incomparable"), "{differences:?}");
}

#[test]
fn a_closed_pipe_of_the_output_is_no_error() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_syscost"));
    let mut child =
        command.args(["explain", "call"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
}

#[test]
fn a_full_disk_is_an_error() {
    let home = Home::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_syscost"));
    let output = command.arg("list").env("CRITERION_HOME", home.path()).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("standard output"), "{}", text(&output.stderr));
}

#[test]
fn every_topic_is_listed_and_printed() {
    let home = Home::new();
    let help = home.answer(&["help"]);
    assert_eq!(help, home.answer(&["--help"]));
    let (_, topics) = help.split_once("Topics (syscost help TOPIC):\n").unwrap();
    let topics: Vec<_> = topics.lines().map_while(|line| line.split_whitespace().next()).collect();
    assert!(topics.contains(&"method") && topics.contains(&"limits"), "{topics:?}");
    for topic in topics {
        let page = home.answer(&["help", topic]);
        assert!(page.lines().count() > 5 && !page.contains("```") && !page.contains("<!--"), "{page}");
    }
}

#[test]
fn help_for_a_command_is_what_the_command_prints() {
    let home = Home::new();
    for command in [&["run"][..], &["baseline", "save"]] {
        let help = home.answer(&[&["help"], command].concat());
        assert_eq!(help, home.answer(&[command, &["--help"]].concat()));
    }
    assert!(home.refusal(&["help", "baseline", "nosuch"]).contains("nosuch"));
}

#[test]
fn a_tool_that_is_missing_is_named_with_how_to_get_it_and_a_misspelt_one_is_suggested() {
    let home = Home::new();
    assert!(home.refusal(&["histori"]).contains("'history'"));
    // A link instead of a copy, which may still be open for writing in the child of another test (ETXTBSY).
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let lonely = directory.path().join("syscost");
    std::fs::hard_link(env!("CARGO_BIN_EXE_syscost"), &lonely).unwrap();
    for words in [&["history", "list"][..], &["help", "history"]] {
        let output = Command::new(&lonely).args(words).env("PATH", directory.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(
            text(&output.stderr).contains("cargo install --path crates/track"),
            "{}",
            text(&output.stderr)
        );
    }
    // Any other program of this form is started, too, with all words.
    let tool = directory.path().join("syscost-coffee");
    std::fs::write(&tool, "#!/bin/sh\necho \"$@\"\n").unwrap();
    std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let output =
        Command::new(&lonely).args(["coffee", "--black"]).env("PATH", directory.path()).output().unwrap();
    assert_eq!(text(&output.stdout), "coffee --black\n");
}

#[test]
fn the_readme_is_short() {
    assert!(include_str!("../README.md").lines().count() <= 250);
}
