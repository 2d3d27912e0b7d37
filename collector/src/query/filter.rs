//! The filter language: text to an expression; the expression to SQL, and applied to rows in memory.
//!
//! ```text
//! Or := And (OR And)* ; And := Unit (AND Unit)* ; Unit := (Or) | NOT Unit | Condition
//! Condition := column op value | column op column | column [NOT] IN (value, …) | address << prefix
//! ```
//!
//! `Addr`, `Port`, `AS`, `Net`, `If` and `IfName` mean either side. Values never become SQL text unescaped: numbers are
//! printed from integers, texts are quoted.

use std::net::IpAddr;

use ipnet::IpNet;

use super::columns::{self, Dimension, Kind, Value, dimension, swapped};
use crate::row::{Row, address, words};

/// Bytes of a filter.
pub const MOST_BYTES: usize = 8192;
/// Nested brackets and NOTs.
const MOST_DEPTH: usize = 32;

/// Why a filter cannot be used, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at character {}: {message}", .at + 1)]
pub struct FilterError {
    /// Byte offset in the filter.
    pub at: usize,
    /// What is wrong.
    pub message: String,
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
}

impl Op {
    fn sql(self) -> &'static str {
        match self {
            Op::Eq => "=",
            Op::Ne => "<>",
            Op::Lt => "<",
            Op::Le => "<=",
            Op::Gt => ">",
            Op::Ge => ">=",
        }
    }

    fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            Op::Eq => order.is_eq(),
            Op::Ne => order.is_ne(),
            Op::Lt => order.is_lt(),
            Op::Le => order.is_le(),
            Op::Gt => order.is_gt(),
            Op::Ge => order.is_ge(),
        }
    }
}

