//! Builds of revisions change nothing in the user's repository, whatever hook or environment they run in.

use crate::place::{Ended, Place, SYSCOST, files};
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use syscost_platform::testing::print_skipped;

/// An id that no case has: both sides are built, and then nothing is measured.
const NO_CASE: &str = "no/such/case";
/// The message for that id.
const NOTHING: &str = "no case that both sides have matches the filter";

/// A repository with three revisions of a file and a staged change.
struct Project<'a> {
    place: &'a Place,
    root: PathBuf,
}

impl<'a> Project<'a> {
    fn new(place: &'a Place) -> Self {
        let project = Self { place, root: place.path().join("project") };
        std::fs::create_dir(&project.root).unwrap();
        std::fs::create_dir(place.path().join("user")).unwrap();
        // A commit and a push start git's maintenance in the background, and the tests would take it for a leftover process.
        std::fs::write(place.path().join("user/.gitconfig"), "[maintenance]\n\tauto = false\n").unwrap();
        // A stand-in for cargo and a build script that does all that could affect git.
        place.script(
            "cargo",
            &format!(
                "#!/bin/sh\nif [ \"$1\" = metadata ]; then\n\
                 echo '{{\"packages\":[{{\"targets\":[{{\"kind\":[\"bench\"],\"name\":\"suite\"}}]}}]}}'; exit\nfi\n\
                 cat text >> '{0}'\ncat ../core/text >> '{0}' 2> /dev/null\nenv | grep ^GIT_ >> '{0}'\ngit status > /dev/null\ngit describe --tags >> '{0}' 2>&1\n\
                 mkdir -p \"$CARGO_TARGET_DIR\"\n\
                 echo '{{\"target\":{{\"kind\":[\"bench\"],\"name\":\"suite\"}},\"executable\":\"{SYSCOST}\"}}'\n",
                project.built().display()
            ),
        );
        // A stand-in for rustc that reports another toolchain if the sources contain one.
        place.script("rustc", "#!/bin/sh\necho \"rustc 1.95.0\"\ncat toolchain 2> /dev/null\ntrue\n");
        project.git(&["init", "--quiet", "--initial-branch=main", "."]);
        for text in ["one", "two", "three"] {
            project.write(text);
            project.git(&["add", "text"]);
            project.git(&["commit", "--quiet", "-m", text]);
            project.git(&["tag", text]);
        }
        project.write("staged");
        project.git(&["add", "text"]);
        project.write("worked on");
        project
    }

    fn write(&self, text: &str) {
        std::fs::write(self.root.join("text"), format!("{text}\n")).unwrap();
    }

    /// The file in which the stand-in for cargo writes what it saw.
    fn built(&self) -> PathBuf {
        self.place.path().join("built")
    }

    /// A program in the repository, run as a user without further configuration.
    fn program(&self, program: &str) -> Command {
        let mut command = self.place.program(program);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_bytes().starts_with(b"GIT_")) {
            command.env_remove(name);
        }
        command.env_remove("CARGO_TARGET_DIR").env_remove("XDG_CONFIG_HOME");
        command.env("RUSTC", self.place.path().join("rustc"));
        command.env("CARGO", self.place.path().join("cargo")).env("HOME", self.place.path().join("user"));
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "a").env(format!("GIT_{role}_EMAIL"), "a@b");
        }
        command.current_dir(&self.root);
        command
    }

    fn git(&self, words: &[&str]) -> String {
        self.git_in(&self.root, words)
    }

    fn git_in(&self, directory: &Path, words: &[&str]) -> String {
        let output = self.program("git").args(words).current_dir(directory).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Compares two revisions: both sides are built, and no case is found.
    fn compare(&self, environment: &[(&str, &str)]) -> Ended {
        let mut command = self.program(SYSCOST);
        command.args(["ab", "--a-rev", "one", "--b-rev", "two", NO_CASE]);
        command.envs(environment.iter().copied());
        self.place.end(command)
    }

    /// Asserts that these texts were built, each by a cargo without variables of the repository. Removes the file of cargo.
    fn has_built(&self, texts: &[&str]) {
        let seen = std::fs::read_to_string(self.built()).unwrap_or_default();
        let _ = std::fs::remove_file(self.built());
        // A build script learns its commit from a tag.
        let expected: String = texts.iter().map(|text| format!("{text}\n{text}\n")).collect();
        // A hook also has this variable, with the path of git itself.
        let is_of_repository = |line: &&str| !line.starts_with("GIT_EXEC_PATH=");
        let seen: String = seen.lines().filter(is_of_repository).map(|line| format!("{line}\n")).collect();
        assert_eq!(seen, expected);
        let _ = std::fs::remove_dir_all(self.root.join("target"));
    }

    /// The bytes of every file of the working tree and of `.git`.
    fn bytes(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let is_ours = |file: &PathBuf| !file.starts_with(self.root.join("target"));
        let all = files(&self.root, "").into_iter().filter(is_ours);
        all.map(|file| (file.clone(), std::fs::read(&file).unwrap())).collect()
    }
}

