//! Links one build again, with its functions in another order.
//!
//! Where the linker happens to place a function changes its time by up to a third (Mytkowicz and others, "Producing wrong
//! data without doing anything obviously wrong", ASPLOS 2009). A comparison that uses one link of each build attributes
//! this effect to the change. A comparison that draws a new link for every process averages over it (Curtsinger and
//! Berger, "Stabilizer", ASPLOS 2013). Only the last step of a build is repeated, which takes a fraction of a second.

use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::Command;
use syscost_analysis::pair::Relink;
use syscost_engine::trial::scratch::{self, Scratch};
use syscost_platform::error::{Error, Result};
use syscost_platform::inert;
use syscost_platform::process::tool;
use syscost_statistic::Random;

/// Number of possible paddings in front of all functions, for linkers that cannot order them. The padding is below a page
/// (4 KiB) and a multiple of the alignment that compilers give to functions.
const PADDING_STEPS: usize = 256;
const PADDING_STEP_BYTES: usize = 16;
/// Part of the path of the compiler's own libraries.
const COMPILER_LIBRARIES: &str = "/lib/rustlib/";
/// Characters of a linker's message that are quoted.
const QUOTED: usize = 300;

/// The command that linked a build, with copies of everything that the build may overwrite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkCommand {
    /// The linker.
    program: String,
    /// Variables of its environment.
    environment: Vec<(String, String)>,
    /// Its arguments, without the name of the output.
    arguments: Vec<String>,
    /// The way to place functions in another order.
    placement: Placement,
}

/// The way to make a linker place functions in another order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// lld: `--shuffle-sections=GLOB=SEED`.
    ShuffleText,
    /// mold: `--shuffle-sections=SEED`.
    ShuffleAll,
    /// Any linker: object files in random order, behind padding of random length.
    Padding,
}

impl Placement {
    /// Name for the record and for sentences.
    pub fn description(self) -> &'static str {
        match self {
            Self::ShuffleText | Self::ShuffleAll => "functions in random order",
            Self::Padding => "object files in random order, behind random padding",
        }
    }
}

impl LinkCommand {
    /// The command that `rustc --print link-args` wrote. Its inputs are copied to `copies`, because a later build may
    /// overwrite them or a cleaner remove them.
    ///
    /// # Errors
    /// The text is no such command, an input cannot be copied, or none of the [`Placement`]s works with the linker.
    pub fn from_rustc(text: &str, copies: &Path) -> Result<Self> {
        let unreadable = || Error::Usage(format!("the link command of rustc cannot be read: {text:.80}"));
        let words = split_words(text).ok_or_else(unreadable)?;
        let is_setting = |word: &&Word| word.name.is_some();
        let environment = words.iter().take_while(is_setting);
        let environment =
            environment.filter_map(|word| Some((word.name.clone()?, word.text.clone()))).collect();
        let mut rest = words.into_iter().skip_while(|word| word.name.is_some()).map(|word| word.text);
        let program = rest.next().ok_or_else(unreadable)?;
        let mut arguments = Vec::new();
        while let Some(argument) = rest.next() {
            if argument == "-o" {
                rest.next();
            } else {
                arguments.push(copied(argument, copies, arguments.len())?);
            }
        }
        let command = Self { program, environment, arguments, placement: Placement::ShuffleText };
        command.with_placement(copies)
    }

    /// The way in which functions are placed in another order.
    pub fn placement(&self) -> Placement {
        self.placement
    }

    /// Whether every input still exists and is not empty. A cleaner of temporary files or a reboot may remove one.
    pub fn has_all_inputs(&self) -> bool {
        let files = self.arguments.iter().map(Path::new);
        // Arguments without an extension are search directories, which need not exist.
        let mut inputs = files.filter(|file| file.is_absolute() && file.extension().is_some());
        inputs.all(|file| std::fs::metadata(file).is_ok_and(|about| about.len() > 0))
    }

