//! From text to tokens.

use crate::watch::{NEXT_TOKEN, Watch};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'s> {
    Number(i64),
    Name(&'s str),
    Let,
    Print,
    /// `=`, `;`, `{` and the like.
    Sign(u8),
    End,
}

pub struct Lexer<'s, 'w> {
    text: &'s str,
    at: usize,
    watch: &'w Watch,
}

impl<'s, 'w> Lexer<'s, 'w> {
    pub fn new(text: &'s str, watch: &'w Watch) -> Self {
        Self { text, at: 0, watch }
    }

    pub fn next_token(&mut self) -> Result<Token<'s>, String> {
        let _span = self.watch.routines.open_span(NEXT_TOKEN);
        self.skip(|byte| byte.is_ascii_whitespace());
        let begins = self.at;
        match self.text.as_bytes().get(begins) {
            None => Ok(Token::End),
            Some(byte) if byte.is_ascii_digit() => {
                self.skip(|byte| byte.is_ascii_digit());
                let digits = &self.text[begins..self.at];
                digits.parse().map(Token::Number).map_err(|e| format!("{digits}: {e}"))
            }
            Some(byte) if byte.is_ascii_alphabetic() => {
                self.skip(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
                Ok(match &self.text[begins..self.at] {
                    "let" => Token::Let,
                    "print" => Token::Print,
                    name => Token::Name(name),
                })
            }
            Some(&byte) => {
                self.at += 1;
                Ok(Token::Sign(byte))
            }
        }
    }

    fn skip(&mut self, belongs: impl Fn(u8) -> bool) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().take_while(|byte| belongs(**byte)).count();
    }
}