/// A filter.
#[derive(Clone, Debug)]
pub enum Expr {
    /// Every row.
    All,
    /// All of them.
    And(Vec<Expr>),
    /// Any of them.
    Or(Vec<Expr>),
    /// Not it.
    Not(Box<Expr>),
    /// A column with a value.
    Compare(&'static Dimension, Op, Value),
    /// A column with another one of its type.
    Columns(&'static Dimension, Op, &'static Dimension),
    /// A column is one of these.
    In(&'static Dimension, Vec<Value>),
    /// An address is inside of a prefix: first and last address.
    Inside(&'static Dimension, u128, u128),
    /// A text matches a pattern of `%` and `_`; the flag: without regard to case.
    Like(&'static Dimension, String, bool),
}

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
                if column.kind != Kind::Text {
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
        Kind::Text => Ok(Value::Text(text.to_owned())),
        Kind::Number => number()
            .map(Value::Number)
            .ok_or_else(|| refuse("a number")),
        Kind::Asn => {
            let digits = text
                .get(..2)
                .filter(|start| start.eq_ignore_ascii_case("AS"))
                .map_or(text, |_| text.get(2..).unwrap_or(""));
            digits
                .parse::<u32>()
                .map(|number| Value::Number(number.into()))
                .map_err(|_| refuse("an AS number"))
        }
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

/// A text as a SQL literal.
#[must_use]
pub fn quote_sql(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A comparison of a column with a value, in SQL.
#[must_use]
pub fn equals_sql(column: &Dimension, value: &Value) -> String {
    match value {
        Value::Number(number) => format!("{} = {number}", column.column),
        Value::Text(text) => format!("{} = {}", column.column, quote_sql(text)),
        Value::Address(high, low) => format!("({0}_hi = {high} AND {0}_lo = {low})", column.column),
    }
}

impl Expr {
    /// The condition in SQL, in the subset that DataFusion, DuckDB and ClickHouse share.
    #[must_use]
    pub fn sql(&self) -> String {
        let join = |parts: &[Expr], with: &str| {
            let parts: Vec<String> = parts.iter().map(Expr::sql).collect();
            format!("({})", parts.join(with))
        };
        match self {
            Expr::All => "1 = 1".to_owned(),
            Expr::And(parts) => join(parts, " AND "),
            Expr::Or(parts) => join(parts, " OR "),
            Expr::Not(inner) => format!("(NOT {})", inner.sql()),
            Expr::Compare(column, Op::Eq, value) => equals_sql(column, value),
            Expr::Compare(column, op, value) => match value {
                Value::Number(number) => format!("{} {} {number}", column.column, op.sql()),
                Value::Text(text) => format!("{} {} {}", column.column, op.sql(), quote_sql(text)),
                Value::Address(..) => format!("(NOT {})", equals_sql(column, value)),
            },
            Expr::Columns(a, op, b) if a.kind == Kind::Address => {
                let equal = format!("({0}_hi = {1}_hi AND {0}_lo = {1}_lo)", a.column, b.column);
                if *op == Op::Eq {
                    equal
                } else {
                    format!("(NOT {equal})")
                }
            }
            Expr::Columns(a, op, b) => format!("{} {} {}", a.column, op.sql(), b.column),
            Expr::In(column, values) => {
                let parts: Vec<String> = values
                    .iter()
                    .map(|value| equals_sql(column, value))
                    .collect();
                format!("({})", parts.join(" OR "))
            }
            Expr::Inside(column, first, last) => inside_sql(column.column, *first, *last),
            Expr::Like(column, pattern, false) => {
                format!("{} LIKE {}", column.column, quote_sql(pattern))
            }
            Expr::Like(column, pattern, true) => {
                format!(
                    "lower({}) LIKE {}",
                    column.column,
                    quote_sql(&pattern.to_lowercase())
                )
            }
        }
    }

    /// Whether a row passes: the same as the SQL.
    #[must_use]
    pub fn holds(&self, row: &Row) -> bool {
        match self {
            Expr::All => true,
            Expr::And(parts) => parts.iter().all(|part| part.holds(row)),
            Expr::Or(parts) => parts.iter().any(|part| part.holds(row)),
            Expr::Not(inner) => !inner.holds(row),
            Expr::Compare(column, op, value) => op.holds(columns::value(column, row).cmp(value)),
            Expr::Columns(a, op, b) => {
                op.holds(columns::value(a, row).cmp(&columns::value(b, row)))
            }
            Expr::In(column, values) => values.contains(&columns::value(column, row)),
            Expr::Inside(column, first, last) => {
                let ip = if column.column == "src" {
                    row.src
                } else {
                    row.dst
                };
                (*first..=*last).contains(&u128::from(ip))
            }
            Expr::Like(column, pattern, fold) => match columns::value(column, row) {
                Value::Text(text) if *fold => like(&text.to_lowercase(), &pattern.to_lowercase()),
                Value::Text(text) => like(&text, pattern),
                _ => false,
            },
        }
    }

    /// The filter for the other direction: source and destination, input and output exchanged.
    #[must_use]
    pub fn swapped(&self) -> Expr {
        let all = |parts: &[Expr]| parts.iter().map(Expr::swapped).collect();
        match self {
            Expr::All => Expr::All,
            Expr::And(parts) => Expr::And(all(parts)),
            Expr::Or(parts) => Expr::Or(all(parts)),
            Expr::Not(inner) => Expr::Not(Box::new(inner.swapped())),
            Expr::Compare(column, op, value) => Expr::Compare(swapped(column), *op, value.clone()),
            Expr::Columns(a, op, b) => Expr::Columns(swapped(a), *op, swapped(b)),
            Expr::In(column, values) => Expr::In(swapped(column), values.clone()),
            Expr::Inside(column, first, last) => Expr::Inside(swapped(column), *first, *last),
            Expr::Like(column, pattern, fold) => {
                Expr::Like(swapped(column), pattern.clone(), *fold)
            }
        }
    }

    /// Whether all its columns are in the totals table.
    #[must_use]
    pub fn in_totals(&self) -> bool {
        match self {
            Expr::All => true,
            Expr::And(parts) | Expr::Or(parts) => parts.iter().all(Expr::in_totals),
            Expr::Not(inner) => inner.in_totals(),
            Expr::Columns(a, _, b) => a.in_totals && b.in_totals,
            Expr::Compare(column, ..)
            | Expr::In(column, _)
            | Expr::Inside(column, ..)
            | Expr::Like(column, ..) => column.in_totals,
        }
    }

    fn is_negative(&self) -> bool {
        matches!(
            self,
            Expr::Not(_) | Expr::Compare(_, Op::Ne, _) | Expr::Columns(_, Op::Ne, _)
        )
    }
}

/// Both ends of a prefix share all but the last bits, so the words compare one after the other.
fn inside_sql(column: &str, first: u128, last: u128) -> String {
    let (high, low) = ((first >> 64) as u64, first as u64);
    let (high_last, low_last) = ((last >> 64) as u64, last as u64);
    if high == high_last {
        format!("({column}_hi = {high} AND {column}_lo >= {low} AND {column}_lo <= {low_last})")
    } else {
        format!("({column}_hi >= {high} AND {column}_hi <= {high_last})")
    }
}

/// SQL's LIKE: `%` any letters, `_` one letter.
fn like(text: &str, pattern: &str) -> bool {
    let (text, pattern): (Vec<char>, Vec<char>) =
        (text.chars().collect(), pattern.chars().collect());
    let (mut t, mut p) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('%') => {
                star = Some((p + 1, t));
                p += 1;
            }
            Some(letter) if *letter == '_' || text.get(t) == Some(letter) => {
                (t, p) = (t + 1, p + 1)
            }
            _ => match star {
                // The last % takes one letter more.
                Some((behind, taken)) => {
                    star = Some((behind, taken + 1));
                    (t, p) = (taken + 1, behind);
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(p).all(|letter| *letter == '%')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sql(text: &str) -> String {
        parse(text).map_or_else(|error| format!("error {error}"), |expr| expr.sql())
    }

    #[test]
    fn filters_become_sql() {
        for (filter, expected) in [
            ("", "1 = 1"),
            ("SrcAS = AS2906", "src_as = 2906"),
            (
                "srcas IN (AS2906, 15169)",
                "(src_as = 2906 OR src_as = 15169)",
            ),
            ("ExporterName LIKE th2-%", "exporter_name LIKE 'th2-%'"),
            (
                "ExporterName ILIKE 'TH%'",
                "lower(exporter_name) LIKE 'th%'",
            ),
            (
                "Proto = udp AND NOT DstPort >= 1024",
                "(proto = 17 AND (NOT dst_port >= 1024))",
            ),
            ("DstPort != SrcPort -- comment", "dst_port <> src_port"),
            (
                "EType = IPv6 OR /* x */ EType = 0x806",
                "(etype = 34525 OR etype = 2054)",
            ),
            ("Port = 53", "(src_port = 53 OR dst_port = 53)"),
            ("Port != 53", "(src_port <> 53 AND dst_port <> 53)"),
            (
                "SrcAddr << 203.0.113.0/24",
                "(src_hi = 0 AND src_lo >= 281474087547136 AND src_lo <= 281474087547391)",
            ),
            (
                "DstAddr << 2001:db8::/32",
                "(dst_hi >= 2306139568115548160 AND dst_hi <= 2306139572410515455)",
            ),
            ("InIfName = \"it's\"", "in_if_name = 'it''s'"),
            (
                "(InIf = 1 OR InIf = 2) AND OutIf NOT IN (3)",
                "((in_if = 1 OR in_if = 2) AND (NOT (out_if = 3)))",
            ),
        ] {
            assert_eq!(sql(filter), expected, "{filter}");
        }
    }

    #[test]
    fn errors_say_where() {
        for (filter, at, part) in [
            ("Nope = 1", 0, "unknown column Nope"),
            ("SrcAS >", 6, "SrcAS can be compared"),
            ("DstPort >", 9, "ends where a value"),
            ("DstPort = x", 10, "expected a number"),
            ("SrcAddr << 1.2.3", 11, "no prefix"),
            ("(InIf = 1", 9, "ends where \")\""),
            ("InIf = 1 x", 9, "expected AND, OR"),
            ("InIfName = \"a", 11, "no end"),
            ("DstPort = InIfName", 10, "different types"),
        ] {
            let error = parse(filter).expect_err(filter);
            assert_eq!(error.at, at, "{filter}: {error}");
            assert!(error.message.contains(part), "{filter}: {error}");
        }
        assert!(parse(&"(".repeat(4000)).is_err());
        assert!(parse(&"NOT ".repeat(2000)).is_err());
    }

    #[test]
    fn patterns_match_as_in_sql() {
        for (text, pattern, expected) in [
            ("th2-edge1", "th2-%", true),
            ("th2-edge1", "%edge_", true),
            ("th2-edge1", "edge", false),
            ("", "%", true),
            ("aXbXc", "a%X%c", true),
            ("abc", "a%d", false),
        ] {
            assert_eq!(like(text, pattern), expected, "{text} {pattern}");
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_panics(text in ".{0,60}") {
            let _ = parse(&text);
        }
    }
}
