//! `syscost fleet`: a job on this host, its record, and jobs that cannot be measured.

use crate::place::{Ended, Place, SYSCOST, alone};
use crate::process;
use nix::sys::signal::Signal;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

const EXPERIMENT: [&str; 2] = ["fleet", "here.toml"];

/// An experiment on this host whose two kernels are two names of the running kernel, so that there is no change.
fn place() -> (Place, [String; 2]) {
    let place = Place::new();
    let release = nix::sys::utsname::uname().unwrap().release().to_str().unwrap().to_owned();
    let first = release.split(['.', '-']).next().unwrap().to_owned();
    let names = [first, release];
    experiment(&place, &names, 1);
    (place, names)
}

fn experiment(place: &Place, kernels: &[String; 2], minutes: u32) {
    let text = format!(
        "name = \"here\"\nhosts = [\"h1\", \"h2\"]\nkernels = {kernels:?}\ncases = \"^known_work/add$\"\nrepeats = 1\n\
         processes = 1\nscale = \"smoke\"\nminutes = {minutes}\n"
    );
    std::fs::write(place.path().join("here.toml"), text).unwrap();
}

fn fleet(place: &Place, what: &str, words: &[&str]) -> Command {
    place.syscost(&[&[EXPERIMENT[0], what, EXPERIMENT[1]], words].concat())
}

fn measure(place: &Place, host: &str, kernel: &str) -> Option<Ended> {
    place.succeeds(|| fleet(place, "measure", &[host, kernel, "1"]))
}

fn record(place: &Place, host: &str, kernel: &str) -> PathBuf {
    place.path().join("here.fleet").join(host).join(kernel).join("1.json")
}

#[test]
fn a_fleet_of_this_host_is_planned_measured_collected_and_compared() {
    let (place, kernels) = place();
    let [a, b] = &kernels;
    place
        .end(fleet(&place, "plan", &[]))
        .says(0, &[&format!("h1\t{a}\t1\t1\tk{a}\n"), &format!("h2\t{b}\t1\t1\t")]);
    place.end(fleet(&place, "compare", &[])).says(1, &["no machine has records of two kernels"]);
    for host in ["h1", "h2"] {
        for kernel in &kernels {
            if measure(&place, host, kernel).is_none() {
                return;
            }
        }
    }
    let known = std::fs::read(record(&place, "h1", a)).unwrap();
    place.end(fleet(&place, "measure", &["h1", a, "1"])).says(0, &["is there already"]);
    assert_eq!(std::fs::read(record(&place, "h1", a)).unwrap(), known, "measured once");
    let status = place.end(fleet(&place, "status", &[]));
    assert_eq!((status.code, status.output.matches("\tdone\t").count()), (Some(0), 4), "{status:?}");
    let metrics = place.end(fleet(&place, "status", &["--metrics"])).output;
    assert_eq!(metrics.matches("state=\"done\"} 1").count(), 4, "{metrics}");
    let compared = place.end(fleet(&place, "compare", &["--json"]));
    let answer: serde_json::Value = serde_json::from_str(&compared.output).unwrap();
    assert_eq!(answer["columns"][0]["cases"][0]["id"], "known_work/add", "{answer}");
    let warning = answer["warnings"][0].as_str().unwrap();
    assert!(warning.contains("h1, h2 ran under one boot"), "{warning}");

    // The records are collected twice into another store, with files that do not belong there.
    let from = place.path().join("here.fleet");
    std::fs::create_dir_all(from.join("h1/\u{1b}[2J")).unwrap();
    std::fs::copy(record(&place, "h1", a), record(&place, "h2", a)).unwrap();
    let collect = || fleet(&place, "collect", &["here.fleet", "--store", "other"]);
    place.end(collect()).says(1, &["3 new records, 0 known, 1 refused", "expected h2", "of no job of here"]);
    let again = place.end(collect());
    again.says(1, &["0 new records, 3 known, 1 refused"]);
    assert!(!again.error.contains('\u{1b}'), "{again:?}");
    place.is_tidy();
}