    /// The same command with the paths of its copies changed from the directory `from` to `to`.
    pub fn moved(mut self, from: &Path, to: &Path) -> Self {
        for argument in &mut self.arguments {
            if let Ok(name) = Path::new(&argument).strip_prefix(from) {
                *argument = to.join(name).display().to_string();
            }
        }
        self
    }

    /// A description of the linker, for comparison with that of another build.
    pub fn linker(&self) -> String {
        let chosen = self.arguments.iter().find(|argument| argument.starts_with("-fuse-ld="));
        chosen.map_or_else(|| self.program.clone(), |flag| format!("{} {flag}", self.program))
    }

    /// Tries the ways to place functions, from the finest to the coarsest, and keeps the first that works.
    fn with_placement(mut self, directory: &Path) -> Result<Self> {
        let trial = directory.join("trial");
        let mut last = Ok(());
        for placement in [Placement::ShuffleText, Placement::ShuffleAll, Placement::Padding] {
            self.placement = placement;
            last = self.link(1, &trial);
            if last.is_ok() {
                break;
            }
        }
        // If every way fails, the file does not exist.
        let _ = std::fs::remove_file(&trial);
        last.map(|()| self)
    }

    /// Links to the file `output`, with the functions in the random order of this seed.
    ///
    /// # Errors
    /// The linker cannot be started, or fails; the error quotes its message.
    pub fn link(&self, seed: u32, output: &Path) -> Result<()> {
        let mut linker = tool::command(&self.program);
        linker.envs(self.environment.iter().map(|(name, value)| (name, value)));
        match self.placement {
            Placement::ShuffleText => {
                linker.args(&self.arguments).arg(format!("-Wl,--shuffle-sections=.text*={seed}"));
            }
            Placement::ShuffleAll => {
                linker.args(&self.arguments).arg(format!("-Wl,--shuffle-sections={seed}"));
            }
            Placement::Padding => {
                let mut random = Random::new(seed.into());
                linker.arg(self.padding(&mut random, output)?).args(self.shuffled_objects(&mut random));
            }
        }
        // Debug information costs space, and no process reads it.
        linker.arg("-Wl,--strip-debug").arg("-o").arg(output);
        run_linker(&mut linker, &self.program)
    }

    /// The arguments, with the object files among them in random order.
    fn shuffled_objects(&self, random: &mut Random) -> Vec<String> {
        let is_object = |word: &&String| word.ends_with(".o") && !word.starts_with('-');
        let mut objects: Vec<_> = self.arguments.iter().filter(is_object).collect();
        random.shuffle(&mut objects);
        let mut objects = objects.into_iter();
        let next =
            |word: &String| if is_object(&word) { objects.next().cloned() } else { Some(word.clone()) };
        self.arguments.iter().filter_map(next).collect()
    }

    /// Makes an object file of random length whose code is never executed. Returns its path.
    fn padding(&self, random: &mut Random, output: &Path) -> Result<PathBuf> {
        let bytes = PADDING_STEP_BYTES * random.number_below(PADDING_STEPS);
        let (source, object) = (output.with_extension("s"), output.with_extension("padding.o"));
        let text = format!(".section .text.padding,\"ax\"\n.p2align 4\n.space {bytes}\n");
        std::fs::write(&source, text).map_err(|e| Error::file(&source, "writing", e))?;
        let mut assembler = tool::command(&self.program);
        run_linker(assembler.arg("-c").arg(&source).arg("-o").arg(&object), &self.program)?;
        Ok(object)
    }
}

/// Runs a linker. Its messages appear only in the error, if it fails.
fn run_linker(command: &mut Command, program: &str) -> Result<()> {
    let output = command.output().map_err(|e| Error::file(program, "starting", e))?;
    if output.status.success() {
        return Ok(());
    }
    // The quote begins at the first line: the first lines give the cause, the last says only that the linker has failed.
    let said = inert::neutralize_line(String::from_utf8_lossy(&output.stderr).trim(), QUOTED);
    Err(Error::Usage(format!("`{program}` cannot link the build again ({}): {said}", output.status)))
}

