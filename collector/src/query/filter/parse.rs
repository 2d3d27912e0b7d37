//! Text to an expression: tokens, and a recursive descent over them with a bound on depth.

use std::net::IpAddr;

use ipnet::IpNet;

use super::{Expr, FilterError, Op};
use crate::query::columns::{self, Dimension, Kind, Value, dimension};
use crate::row::{address, words};

/// Bytes of a filter.
const MOST_BYTES: usize = 8192;
/// Nested brackets and NOTs.
const MOST_DEPTH: usize = 32;

/// Reads a filter; an empty one is every row.
///
/// # Errors
/// With the place of the first thing that is not understood.
pub fn parse(text: &str) -> Result<Expr, FilterError> {
    if text.len() > MOST_BYTES {
        return Err(FilterError {
            at: MOST_BYTES,
            message: format!("a filter has at most {MOST_BYTES} bytes"),
        });
    }
    let tokens = lex(text)?;
    if tokens.is_empty() {
        return Ok(Expr::All);
    }
    let mut parser = Parser {
        tokens,
        at: 0,
        end: text.len(),
    };
    let expr = parser.or(0)?;
    match parser.peek() {
        None => Ok(expr),
        Some(token) => Err(FilterError {
            at: token.at,
            message: format!("expected AND, OR or the end, found {}", token.show()),
        }),
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Lexeme {
    Word(String),
    Quoted(String),
    Symbol(&'static str),
}

#[derive(Clone, Debug)]
struct Token {
    at: usize,
    lexeme: Lexeme,
}

impl Token {
    fn show(&self) -> String {
        match &self.lexeme {
            Lexeme::Word(word) => format!("\"{word}\""),
            Lexeme::Quoted(text) => format!("the text {text:?}"),
            Lexeme::Symbol(symbol) => format!("\"{symbol}\""),
        }
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(&self.lexeme, Lexeme::Word(found) if found.eq_ignore_ascii_case(word))
    }
}

const SYMBOLS: [&str; 13] = [
    "!<<", "<<", "<=", ">=", "!=", "<>", "==", "=", "<", ">", "(", ")", ",",
];

fn lex(text: &str) -> Result<Vec<Token>, FilterError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let first = rest.chars().next().unwrap_or(' ');
        if first.is_whitespace() {
            at += first.len_utf8();
        } else if rest.starts_with("--") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if rest.starts_with("/*") {
            let Some(end) = rest.find("*/") else {
                return Err(FilterError {
                    at,
                    message: "the comment has no end: add */".to_owned(),
                });
            };
            at += end + 2;
        } else if first == '"' || first == '\'' {
            let (value, length) = quoted(rest, first).ok_or_else(|| FilterError {
                at,
                message: format!("the text has no end: add {first}"),
            })?;
            tokens.push(Token {
                at,
                lexeme: Lexeme::Quoted(value),
            });
            at += length;
        } else if let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            tokens.push(Token {
                at,
                lexeme: Lexeme::Symbol(symbol),
            });
            at += symbol.len();
        } else {
            let end = rest
                .find(|letter: char| letter.is_whitespace() || "()<>=!,\"'".contains(letter))
                .unwrap_or(rest.len());
            if end == 0 {
                return Err(FilterError {
                    at,
                    message: format!("unexpected {first:?}"),
                });
            }
            tokens.push(Token {
                at,
                lexeme: Lexeme::Word(rest.get(..end).unwrap_or("").to_owned()),
            });
            at += end;
        }
    }
    Ok(tokens)
}

fn quoted(rest: &str, quote: char) -> Option<(String, usize)> {
    let mut value = String::new();
    let mut letters = rest.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        if letter == quote {
            return Some((value, at + 1));
        }
        value.push(if letter == '\\' {
            letters.next()?.1
        } else {
            letter
        });
    }
    None
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    end: usize,
}