fn git_is_missing() -> bool {
    let is_missing = Command::new("git").arg("--version").output().is_err();
    if is_missing {
        print_skipped("there is no git here");
    }
    is_missing
}

#[test]
fn no_environment_of_git_lets_a_comparison_write_the_users_repository() {
    if git_is_missing() {
        return;
    }
    let place = Place::new();
    let project = Project::new(&place);
    let path = |name: &str| project.root.join(name).display().to_string();
    let (directory, top) = (path(".git"), path("."));
    let (index, objects) = (path(".git/index"), path(".git/objects"));
    let before = project.bytes();
    for environment in [
        &[][..],
        &[("GIT_INDEX_FILE", &*index)],
        &[("GIT_INDEX_FILE", ".git/index"), ("GIT_PREFIX", "")],
        &[("GIT_DIR", ".git")],
        &[("GIT_DIR", &directory), ("GIT_INDEX_FILE", &index)],
        &[("GIT_DIR", &directory), ("GIT_WORK_TREE", &top)],
        &[("GIT_OBJECT_DIRECTORY", &objects)],
        &[("GIT_DIR", &directory), ("GIT_COMMON_DIR", &directory)],
        &[("GIT_CONFIG_PARAMETERS", "'core.bare'='true'")],
        &[("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "core.worktree"), ("GIT_CONFIG_VALUE_0", &top)],
    ] {
        let ended = project.compare(environment);
        ended.says(2, &["building one", "building two", NOTHING]);
        project.has_built(&["one", "two"]);
        assert!(project.bytes() == before, "{environment:?} changed a file of the user's");
    }
    place.is_tidy();
}

#[test]
fn a_dependency_beside_the_repository_is_there_for_a_build_and_a_change_of_it_is_built() {
    if git_is_missing() {
        return;
    }
    let place = Place::new();
    let project = Project::new(&place);
    let core = place.path().join("core");
    std::fs::create_dir(&core).unwrap();
    for (file, text) in [
        (core.join("Cargo.toml"), "[package]\nname = \"core\"\n"),
        (project.root.join("Cargo.toml"), "[dependencies]\ncore = { path = \"../core\" }\n"),
    ] {
        std::fs::write(file, text).unwrap();
    }
    project.git(&["add", "Cargo.toml"]);
    project.git(&["commit", "--quiet", "-m", "names its neighbour"]);
    project.git(&["tag", "four"]);
    let saw = |text: &str| {
        let ended = place.end({
            let mut command = project.program(SYSCOST);
            command.args(["ab", "--a-rev", "four", "--b-rev", "four", NO_CASE]);
            command
        });
        assert!(ended.error.contains(NOTHING), "{}", ended.error);
        let seen = std::fs::read_to_string(project.built()).unwrap_or_default();
        let _ = std::fs::remove_file(project.built());
        assert!(seen.contains(text), "{seen}");
        (seen, ended.error)
    };
    std::fs::write(core.join("text"), "beside 1\n").unwrap();
    let (_, said) = saw("beside 1");
    assert!(said.contains("four: ") && said.contains("/core is outside of the repository"), "{said}");
    let (seen, _) = saw("");
    assert_eq!(seen, "", "what was built is kept");
    std::fs::write(core.join("text"), "beside 22\n").unwrap();
    saw("beside 22");
}

/// A stand-in for cargo that prints the directory of the build, and as the last step links an object file of the user's cache.
fn telling_cargo(project: &Project<'_>, object: &Path) {
    project.place.script(
        "cargo",
        &format!(
            "#!/bin/sh\nif [ \"$1\" = metadata ]; then\n\
             echo '{{\"packages\":[{{\"targets\":[{{\"kind\":[\"bench\"],\"name\":\"suite\"}}]}}]}}'; exit\nfi\n\
             for last; do :; done\n\
             echo '\"cc\" \"{object}\" \"-o\" \"bench\"' > \"${{last#link-args=}}\"\n\
             [ \"$CARGO_BUILD_BUILD_DIR\" = \"$CARGO_TARGET_DIR\" ] && pwd >> '{built}'\n\
             echo '{{\"target\":{{\"kind\":[\"bench\"],\"name\":\"suite\"}},\"executable\":\"{SYSCOST}\"}}'\n",
            object = object.display(),
            built = project.built().display()
        ),
    );
}

/// Makes an object file of a program in a directory of the user. `None` without a compiler.
fn object_of_the_user(place: &Place) -> Option<PathBuf> {
    let (source, object) = (place.path().join("main.c"), place.path().join("cache/main.o"));
    std::fs::create_dir_all(place.path().join("cache")).unwrap();
    std::fs::write(&source, "int main(void) { return 0; }\n").unwrap();
    let made = Command::new("cc").arg("-c").arg(&source).arg("-o").arg(&object).status();
    made.is_ok_and(|status| status.success()).then_some(object)
}

#[test]
fn what_lies_beside_the_repository_has_one_path_for_all_revisions_and_what_is_linked_is_kept() {
    let place = Place::new();
    let Some(object) = object_of_the_user(&place).filter(|_| !git_is_missing()) else {
        print_skipped("there is no `cc` or no git here");
        return;
    };
    let project = Project::new(&place);
    telling_cargo(&project, &object);
    let core = place.path().join("core");
    std::fs::create_dir(&core).unwrap();
    std::fs::write(core.join("Cargo.toml"), "[package]\nname = \"core\"\n").unwrap();
    std::fs::write(project.root.join("Cargo.toml"), "[dependencies]\ncore = { path = \"../core\" }\n")
        .unwrap();
    project.git(&["add", "Cargo.toml"]);
    for tag in ["four", "five"] {
        project.git(&["commit", "--quiet", "--allow-empty", "-m", tag]);
        project.git(&["tag", tag]);
    }
    let built = || {
        let mut command = project.program(SYSCOST);
        command.args(["ab", "--a-rev", "four", "--b-rev", "five", NO_CASE]);
        let ended = place.end(command);
        let seen = std::fs::read_to_string(project.built()).unwrap_or_default();
        let _ = std::fs::remove_file(project.built());
        (seen.lines().map(str::to_owned).collect::<Vec<_>>(), ended.error)
    };
    let (paths, said) = built();
    assert!(paths.len() == 2 && paths[0] == paths[1], "{paths:?}\n{said}");
    assert!(object.is_file(), "a file of the user's is gone");
    std::fs::remove_file(object.with_file_name("main.o")).unwrap();
    assert_eq!(built().0, Vec::<String>::new(), "both are kept, with what they are linked from");
    let copies = files(&project.root.join("target"), "main.o");
    assert!(copies.len() >= 2, "{copies:?}");
    std::fs::remove_file(&copies[0]).unwrap();
    let (again, said) = built();
    assert!(again.len() == 1 && said.contains("is incomplete, and is made anew"), "{again:?}\n{said}");
    std::fs::write(core.join("new"), "changed").unwrap();
    assert_ne!(built().0, paths, "another state of the dependency has another path");
    place.is_tidy();
}

#[test]
fn submodules_that_are_not_initialised_are_named() {
    if git_is_missing() {
        return;
    }
    let place = Place::new();
    let project = Project::new(&place);
    let other = project.git(&["rev-parse", "one"]);
    project.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{other},vendor/other")]);
    project.git(&["commit", "--quiet", "-m", "module"]);
    project.git(&["tag", "--force", "two"]);
    project.compare(&[]).says(2, &["two: 1 submodules are not initialised", "building two", NOTHING]);
    place.is_tidy();
}

#[test]
fn builds_of_two_toolchains_or_profiles_are_compared_only_if_they_may() {
    if git_is_missing() {
        return;
    }
    let place = Place::new();
    let project = Project::new(&place);
    let commit = |file: &str, text: &str, tag: &str| {
        std::fs::write(project.root.join(file), text).unwrap();
        project.git(&["add", file]);
        project.git(&["commit", "--quiet", "-m", tag]);
        project.git(&["tag", tag]);
    };
    commit("Cargo.toml", "[profile.bench]\nlto = true\n", "profile");
    commit("toolchain", "host: another\n", "toolchain");
    let compare = |a: &str, b: &str, more: &[&str]| {
        let mut command = project.program(SYSCOST);
        command.args(["ab", "--a-rev", a, "--b-rev", b, NO_CASE]).args(more);
        place.end(command)
    };
    let compiler = "the compiler is part of the change (--allow-different-toolchains";
    compare("profile", "toolchain", &[])
        .says(2, &["A was built by rustc 1.95.0, B by rustc 1.95.0", compiler]);
    compare("one", "profile", &[])
        .says(2, &["the profiles of the manifests differ (A: none; B: { bench = { lto = true } })"]);
    compare("one", "toolchain", &["--allow-different-toolchains"]).says(2, &[NOTHING]);
    // A build by one toolchain is not used for another one.
    let _ = std::fs::remove_file(project.built());
    compare("one", "one", &[]).says(2, &[NOTHING]);
    assert!(!project.built().exists(), "it is kept");
    place.script("rustc", "#!/bin/sh\necho \"rustc 1.96.0\"\n");
    compare("one", "one", &[]).says(2, &["building one", NOTHING]);
    assert!(project.built().exists(), "the toolchain is another one");
    place.is_tidy();
}

#[test]
fn a_commit_through_a_hook_that_compares_holds_what_was_staged_and_nothing_else() {
    if git_is_missing() {
        return;
    }
    let place = Place::new();
    let project = Project::new(&place);
    let linked = place.path().join("linked");
    project.git(&["worktree", "add", "--quiet", "-b", "work", linked.to_str().unwrap(), "one"]);
    let hook = project.root.join(".git/hooks/pre-commit");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    let made = place.script(
        "hook",
        &format!(
            "#!/bin/sh\n'{SYSCOST}' gate --a-rev three --b-rev two {NO_CASE} > '{}' 2>&1\ntrue\n",
            place.path().join("said").display()
        ),
    );
    std::fs::rename(made, hook).unwrap();
    for (root, change) in [(&linked, "linked"), (&project.root, "staged")] {
        if *root == linked {
            std::fs::write(root.join("text"), format!("{change}\n")).unwrap();
            project.git_in(root, &["add", "text"]);
        }
        std::fs::write(root.join("text"), "not staged\n").unwrap();
        project.git_in(root, &["commit", "--quiet", "-m", "by a hook"]);
        let said = std::fs::read_to_string(place.path().join("said")).unwrap();
        assert!(said.contains(NOTHING), "{said}");
        project.has_built(&["three", "two"]);
        assert_eq!(project.git_in(root, &["show", "HEAD:text"]), change);
        assert_eq!(project.git_in(root, &["show", "--format=", "--name-only", "HEAD"]), "text");
        assert_eq!(project.git_in(root, &["status", "--porcelain", "--untracked-files=no"]), "M text");
        let _ = std::fs::remove_dir_all(root.join("target"));
    }
    assert_eq!(project.git(&["worktree", "list"]).lines().count(), 2);
    place.is_tidy();
}

#[test]
fn a_hook_of_a_repository_without_files_sees_what_was_pushed_and_not_yet_accepted() {
    if git_is_missing() {
        return;
    }
    let place = Place::new();
    let project = Project::new(&place);
    let bare = place.path().join("bare.git");
    project.git(&["clone", "--quiet", "--bare", ".", bare.to_str().unwrap()]);
    project.git(&["remote", "add", "origin", bare.to_str().unwrap()]);
    project.git(&["commit", "--quiet", "-m", "pushed"]);
    project.git(&["tag", "staged"]);
    let hook = bare.join("hooks/update");
    let said = place.path().join("said");
    let text = |target: &str| {
        let [program, said] = [SYSCOST, said.to_str().unwrap()];
        format!(
            "#!/bin/sh\n{target} '{program}' gate --a-rev $2 --b-rev $3 {NO_CASE} > '{said}' 2>&1\ntrue\n"
        )
    };
    let push = |target: &str| {
        std::fs::rename(place.script("hook", &text(target)), &hook).unwrap();
        project.git(&["push", "--quiet", "--force", "origin", "main"]);
        std::fs::read_to_string(&said).unwrap()
    };
    let words = push("");
    assert!(words.contains("a repository without files") && words.contains("CARGO_TARGET_DIR"), "{words}");
    project.git_in(&bare, &["update-ref", "refs/heads/main", "three"]);
    project.git(&["commit", "--quiet", "--amend", "-m", "pushed again"]);
    let target = place.path().join("target");
    let words = push(&format!("CARGO_TARGET_DIR='{}'", target.display()));
    assert!(words.contains(NOTHING), "{words}");
    let seen = std::fs::read_to_string(project.built()).unwrap();
    let texts: Vec<_> = seen.lines().filter(|line| !line.starts_with("GIT_EXEC_PATH=")).take(3).collect();
    assert_eq!(texts, ["three", "three", "staged"], "{seen}");
    place.is_tidy();
}

#[test]
fn no_hook_filter_monitor_or_template_of_the_user_runs_where_a_revision_is_built() {
    if git_is_missing() {
        return;
    }
    let place = Place::new();
    let project = Project::new(&place);
    let ran = place.path().join("ran");
    let deed = place.script("deed", &format!("#!/bin/sh\necho $0 $1 >> '{}'\nexit 1\n", ran.display()));
    std::fs::write(project.root.join(".gitattributes"), "text filter=strict\n").unwrap();
    project.git(&["add", ".gitattributes"]);
    project.git(&["commit", "--quiet", "--amend", "-m", "four"]);
    project.git(&["tag", "--force", "two"]);
    for directory in ["hooks", "template/hooks"] {
        std::fs::create_dir_all(place.path().join(directory)).unwrap();
        for hook in ["post-checkout", "reference-transaction", "post-index-change", "fsmonitor-watchman"] {
            std::fs::copy(&deed, place.path().join(directory).join(hook)).unwrap();
        }
    }
    let path = |name: &str| place.path().join(name).display().to_string();
    for scope in ["--global", "--local"] {
        for (key, value) in [
            ("core.hooksPath", path("hooks")),
            ("core.fsmonitor", path("deed")),
            ("init.templateDir", path("template")),
            ("filter.strict.smudge", path("deed")),
            ("filter.strict.clean", path("deed")),
            ("filter.strict.process", path("deed")),
            ("filter.strict.required", "true".into()),
        ] {
            project.git(&["config", scope, key, &value]);
        }
    }
    let _ = std::fs::remove_file(&ran);
    let note = "two: 1 files have the git filter `strict`, which is not run";
    project.compare(&[]).says(2, &[note, "building two", NOTHING]);
    assert_eq!(std::fs::read_to_string(&ran).unwrap_or_default(), "");
    place.is_tidy();
}

#[test]
fn a_revision_that_cannot_be_had_is_refused_with_what_git_says() {
    if git_is_missing() {
        return;
    }
    let place = Place::new();
    let project = Project::new(&place);
    let ask = |root: &Path, revision: &str| {
        let mut command = project.program(SYSCOST);
        command.args(["ab", "--a-rev", revision, "--b-rev", "HEAD", NO_CASE]).current_dir(root);
        place.end(command)
    };
    let unknown = ask(&project.root, "no-such-revision");
    unknown.refuses(&["no-such-revision is no revision of the git repository", "project"]);
    assert!(!unknown.error.contains("cut off"), "{unknown:?}");
    ask(place.path(), "HEAD").refuses(&["not a git repository"]);
    let shallow = place.path().join("shallow");
    let from = format!("file://{}", project.root.display());
    project.git(&["clone", "--quiet", "--depth=1", &from, shallow.to_str().unwrap()]);
    ask(&shallow, "HEAD~1").refuses(&[
        "HEAD~1 is no revision",
        "history was cut off",
        "git fetch --unshallow",
    ]);
    let mut same = project.program(SYSCOST);
    same.args(["ab", "--a-rev", "HEAD", "--b-wrap", "env", NO_CASE]).current_dir(&shallow);
    place.end(same).says(2, &["building HEAD", NOTHING]);
    let sub = project.root.join("new");
    std::fs::create_dir(&sub).unwrap();
    ask(&sub, "two").says(2, &["two has no directory new/"]);
    if nix::unistd::geteuid().is_root() {
        let other = Some(nix::unistd::Uid::from_raw(12345));
        for path in [&project.root, &project.root.join(".git")] {
            nix::unistd::chown(path, other, None).unwrap();
        }
        ask(&project.root, "one").refuses(&["dubious ownership", "safe.directory"]);
    }
    place.is_tidy();
}