#[test]
fn another_running_kernel_is_reported_and_not_measured() {
    let (place, [_, running]) = place();
    let wanted = "0.0.1-none".to_owned();
    experiment(&place, &[running.clone(), wanted.clone()], 1);
    let said = format!("h1 asks for the kernel 0.0.1-none, and {running} is running");
    place.end(fleet(&place, "measure", &["h1", &wanted, "1"])).says(125, &[&said]);
    place.end(fleet(&place, "status", &[])).says(1, &[&format!("h1\t{wanted}\t1\tfailed\t{said}")]);
    assert!(!record(&place, "h1", &wanted).exists());
    place.end(fleet(&place, "measure", &["h9", &wanted, "1"])).refuses(&["no host \"h9\"", "h1, h2"]);
    place.is_tidy();
}

#[test]
fn an_interrupted_job_is_reported_and_can_be_measured_again() {
    let (place, [kernel, _]) = place();
    {
        let _alone = alone();
        let running = place.begin(fleet(&place, "measure", &["h1", &kernel, "1"]));
        process::one_measuring(&place, "known_work");
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(running.pid()), Signal::SIGTERM).unwrap();
        running.end().says(143, &["interrupted by SIGTERM"]);
    }
    place.end(fleet(&place, "status", &[])).says(1, &["\tfailed\tinterrupted by SIGTERM"]);
    if measure(&place, "h1", &kernel).is_some() {
        place.end(fleet(&place, "status", &[])).says(0, &["\tdone\t"]);
    }
    place.is_tidy();
}

