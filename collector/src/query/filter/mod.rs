//! The filter language: text to an expression; the expression to SQL, and applied to rows in memory.
//!
//! ```text
//! Or := And (OR And)* ; And := Unit (AND Unit)* ; Unit := (Or) | NOT Unit | Condition
//! Condition := column op value | column op column | column [NOT] IN (value, …) | address << prefix
//! ```
//!
//! `Addr`, `Port`, `AS`, `Net`, `If` and `IfName` mean either side. Values never become SQL text unescaped: numbers are
//! printed from integers, texts are quoted.

mod parse;

pub use parse::parse;

use super::columns::{self, Dimension, Kind, Value, swapped};
use crate::row::Row;

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
    /// A list between spaces has this member.
    Has(&'static Dimension, String),
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
            Expr::Has(column, member) => {
                let pattern = quote_sql(&format!("% {member} %"));
                format!("(' ' || {} || ' ') LIKE {pattern}", column.column)
            }
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
            Expr::Has(column, member) => match columns::value(column, row) {
                Value::Text(text) => text.split(' ').any(|found| found == member),
                _ => false,
            },
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
            Expr::Has(column, member) => Expr::Has(swapped(column), member.clone()),
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
            | Expr::Like(column, ..)
            | Expr::Has(column, _) => column.in_totals,
        }
    }

    /// Whether it selects exporters only.
    #[must_use]
    pub fn is_of_exporter(&self) -> bool {
        let is =
            |column: &Dimension| column.column.starts_with("exporter") || column.column == "format";
        match self {
            Expr::All => true,
            Expr::And(parts) | Expr::Or(parts) => parts.iter().all(Expr::is_of_exporter),
            Expr::Not(inner) => inner.is_of_exporter(),
            Expr::Columns(a, _, b) => is(a) && is(b),
            Expr::Compare(column, ..)
            | Expr::In(column, _)
            | Expr::Inside(column, ..)
            | Expr::Like(column, ..)
            | Expr::Has(column, _) => is(column),
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
mod tests;
