//! From tokens to code: a parser by recursive descent, which looks up every name in the symbol table and emits code as it
//! goes.
//!
//!     statement   = "let" name "=" expression ";" | name "=" expression ";" | "print" expression ";" | "{" statement* "}"
//!     expression  = term (("+" | "-") term)*
//!     term        = factor ("*" factor)*
//!     factor      = number | name | "(" expression ")"
//!
//! From text to tokens.

use crate::stack::Instruction;
use crate::symbol::{BLOCK, EMIT, EXPRESSION, FACTOR, NEXT_TOKEN, STATEMENT, TERM, Watch};
use crate::symbol::{Operation, SymbolTable};

/// The code of a program, and the log of the operations on the symbol table if `logged`.
pub struct Compiled<'s> {
    pub code: Vec<Instruction>,
    pub operations: Vec<Operation<'s>>,
}

/// Compiles a program.
pub fn compile<'s>(text: &'s str, watch: &Watch, logged: bool) -> Result<Compiled<'s>, String> {
    let mut lexer = Lexer::new(text, watch);
    let token = lexer.next_token()?;
    let mut parser =
        Parser { lexer, token, symbols: SymbolTable::new(watch, logged), code: Vec::new(), watch };
    parser.symbols.enter();
    while parser.token != Token::End {
        parser.statement()?;
    }
    parser.symbols.leave();
    Ok(Compiled { code: parser.code, operations: parser.symbols.into_log() })
}

struct Parser<'s, 'w> {
    lexer: Lexer<'s, 'w>,
    token: Token<'s>,
    symbols: SymbolTable<'s, 'w>,
    code: Vec<Instruction>,
    watch: &'w Watch,
}

type Parsed = Result<(), String>;

impl<'s> Parser<'s, '_> {
    fn advance(&mut self) -> Result<Token<'s>, String> {
        let next = self.lexer.next_token()?;
        Ok(std::mem::replace(&mut self.token, next))
    }

    fn expect(&mut self, sign: u8) -> Parsed {
        match self.advance()? {
            Token::Sign(found) if found == sign => Ok(()),
            other => Err(format!("expected {}, found {other:?}", char::from(sign))),
        }
    }

    fn emit(&mut self, instruction: Instruction) {
        let _span = self.watch.routines.open_span(EMIT);
        self.code.push(instruction);
    }

    fn statement(&mut self) -> Parsed {
        let _span = self.watch.routines.open_span(STATEMENT);
        match self.advance()? {
            Token::Let => {
                let Token::Name(name) = self.advance()? else { return Err("let: a name is missing".into()) };
                self.assigned()?;
                // The symbol's own value may still refer to an outer symbol of the same name.
                let slot = self.symbols.insert(name);
                self.emit(Instruction::Store(slot));
                self.expect(b';')
            }
            Token::Name(name) => {
                let slot = self.symbols.look_up(name).ok_or_else(|| format!("{name} is not known"))?;
                self.assigned()?;
                self.emit(Instruction::Store(slot));
                self.expect(b';')
            }
            Token::Print => {
                self.expression()?;
                self.emit(Instruction::Print);
                self.expect(b';')
            }
            Token::Sign(b'{') => self.block(),
            other => Err(format!("{other:?} begins no statement")),
        }
    }

    fn block(&mut self) -> Parsed {
        let _span = self.watch.routines.open_span(BLOCK);
        self.symbols.enter();
        while self.token != Token::Sign(b'}') {
            self.statement()?;
        }
        self.symbols.leave();
        self.advance().map(drop)
    }

    fn assigned(&mut self) -> Parsed {
        self.expect(b'=')?;
        self.expression()
    }

    fn expression(&mut self) -> Parsed {
        let _span = self.watch.routines.open_span(EXPRESSION);
        self.term()?;
        while let Token::Sign(sign @ (b'+' | b'-')) = self.token {
            self.advance()?;
            self.term()?;
            self.emit(if sign == b'+' { Instruction::Add } else { Instruction::Subtract });
        }
        Ok(())
    }

    fn term(&mut self) -> Parsed {
        let _span = self.watch.routines.open_span(TERM);
        self.factor()?;
        while self.token == Token::Sign(b'*') {
            self.advance()?;
            self.factor()?;
            self.emit(Instruction::Multiply);
        }
        Ok(())
    }

    fn factor(&mut self) -> Parsed {
        let _span = self.watch.routines.open_span(FACTOR);
        match self.advance()? {
            Token::Number(number) => self.emit(Instruction::Push(number)),
            Token::Name(name) => {
                let slot = self.symbols.look_up(name).ok_or_else(|| format!("{name} is not known"))?;
                self.emit(Instruction::Load(slot));
            }
            Token::Sign(b'(') => {
                self.expression()?;
                self.expect(b')')?;
            }
            other => return Err(format!("{other:?} is no factor")),
        }
        Ok(())
    }
}

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
