//! Aligned tables.
//!
//! Columns are as wide as their widest cell; numbers stand right. Where a screen has an edge, the
//! columns that may shrink give way, the widest first, and what does not fit ends in an ellipsis.
//! Without an edge nothing is ever cut: a script reads the same as a person.

use super::{Screen, harmless};

/// A column narrower than this says nothing.
const NARROWEST: usize = 6;

/// Spaces between two columns.
const GAP: usize = 2;

/// How a cell looks where there are colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Style {
    /// As any text.
    #[default]
    Plain,
    /// As it should be.
    Good,
    /// Worth a look.
    Warning,
    /// Not as it should be.
    Bad,
    /// A heading.
    Heading,
}

impl Style {
    /// The parameters of ECMA-48's SGR; empty = none.
    pub(super) const fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Good => "32",
            Self::Warning => "33",
            Self::Bad => "31",
            Self::Heading => "1",
        }
    }
}

/// A column's heading and manners.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    title: &'static str,
    right: bool,
    shrinks: bool,
}

impl Column {
    /// Text, whole at any width.
    pub(crate) const fn text(title: &'static str) -> Self {
        Self { title, right: false, shrinks: false }
    }

    /// Text that may be cut on a narrow terminal.
    pub(crate) const fn long(title: &'static str) -> Self {
        Self { title, right: false, shrinks: true }
    }

    /// A number.
    pub(crate) const fn number(title: &'static str) -> Self {
        Self { title, right: true, shrinks: false }
    }
}

/// One cell.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// A cell in a style.
    pub(crate) fn styled(text: impl std::fmt::Display, style: Style) -> Self {
        Self { text: harmless(&text.to_string()), style }
    }

    /// A cell that is empty when there is nothing to tell.
    pub(crate) fn maybe(text: Option<impl std::fmt::Display>) -> Self {
        text.map_or_else(Self::default, |text| Self::styled(text, Style::Plain))
    }
}

impl<T: std::fmt::Display> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::styled(text, Style::Plain)
    }
}

/// A table.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// An empty table.
    pub(crate) fn new(columns: impl Into<Vec<Column>>) -> Self {
        Self { columns: columns.into(), rows: Vec::new() }
    }

    /// Adds a row; it has a cell for each column.
    pub(crate) fn row(&mut self, cells: impl Into<Vec<Cell>>) {
        let cells = cells.into();
        debug_assert_eq!(cells.len(), self.columns.len(), "a cell for each column");
        self.rows.push(cells);
    }

    /// Whether there are no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table as text, a line a row, with a heading.
    pub(crate) fn draw(&self, screen: &Screen) -> String {
        let widths = self.widths(screen.width);
        let heading: Vec<Cell> = self.columns.iter().map(|column| Cell::styled(column.title, Style::Heading)).collect();
        let mut text = String::new();
        for row in std::iter::once(&heading).chain(&self.rows) {
            self.draw_row(row, &widths, screen, &mut text);
        }
        text
    }

    fn draw_row(&self, row: &[Cell], widths: &[usize], screen: &Screen, text: &mut String) {
        let last = row.iter().rposition(|cell| !cell.text.is_empty());
        for (place, ((cell, column), width)) in row.iter().zip(&self.columns).zip(widths).enumerate() {
            if last.is_none_or(|last| place > last) {
                break;
            }
            let shown = cut(&cell.text, *width);
            let padding = " ".repeat(width.saturating_sub(shown.chars().count()));
            let shown = screen.styled(&shown, cell.style);
            match (column.right, Some(place) == last) {
                (true, _) => *text += &format!("{padding}{shown}"),
                (false, true) => *text += &shown,
                (false, false) => *text += &format!("{shown}{padding}"),
            }
            if Some(place) != last {
                *text += &" ".repeat(GAP);
            }
        }
        text.push('\n');
    }

    fn widths(&self, most: Option<usize>) -> Vec<usize> {
        let mut widths: Vec<usize> = self.columns.iter().map(|column| column.title.chars().count()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.text.chars().count());
            }
        }
        if let Some(most) = most {
            self.shrink(&mut widths, most);
        }
        widths
    }

    /// Takes a character from the widest shrinking column until the row fits, or nothing shrinks.
    fn shrink(&self, widths: &mut [usize], most: usize) {
        let gaps = GAP * self.columns.len().saturating_sub(1);
        let mut surplus = (widths.iter().sum::<usize>() + gaps).saturating_sub(most);
        while surplus > 0 {
            let may_shrink = widths.iter_mut().zip(&self.columns).filter(|(width, column)| column.shrinks && **width > NARROWEST);
            let Some((widest, _)) = may_shrink.max_by_key(|(width, _)| **width) else { return };
            *widest -= 1;
            surplus -= 1;
        }
    }
}

fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut shown: String = text.chars().take(width.saturating_sub(1)).collect();
    shown.push('…');
    shown
}