/// The argument, or the path of its copy if it is a file. Shared libraries are not copied, as their path may become part of
/// the program. The compiler's own libraries are not copied either, as the compiler is part of the key of a kept build.
fn copied(argument: String, copies: &Path, number: usize) -> Result<String> {
    let file = Path::new(&argument);
    let is_shared = file.extension().is_some_and(|end| end == "so") || argument.contains(".so.");
    if is_shared || argument.contains(COMPILER_LIBRARIES) || !file.is_absolute() || !file.is_file() {
        return Ok(argument);
    }
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let copy = copies.join(format!("{number}-{name}"));
    std::fs::copy(file, &copy).map_err(|e| Error::file(file, "copying", e))?;
    Ok(copy.display().to_string())
}

/// A word of the printed command. It has a name if it is an assignment to a variable.
struct Word {
    name: Option<String>,
    text: String,
}

/// The words of a command as Rust prints one: `NAME="value" "program" "argument"`. `None` for anything else.
fn split_words(text: &str) -> Option<Vec<Word>> {
    let mut words = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (name, quoted) = rest.split_once('"')?;
        let name = match name.strip_suffix('=') {
            Some(name) => Some(name.to_owned()).filter(|name| !name.contains(char::is_whitespace)),
            None if name.is_empty() => None,
            None => return None,
        };
        let (text, after) = unescape_until_quote(quoted)?;
        words.push(Word { name, text });
        rest = after.trim_start();
    }
    Some(words)
}

/// The unescaped text up to the closing quote, and the text after the quote.
fn unescape_until_quote(text: &str) -> Option<(String, &str)> {
    let mut plain = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((plain, &text[at + 1..])),
            '\\' => match characters.next()?.1 {
                'n' => plain.push('\n'),
                't' => plain.push('\t'),
                escaped @ ('"' | '\\' | '\'') => plain.push(escaped),
                _ => return None,
            },
            other => plain.push(other),
        }
    }
    None
}

/// The links of one side of a comparison, made when they are needed.
#[derive(Clone, Debug)]
pub struct Links {
    command: LinkCommand,
    /// The directory of the links.
    directory: PathBuf,
    /// Makes the orders of this side differ from those of the other side.
    seed: u32,
}

impl Links {
    /// Links of both sides below `home`, with the directories that hold them. Each side has a seed of its own, because
    /// with one seed the layouts of the sides would be correlated.
    ///
    /// # Errors
    /// A directory cannot be made.
    pub fn for_both_sides(
        commands: [LinkCommand; 2],
        home: &Path,
        random: &mut Random,
    ) -> Result<([Self; 2], [Scratch; 2])> {
        scratch::remove_orphans(home);
        let places = [scratch::make_directory_in(home)?, scratch::make_directory_in(home)?];
        let mut links = |command, place: &Scratch| {
            let seed = random.next_bits() as u32;
            Self { command, directory: place.path().to_owned(), seed }
        };
        let [a, b] = commands;
        Ok(([links(a, &places[0]), links(b, &places[1])], places))
    }
}

