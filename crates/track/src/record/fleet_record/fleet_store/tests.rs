use super::*;
use crate::record::fleet_record::job_record::tests::sample_record;
use std::os::unix::fs::symlink;

fn experiment() -> Experiment {
    Experiment {
        name: "fork".into(),
        hosts: vec!["n1".into(), "n2".into()],
        kernels: vec!["6.1".into(), "6.12".into()],
        cases: None,
        repeats: 2,
        processes: 3,
        scale: "smoke".into(),
        minutes: 10,
    }
}

fn bytes(record: &JobRecord) -> Vec<u8> {
    record.sealed_bytes(Path::new("x")).unwrap()
}

fn store() -> (tempfile::TempDir, FleetStore) {
    let place = tempfile::tempdir().unwrap();
    let store = FleetStore::from_root(&place.path().join("fork.fleet"));
    (place, store)
}

#[test]
fn a_record_is_stored_once_and_the_earlier_of_two_stays() {
    let ((_place, store), experiment) = (store(), experiment());
    let job = experiment.find_job("n1", "6.12", 1).unwrap();
    let first = sample_record("n1", "6.12", 1);
    let second = JobRecord { started: first.started + 60, ..first.clone() };
    assert_eq!(store.add(&experiment, job, &bytes(&second)).unwrap(), Added::New);
    assert_eq!(store.add(&experiment, job, &bytes(&second)).unwrap(), Added::Known);
    assert_eq!(store.add(&experiment, job, &bytes(&first)).unwrap(), Added::Earlier);
    assert_eq!(store.add(&experiment, job, &bytes(&second)).unwrap(), Added::Later);
    assert_eq!(store.load_record(&experiment, job).unwrap(), Some(first));
    assert_eq!(store.progress(&experiment, job, 0), Progress::Done);
}

#[test]
fn a_record_of_another_job_or_kernel_is_refused() {
    let ((_place, store), experiment) = (store(), experiment());
    let job = experiment.find_job("n1", "6.12", 1).unwrap();
    let mut elsewhere = sample_record("n1", "6.12", 1);
    elsewhere.experiment = "other".into();
    let mut lying = sample_record("n1", "6.12", 1);
    lying.fingerprint.kernel_release = Some("6.1.9".into());
    for (wrong, said) in [
        (sample_record("n2", "6.12", 1), "expected n1 6.12 1, found n2 6.12 1"),
        (elsewhere, "experiment: expected fork, found other"),
        (lying, "6.1.9 is running"),
    ] {
        let error = store.add(&experiment, job, &bytes(&wrong)).expect_err(said).to_string();
        assert!(error.contains(said), "{error}");
    }
    assert_eq!(store.progress(&experiment, job, 0), Progress::Missing);
}

#[test]
fn a_job_is_lost_after_its_limit_and_a_failure_has_its_reason() {
    let ((_place, store), experiment) = (store(), experiment());
    let job = experiment.find_job("n2", "6.1", 2).unwrap();
    assert_eq!(store.progress(&experiment, job, 5_000), Progress::Missing);
    store.record_start(job, 1_000).unwrap();
    assert_eq!(store.progress(&experiment, job, 1_600), Progress::Running(600));
    assert_eq!(store.progress(&experiment, job, 1_601), Progress::Lost(601));
    store.record_failure(job, "no\u{1b}[2J disk\n").unwrap();
    assert_eq!(store.progress(&experiment, job, 1_601), Progress::Failed("no\u{fffd}[2J disk".into()));
    store.record_start(job, 2_000).unwrap();
    assert_eq!(store.progress(&experiment, job, 2_001), Progress::Running(1), "begun again");
}

#[test]
fn a_record_that_is_copied_twice_is_stored_once_and_notes_are_copied_too() {
    let ((place, store), experiment) = (store(), experiment());
    let inbox = FleetStore::from_root(&place.path().join("inbox"));
    let [done, failed] = [("n1", "6.1"), ("n2", "6.1")].map(|(h, k)| experiment.find_job(h, k, 1).unwrap());
    inbox.add(&experiment, done, &bytes(&sample_record("n1", "6.1", 1))).unwrap();
    inbox.record_start(failed, 1_000).unwrap();
    inbox.record_failure(failed, "no disk").unwrap();
    for added in [Added::New, Added::Known] {
        assert_eq!(store.copy_from(&experiment, done, &inbox).unwrap(), Some(added));
        assert_eq!(store.copy_from(&experiment, failed, &inbox).unwrap(), None);
    }
    assert_eq!(store.progress(&experiment, failed, 1_001), Progress::Failed("no disk".into()));
    assert!(store.stray_records(&experiment, 9).is_empty());
}

#[test]
fn links_and_pipes_are_not_opened_and_strays_are_listed() {
    let ((place, store), experiment) = (store(), experiment());
    let job = experiment.find_job("n1", "6.1", 1).unwrap();
    let path = store.record_path(job);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let outside = place.path().join("outside.json");
    std::fs::write(&outside, bytes(&sample_record("n1", "6.1", 1))).unwrap();
    symlink(&outside, &path).unwrap();
    assert!(store.load_record(&experiment, job).unwrap_err().to_string().contains("plain file of this user"));
    std::fs::remove_file(&path).unwrap();
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(matches!(store.progress(&experiment, job, 0), Progress::Damaged(_)));
    for stray in ["n9", "n1/6.6", "n1/6.1/3.json"] {
        std::fs::create_dir_all(store.root().join(stray)).unwrap();
    }
    assert_eq!(store.stray_records(&experiment, 9).len(), 3);
    assert_eq!(store.stray_records(&experiment, 2).len(), 2);
}