/// Names that stand for a dimension on either side.
const EITHER: [(&str, &str); 6] = [
    ("Addr", "SrcAddr"),
    ("Port", "SrcPort"),
    ("AS", "SrcAS"),
    ("Net", "SrcNet"),
    ("If", "InIf"),
    ("IfName", "InIfName"),
];

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn next(&mut self, wanted: &str) -> Result<Token, FilterError> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        token.ok_or_else(|| FilterError {
            at: self.end,
            message: format!("the filter ends where {wanted} is expected"),
        })
    }

    fn word(&mut self, word: &str) -> bool {
        let found = self.peek().is_some_and(|token| token.is_word(word));
        self.at += usize::from(found);
        found
    }

    fn symbol(&mut self, symbol: &'static str) -> bool {
        let found = self
            .peek()
            .is_some_and(|token| token.lexeme == Lexeme::Symbol(symbol));
        self.at += usize::from(found);
        found
    }

    fn or(&mut self, depth: usize) -> Result<Expr, FilterError> {
        let mut parts = vec![self.and(depth)?];
        while self.word("OR") {
            parts.push(self.and(depth)?);
        }
        Ok(if parts.len() == 1 {
            parts.remove(0)
        } else {
            Expr::Or(parts)
        })
    }

    fn and(&mut self, depth: usize) -> Result<Expr, FilterError> {
        let mut parts = vec![self.unit(depth)?];
        while self.word("AND") {
            parts.push(self.unit(depth)?);
        }
        Ok(if parts.len() == 1 {
            parts.remove(0)
        } else {
            Expr::And(parts)
        })
    }

    fn unit(&mut self, depth: usize) -> Result<Expr, FilterError> {
        if depth > MOST_DEPTH {
            let at = self.peek().map_or(self.end, |token| token.at);
            return Err(FilterError {
                at,
                message: format!("more than {MOST_DEPTH} levels of brackets"),
            });
        }
        if self.word("NOT") {
            return Ok(Expr::Not(Box::new(self.unit(depth + 1)?)));
        }
        if self.symbol("(") {
            let inner = self.or(depth + 1)?;
            let close = self.next("\")\"")?;
            if close.lexeme != Lexeme::Symbol(")") {
                return Err(FilterError {
                    at: close.at,
                    message: format!("expected \")\", found {}", close.show()),
                });
            }
            return Ok(inner);
        }
        self.condition()
    }

    fn condition(&mut self) -> Result<Expr, FilterError> {
        let token = self.next("a column")?;
        let Lexeme::Word(name) = &token.lexeme else {
            return Err(FilterError {
                at: token.at,
                message: format!("expected a column, found {}", token.show()),
            });
        };
        if let Some(column) = dimension(name) {
            return self.operator(column);
        }
        let either = EITHER
            .iter()
            .find(|(either, _)| either.eq_ignore_ascii_case(name));
        let Some(source) = either.and_then(|(_, source)| dimension(source)) else {
            return Err(FilterError {
                at: token.at,
                message: format!("unknown column {name}"),
            });
        };
        let condition = self.operator(source)?;
        let other = condition.swapped();
        // "Port != 53" is neither side 53; "Port = 53" is at least one side.
        Ok(if condition.is_negative() {
            Expr::And(vec![condition, other])
        } else {
            Expr::Or(vec![condition, other])
        })
    }

    fn operator(&mut self, column: &'static Dimension) -> Result<Expr, FilterError> {
        let token = self.next("an operator")?;
        let refuse = |message: String| FilterError {
            at: token.at,
            message,
        };
        let op = match &token.lexeme {
            Lexeme::Symbol("=" | "==") => Op::Eq,
            Lexeme::Symbol("!=" | "<>") => Op::Ne,
            Lexeme::Symbol("<") => Op::Lt,
            Lexeme::Symbol("<=") => Op::Le,
            Lexeme::Symbol(">") => Op::Gt,
            Lexeme::Symbol(">=") => Op::Ge,
            Lexeme::Symbol(symbol @ ("<<" | "!<<")) => {
                if column.kind != Kind::Address {
                    return Err(refuse(format!(
                        "{symbol} is for addresses; {} is none",
                        column.name
                    )));
                }
                let value = self.next("a prefix")?;
                let inside = prefix(column, &value)?;
                return Ok(if *symbol == "<<" {
                    inside
                } else {
                    Expr::Not(Box::new(inside))
                });
            }
            Lexeme::Word(word) => return self.word_operator(column, word, token.at),
            _ => {
                return Err(refuse(format!(
                    "expected an operator after {}, found {}",
                    column.name,
                    token.show()
                )));
            }
        };
        let ordered = matches!(op, Op::Lt | Op::Le | Op::Gt | Op::Ge);
        if ordered && column.kind != Kind::Number {
            return Err(refuse(format!(
                "{} can be compared with =, != and IN only",
                column.name
            )));
        }
        let value = self.next("a value")?;
        // A quoted list is the whole of it, an unquoted value one member.
        if column.kind.is_list() && matches!(value.lexeme, Lexeme::Word(_)) {
            let has = Expr::Has(column, member(column, &value)?);
            return Ok(if op == Op::Eq {
                has
            } else {
                Expr::Not(Box::new(has))
            });
        }
        if let Lexeme::Word(word) = &value.lexeme
            && let Some(other) = dimension(word)
        {
            if other.kind != column.kind {
                return Err(FilterError {
                    at: value.at,
                    message: format!("{} and {} are of different types", column.name, other.name),
                });
            }
            return Ok(Expr::Columns(column, op, other));
        }
        // "SrcAddr = prefix" is understood as it is meant.
        if column.kind == Kind::Address && value_text(&value).is_some_and(|text| text.contains('/'))
        {
            let inside = prefix(column, &value)?;
            return Ok(if op == Op::Eq {
                inside
            } else {
                Expr::Not(Box::new(inside))
            });
        }
        Ok(Expr::Compare(column, op, literal(column, &value)?))
    }

    fn word_operator(
        &mut self,
        column: &'static Dimension,
        word: &str,
        at: usize,
    ) -> Result<Expr, FilterError> {
        let upper = word.to_ascii_uppercase();
        let negative = match upper.as_str() {
            "NOT" => {
                let next = self.next("IN")?;
                if !next.is_word("IN") {
                    return Err(FilterError {
                        at: next.at,
                        message: format!("expected IN after NOT, found {}", next.show()),
                    });
                }
                true
            }
            "IN" => false,
            "NOTIN" => true,
            "LIKE" | "UNLIKE" | "ILIKE" | "IUNLIKE" => {
                if !column.kind.is_text() {
                    return Err(FilterError {
                        at,
                        message: format!("{word} is for texts; {} is none", column.name),
                    });
                }
                let value = self.next("a pattern")?;
                let Some(pattern) = value_text(&value) else {
                    return Err(FilterError {
                        at: value.at,
                        message: format!("expected a pattern, found {}", value.show()),
                    });
                };
                let like = Expr::Like(column, pattern.to_owned(), upper.starts_with('I'));
                return Ok(if upper.contains("UN") {
                    Expr::Not(Box::new(like))
                } else {
                    like
                });
            }
            _ => {
                return Err(FilterError {
                    at,
                    message: format!(
                        "expected an operator after {}, found \"{word}\"",
                        column.name
                    ),
                });
            }
        };
        let open = self.next("\"(\"")?;
        if open.lexeme != Lexeme::Symbol("(") {
            return Err(FilterError {
                at: open.at,
                message: format!("expected \"(\" after IN, found {}", open.show()),
            });
        }
        let (mut values, mut prefixes) = (Vec::new(), Vec::new());
        loop {
            let value = self.next("a value")?;
            if column.kind == Kind::Address
                && value_text(&value).is_some_and(|text| text.contains('/'))
            {
                prefixes.push(prefix(column, &value)?);
            } else if column.kind.is_list() && matches!(value.lexeme, Lexeme::Word(_)) {
                prefixes.push(Expr::Has(column, member(column, &value)?));
            } else {
                values.push(literal(column, &value)?);
            }
            let next = self.next("\",\" or \")\"")?;
            match next.lexeme {
                Lexeme::Symbol(",") => {}
                Lexeme::Symbol(")") => break,
                _ => {
                    return Err(FilterError {
                        at: next.at,
                        message: format!("expected \",\" or \")\", found {}", next.show()),
                    });
                }
            }
        }
        if !values.is_empty() {
            prefixes.push(Expr::In(column, values));
        }
        let any = if prefixes.len() == 1 {
            prefixes.remove(0)
        } else {
            Expr::Or(prefixes)
        };
        Ok(if negative {
            Expr::Not(Box::new(any))
        } else {
            any
        })
    }
}