impl Relink for Links {
    fn link(&self, number: u32) -> Result<PathBuf> {
        let file = self.directory.join(number.to_string());
        if !file.exists() {
            // A truncated link, for example on a full disk, must not be taken for a complete one.
            let partial = file.with_extension("partial");
            // Seeds of a shuffle have 32 bits. The two sides must not use the same seeds.
            self.command.link(self.seed.wrapping_mul(0x9e37_79b9).wrapping_add(number), &partial)?;
            std::fs::rename(&partial, &file).map_err(|e| Error::file(&file, "naming", e))?;
        }
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syscost_platform::testing::print_skipped;

    fn words(text: &str) -> Option<Vec<(Option<String>, String)>> {
        Some(split_words(text)?.into_iter().map(|word| (word.name, word.text)).collect())
    }

    #[test]
    fn a_command_is_read_as_rust_prints_it() {
        let mut command = Command::new("cc");
        command.env("A", "b \"c\"").arg("-o").arg("a b").arg("x\\y\tz");
        let read = words(&format!("{command:?}")).unwrap();
        let expected = [(Some("A"), "b \"c\""), (None, "cc"), (None, "-o"), (None, "a b"), (None, "x\\y\tz")];
        assert_eq!(read, expected.map(|(name, text)| (name.map(str::to_owned), text.to_owned())));
        for other in ["cc -o x", "env -i \"cc\"", "\"cc", "\"a\\xff\"", "A B=\"c\" \"cc\""] {
            let read = words(other);
            assert!(read.is_none() || other.starts_with("A B"), "{other}: {read:?}");
        }
    }

    /// A program of many small functions, each in a section of its own, that prints the order of their addresses.
    fn build(directory: &Path) -> Option<LinkCommand> {
        let source = directory.join("many.s");
        let functions: String =
            (0..40).map(|n| format!(".section .text.f{n},\"ax\"\n.globl f{n}\nf{n}: .space 64\n")).collect();
        std::fs::write(&source, format!("{functions}.section .text.main,\"ax\"\n.globl main\nmain: ret\n"))
            .unwrap();
        let target = directory.join("target");
        std::fs::create_dir_all(&target).unwrap();
        let object = target.join("many.o");
        let assembled = Command::new("cc").arg("-c").arg(&source).arg("-o").arg(&object).status();
        if !assembled.is_ok_and(|status| status.success()) {
            print_skipped("there is no `cc` here");
            return None;
        }
        let mut link = Command::new("cc");
        link.arg(&object).arg("-o").arg(target.join("many"));
        Some(LinkCommand::from_rustc(&format!("{link:?}"), directory).unwrap())
    }

    #[test]
    fn links_differ_by_seed_and_repeat_after_the_build_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let Some(command) = build(place.path()) else { return };
        std::fs::remove_dir_all(place.path().join("target")).unwrap();
        let bytes = |command: &LinkCommand, seed, name: &str| {
            let output = place.path().join(name);
            command.link(seed, &output).unwrap();
            std::fs::read(output).unwrap()
        };
        let placements = [command.placement, Placement::Padding];
        for placement in placements {
            let command = LinkCommand { placement, ..command.clone() };
            assert_eq!(bytes(&command, 1, "one"), bytes(&command, 1, "one"), "{placement:?}");
            assert_ne!(bytes(&command, 1, "one"), bytes(&command, 2, "one"), "{placement:?}");
        }
        let mut random = Random::new(1);
        let (sides, _places) =
            Links::for_both_sides([command.clone(), command], place.path(), &mut random).unwrap();
        let links = sides.map(|links| std::fs::read(links.link(7).unwrap()).unwrap());
        assert_ne!(links[0], links[1], "two sides have orders of their own");
    }

    #[test]
    fn an_input_that_is_removed_or_emptied_is_missed_and_a_directory_that_is_searched_is_not() {
        let place = tempfile::tempdir().unwrap();
        let Some(mut command) = build(place.path()) else { return };
        command.arguments.extend(["-L".into(), "/no/such/directory".into()]);
        assert!(command.has_all_inputs(), "{command:?}");
        let ends_as_object = |argument: &&String| argument.ends_with(".o");
        let object = command.arguments.iter().find(ends_as_object).unwrap().clone();
        assert_eq!(Path::new(&object).parent(), Some(place.path()), "a copy is linked");
        std::fs::write(&object, "").unwrap();
        assert!(!command.has_all_inputs(), "it is empty");
        std::fs::remove_file(&object).unwrap();
        assert!(!command.has_all_inputs(), "it is gone");
    }

    #[test]
    fn a_linker_that_fails_says_why() {
        let place = tempfile::tempdir().unwrap();
        let text = format!("{:?}", Command::new("cc").arg("/no/such/object.o"));
        let error = LinkCommand::from_rustc(&text, place.path()).unwrap_err();
        assert!(error.to_string().contains("object.o") || error.to_string().contains("starting"), "{error}");
    }
}
