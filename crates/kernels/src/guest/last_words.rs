//! The end of a console: what a kernel said before it stopped, for a sentence.

use syscost_platform::inert;

/// The longest line that is kept, characters.
const LONGEST: usize = 400;
/// Lines that are kept.
const LINES: usize = 8;
/// What kernels say when they stop, and what that means.
const MEANINGS: [(&str, &str); 6] = [
    ("Initramfs unpacking failed", "it could not unpack the initramfs: give it more memory (--memory)"),
    ("No working init found", "it could not start the program in the initramfs"),
    (
        "Unable to mount root fs",
        "it did not take the initramfs, and found no other root: CONFIG_BLK_DEV_INITRD is needed",
    ),
    ("Out of memory", "it ran out of memory: give it more (--memory)"),
    ("Attempted to kill init", "the program in the guest ended too early"),
    ("System is deadlocked on memory", "it ran out of memory: give it more (--memory)"),
];

/// The last lines that do not hold `mark`, without control characters.
pub fn last_lines(text: &str, mark: &str) -> Vec<String> {
    let lines: Vec<_> = text
        .lines()
        .rev()
        .filter(|line| !line.trim().is_empty() && !line.contains(mark))
        .take(LINES)
        .collect();
    lines.into_iter().rev().map(|line| printable_line(line.trim_end())).collect()
}

/// The text on one line, without the characters that a terminal obeys, up to [`LONGEST`].
pub fn printable_line(text: &str) -> String {
    inert::neutralize_line(text, LONGEST)
}

/// What these last words mean.
pub fn explain_last_words(words: &[String]) -> String {
    let said = |phrase: &str| words.iter().any(|line| line.contains(phrase));
    if let Some((_, meaning)) = MEANINGS.iter().find(|(phrase, _)| said(phrase)) {
        return (*meaning).into();
    }
    if words.is_empty() {
        return "it said nothing: it may have too little memory (--memory), lack the driver of the console \
                (CONFIG_SERIAL_8250_CONSOLE), or be of another architecture"
            .into();
    }
    if said("Kernel panic") { "it panicked".into() } else { "it stopped without a word about why".into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_lines_are_kept_and_they_are_inert() {
        let text: String = (0..20).map(|n| format!("line {n}\u{1b}[2J\u{202e}\r\n\r\n")).collect();
        let words = last_lines(&text, "@");
        assert_eq!(words.len(), LINES);
        assert_eq!(words[7], "line 19\u{fffd}[2J\u{fffd}");
    }

    #[test]
    fn what_kernels_say_is_understood() {
        let meaning_of_line = |line: &str| explain_last_words(&[line.to_owned()]);
        assert!(meaning_of_line("[ 1.2] Initramfs unpacking failed: write error").contains("more memory"));
        assert!(
            meaning_of_line("Kernel panic - not syncing: No working init found.")
                .contains("start the program")
        );
        assert!(
            meaning_of_line("Kernel panic - not syncing: VFS: Unable to mount root fs").contains("INITRD")
        );
        assert!(meaning_of_line("Kernel panic - not syncing: Fatal exception").contains("panicked"));
        assert!(explain_last_words(&[]).contains("console"));
        assert!(meaning_of_line("hello").contains("without a word"));
    }
}