fn value_text(token: &Token) -> Option<&str> {
    match &token.lexeme {
        Lexeme::Word(text) | Lexeme::Quoted(text) => Some(text),
        Lexeme::Symbol(_) => None,
    }
}

fn prefix(column: &'static Dimension, token: &Token) -> Result<Expr, FilterError> {
    let text = value_text(token).unwrap_or("");
    let net: IpNet = text.parse().map_err(|_| FilterError {
        at: token.at,
        message: format!("{text:?} is no prefix, for example 203.0.113.0/24"),
    })?;
    let (first, last) = match net {
        IpNet::V4(v4) => (address(v4.network().into()), address(v4.broadcast().into())),
        IpNet::V6(v6) => (v6.network(), v6.broadcast()),
    };
    Ok(Expr::Inside(column, first.into(), last.into()))
}

/// One member of a list: an AS number, or a community.
fn member(column: &'static Dimension, token: &Token) -> Result<String, FilterError> {
    let refuse = |what: &str| FilterError {
        at: token.at,
        message: format!("expected {what}, found {}", token.show()),
    };
    let text = value_text(token).unwrap_or("");
    if column.kind == Kind::AsPath {
        return as_number(text)
            .map(|number| number.to_string())
            .ok_or_else(|| refuse("an AS number"));
    }
    let parts: Vec<&str> = text.split(':').collect();
    let good =
        (2..=3).contains(&parts.len()) && parts.iter().all(|part| part.parse::<u32>().is_ok());
    good.then(|| text.to_owned())
        .ok_or_else(|| refuse("a community, for example 65000:1"))
}

