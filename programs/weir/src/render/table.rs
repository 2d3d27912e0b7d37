//! Aligned tables.
//!
//! Columns are as wide as their widest cell; numbers are aligned right. On a terminal, the columns
//! that may shrink become narrower, the least important first and of equally important ones the
//! widest, and text that does not fit ends in an ellipsis; if that is not enough, columns are left
//! out, the least important first. Without a terminal nothing is cut.

use super::{Screen, harmless};

/// The least width of a column that shrinks.
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

/// A column's heading, alignment and importance.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    title: &'static str,
    right: bool,
    shrinks: bool,
    /// Columns with the greatest number are the least important: they shrink first, and are left out
    /// first. Those with 0 are never left out.
    spare: u8,
}

impl Column {
    /// Text, whole at any width.
    pub(crate) const fn text(title: &'static str) -> Self {
        Self {
            title,
            right: false,
            shrinks: false,
            spare: 0,
        }
    }

    /// Text that may be cut on a narrow terminal.
    pub(crate) const fn long(title: &'static str) -> Self {
        Self {
            title,
            right: false,
            shrinks: true,
            spare: 0,
        }
    }

    /// A number.
    pub(crate) const fn number(title: &'static str) -> Self {
        Self {
            title,
            right: true,
            shrinks: false,
            spare: 0,
        }
    }
}

impl Column {
    /// May be left out on a narrow terminal: those with the greatest number first.
    pub(crate) const fn spare(self, spare: u8) -> Self {
        Self { spare, ..self }
    }

    /// What is left of a column that is `width` wide: its title stays whole.
    fn narrowest(self, width: usize) -> usize {
        if self.shrinks {
            width.min(NARROWEST.max(self.title.chars().count()))
        } else {
            width
        }
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
        Self {
            text: harmless(&text.to_string()),
            style,
        }
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
        Self {
            columns: columns.into(),
            rows: Vec::new(),
        }
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
        let layout = self.layout(screen.width);
        let heading: Vec<Cell> = self
            .columns
            .iter()
            .map(|column| Cell::styled(column.title, Style::Heading))
            .collect();
        let mut text = String::new();
        for row in std::iter::once(&heading).chain(&self.rows) {
            let mut cells: Vec<_> = row
                .iter()
                .zip(&layout)
                .filter_map(|(cell, place)| Some((cell, place.as_ref()?)))
                .collect();
            // No spaces at the end of a line.
            let end = cells
                .iter()
                .rposition(|(cell, _)| !cell.text.is_empty())
                .map_or(0, |last| last + 1);
            cells.truncate(end);
            draw_row(&cells, screen, &mut text);
        }
        text
    }

    /// Where each column stands; none where it is left out.
    fn layout(&self, most: Option<usize>) -> Vec<Option<Place>> {
        let mut widths: Vec<usize> = self
            .columns
            .iter()
            .map(|column| column.title.chars().count())
            .collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.text.chars().count());
            }
        }
        let mut layout: Vec<_> = self
            .columns
            .iter()
            .zip(widths)
            .map(|(column, width)| {
                Some(Place {
                    column: *column,
                    width,
                })
            })
            .collect();
        if let Some(most) = most {
            leave_out(&mut layout, most);
            shrink(&mut layout, most);
        }
        layout
    }
}

/// A column and its width.
struct Place {
    column: Column,
    width: usize,
}

fn draw_row(cells: &[(&Cell, &Place)], screen: &Screen, text: &mut String) {
    for (number, (cell, place)) in cells.iter().enumerate() {
        let shown = cut(&cell.text, place.width);
        let padding = " ".repeat(place.width.saturating_sub(shown.chars().count()));
        let shown = screen.styled(&shown, cell.style);
        let is_last = number + 1 == cells.len();
        match (place.column.right, is_last) {
            (true, _) => *text += &format!("{padding}{shown}"),
            (false, true) => *text += &shown,
            (false, false) => *text += &format!("{shown}{padding}"),
        }
        if !is_last {
            *text += &" ".repeat(GAP);
        }
    }
    text.push('\n');
}

fn total(layout: &[Option<Place>], width: impl Fn(&Place) -> usize) -> usize {
    let widths = layout.iter().flatten().map(|place| width(place) + GAP);
    widths.sum::<usize>().saturating_sub(GAP)
}

/// Leaves out spare columns until the others can shrink to what is there.
fn leave_out(layout: &mut [Option<Place>], most: usize) {
    while total(layout, |place| place.column.narrowest(place.width)) > most {
        let spare =
            |place: &&mut Option<Place>| place.as_ref().map_or(0, |place| place.column.spare);
        match layout.iter_mut().max_by_key(spare) {
            Some(place) if spare(&place) > 0 => *place = None,
            _ => return,
        }
    }
}

/// Takes a character from the least important shrinking column, of equally important ones from the
/// widest, until the row fits or nothing shrinks.
fn shrink(layout: &mut [Option<Place>], most: usize) {
    while total(layout, |place| place.width) > most {
        let may_shrink = layout
            .iter_mut()
            .flatten()
            .filter(|place| place.column.narrowest(place.width) < place.width);
        let importance = |place: &&mut Place| (place.column.spare, place.width);
        let Some(least_important) = may_shrink.max_by_key(importance) else {
            return;
        };
        least_important.width -= 1;
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