#[test]
fn a_wrong_experiment_is_refused_with_its_field() {
    let (place, kernels) = place();
    experiment(&place, &kernels, 0);
    place.end(fleet(&place, "plan", &[])).refuses(&["here.toml: minutes: expected a number from 1"]);
    std::fs::write(place.path().join("here.toml"), "name = 3").unwrap();
    place.end(fleet(&place, "plan", &[])).refuses(&["here.toml: line 1: expected an experiment"]);
    std::fs::remove_file(place.path().join("here.toml")).unwrap();
    nix::unistd::mkfifo(&place.path().join("here.toml"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    place.end(fleet(&place, "plan", &[])).refuses(&["here.toml"]);
}

/// Writes the files of a host with three kernels, of which the last is running.
fn boot(place: &Place) {
    let entry = |release: &str, kind: &str| {
        format!("\tmenuentry 'Linux {release}' $menuentry_id_option 'gnulinux-{release}-{kind}-abc' {{\n")
    };
    let menu = "submenu 'Advanced' $menuentry_id_option 'gnulinux-advanced-abc' {\n".to_owned()
        + &entry("6.1.0-47-amd64", "advanced")
        + &entry("6.1.0-47-amd64", "recovery")
        + &entry("6.12.9-amd64", "advanced");
    let features = "Feature=k6_1 Helper=x\nFeature=k6_12 Helper=x\nFeature=k6_12_9_amd64 Helper=x\n";
    for (path, text) in [
        ("boot/grub/grub.cfg", menu.as_str()),
        ("etc/slurm/helpers.conf", features),
        ("proc/sys/kernel/osrelease", "6.12.9-amd64\n"),
        ("boot/vmlinuz-6.1.0-9-amd64", ""),
        ("boot/vmlinuz-6.1.0-47-amd64", ""),
        ("boot/vmlinuz-6.12.9-amd64", ""),
    ] {
        let path = place.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

#[test]
fn the_slurm_helper_prints_the_running_kernel_and_selects_the_next() {
    let place = Place::new();
    boot(&place);
    let helper = |feature: &[&str]| {
        let mut command =
            place.program(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/fleet/slurm-helper"));
        command.args(feature).env("SYSCOST_ROOT", place.path()).env("GRUB_REBOOT", "echo");
        place.end(command)
    };
    assert_eq!(helper(&[]).output, "k6_12\nk6_12_9_amd64\n", "and not k6_1, which is no beginning of 6.12");
    helper(&["k6_1"]).says(0, &["gnulinux-advanced-abc>gnulinux-6.1.0-47-amd64-advanced-abc"]);
    helper(&["k6_12"]).says(0, &["gnulinux-advanced-abc>gnulinux-6.12.9-amd64-advanced-abc"]);
    helper(&["k6_13"]).says(1, &["no kernel in", "is k6_13"]);
    std::fs::remove_file(place.path().join("boot/vmlinuz-6.1.0-47-amd64")).unwrap();
    helper(&["k6_1"]).says(1, &["has no entry of 6.1.0-9-amd64"]);
}

/// Runs `scripts/fleet/submit` with a simulated Slurm: `sbatch` stores each script under the name of its job and adds the job to
/// a file, which `squeue` lists.
fn submit(place: &Place, words: &[&str], path: &str) -> Ended {
    let tools = place.path().join("tools");
    std::fs::create_dir_all(&tools).unwrap();
    let keep = "for word; do case $word in --job-name=*) name=${word#*=};; --comment=*) store=${word#*=};; esac; done\n\
                echo \"$name $store\" >>queued; cat >\"script-$name\"\n";
    for (name, text) in [("sbatch", keep), ("squeue", "cat queued 2>/dev/null || true\n")] {
        let file = tools.join(name);
        std::fs::write(&file, format!("#!/bin/sh\n{text}")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = place.program(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/fleet/submit"));
    command.args(words).env("PATH", format!("{}:{path}", tools.display())).env("SYSCOST", SYSCOST);
    command.env_remove("SYSCOST_JOB").env_remove("SYSCOST_FEATURES");
    place.end(command)
}

const SYSTEM: &str = "/usr/bin:/bin";

#[test]
fn a_second_experiment_of_the_same_name_is_submitted_too() {
    let (place, _) = place();
    submit(&place, &["here.toml", "one"], SYSTEM).says(0, &["submitted 4, left out 0"]);
    submit(&place, &["here.toml", "one"], SYSTEM).says(0, &["submitted 0, left out 4"]);
    submit(&place, &["here.toml", "other"], SYSTEM).says(0, &["submitted 4, left out 0"]);
}

#[test]
fn jobs_use_the_store_of_the_experiment_however_its_name_is_quoted() {
    let (place, _) = place();
    let text = std::fs::read_to_string(place.path().join("here.toml")).unwrap();
    let named = text.replace("name = \"here\"", "name = 'here' # not \"there\"");
    std::fs::write(place.path().join("here.toml"), named).unwrap();
    submit(&place, &["here.toml"], SYSTEM).says(0, &["submitted 4"]);
    assert!(place.path().join("here.fleet").is_dir());
    std::fs::write(place.path().join("here.toml"), text.replace("name = \"here\"", "")).unwrap();
    submit(&place, &["here.toml"], SYSTEM).says(2, &["missing field `name`"]);
}

#[test]
fn a_program_that_is_missing_here_or_on_the_node_is_reported() {
    let (place, [kernel, _]) = place();
    submit(&place, &["here.toml"], SYSTEM).says(0, &["submitted 4"]);
    let script = std::fs::read_to_string(place.path().join(format!("script-here.h1.{kernel}.1"))).unwrap();
    let on_node = script.replace(SYSCOST, "/not/there/syscost");
    std::fs::write(place.path().join("on-node"), on_node).unwrap();
    let mut job = place.program("sh");
    job.arg("on-node");
    place.end(job).says(127, &[]);
    let said = format!("h1\t{kernel}\t1\tfailed\tthe job ended on ");
    place.end(fleet(&place, "status", &[])).says(1, &[&said, "with exit code 127", "not found"]);

    let mut command = place.program(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/fleet/submit"));
    command.arg("here.toml").env("SYSCOST", "no-such-program");
    command.env("PATH", format!("{}:{SYSTEM}", place.path().join("tools").display()));
    place.end(command).says(2, &["there is no program `no-such-program` here"]);
}