/// An AS number, with or without "AS".
fn as_number(text: &str) -> Option<u32> {
    let digits = text
        .get(..2)
        .filter(|start| start.eq_ignore_ascii_case("AS"))
        .map_or(text, |_| text.get(2..).unwrap_or(""));
    digits.parse().ok()
}

fn literal(column: &'static Dimension, token: &Token) -> Result<Value, FilterError> {
    let refuse = |what: &str| FilterError {
        at: token.at,
        message: format!("expected {what}, found {}", token.show()),
    };
    let text = value_text(token).ok_or_else(|| refuse("a value"))?;
    let number = || {
        text.strip_prefix("0x").map_or_else(
            || text.parse::<u64>().ok(),
            |hex| u64::from_str_radix(hex, 16).ok(),
        )
    };
    match column.kind {
        Kind::Text | Kind::AsPath | Kind::Communities => Ok(Value::Text(text.to_owned())),
        Kind::Number => number()
            .map(Value::Number)
            .ok_or_else(|| refuse("a number")),
        Kind::Asn => as_number(text)
            .map(|number| Value::Number(number.into()))
            .ok_or_else(|| refuse("an AS number")),
        Kind::Protocol => match columns::protocol(text) {
            Some(number) => Ok(Value::Number(number.into())),
            None => text
                .parse::<u8>()
                .map(|number| Value::Number(number.into()))
                .map_err(|_| refuse("a protocol's number or name")),
        },
        Kind::EtherType => match text.to_ascii_lowercase().as_str() {
            "ipv4" => Ok(Value::Number(0x0800)),
            "ipv6" => Ok(Value::Number(0x86dd)),
            _ => number()
                .map(Value::Number)
                .ok_or_else(|| refuse("IPv4, IPv6 or an EtherType")),
        },
        Kind::Address => match text.parse::<IpAddr>() {
            Ok(ip) => {
                let (high, low) = words(address(ip));
                Ok(Value::Address(high, low))
            }
            Err(_) => Err(refuse("an address")),
        },
    }
}
