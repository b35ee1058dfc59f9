//! Tables as all commands print them.

use comfy_table::{Column, ColumnConstraint, ContentArrangement, Table, presets};
use serde_json::Value;
use terminal_size::terminal_size_of;

/// Columns of the terminal that tables take at most.
const WIDTH: u16 = 140;

/// Cells of so many characters are kept on one line.
const SHORT: usize = 16;

/// Width down to which the last column of a table may be wrapped.
const LAST: u16 = 24;

/// A table in the style of all commands, wide cells wrapped.
pub(crate) fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width())
        .set_header(header);
    table
}

/// Width of tables: that of the terminal on stdout, if there is one.
fn width() -> u16 {
    terminal_size_of(std::io::stdout()).map_or(WIDTH, |(terminal_size::Width(columns), _)| columns.min(WIDTH))
}

/// Keeps words whole, and short cells on one line, in all columns but the last. In a terminal that is too narrow for that,
/// the table is wider than the terminal.
pub(crate) fn keep_words(table: &mut Table) {
    let last = table.column_count().saturating_sub(1);
    let least: Vec<u16> = table.column_iter().take(last).map(|column| least_width(table, column)).collect();
    let total = least.iter().fold(LAST, |total, width| total.saturating_add(*width));
    for (column, width) in table.column_iter_mut().zip(least) {
        column.set_constraint(ColumnConstraint::LowerBoundary(comfy_table::Width::Fixed(width)));
    }
    table.set_width(width().max(total));
}

/// Width in which no word of a column is broken, padding included.
fn least_width(table: &Table, column: &Column) -> u16 {
    let cells = table.column_cells_with_header_iter(column.index).flatten().map(|cell| cell.content());
    let width = cells.map(|cell| match cell.chars().count() {
        length if length <= SHORT => length,
        _ => cell.split_whitespace().map(|word| word.chars().count()).max().unwrap_or(0),
    });
    u16::try_from(width.max().unwrap_or(0)).unwrap_or(u16::MAX).saturating_add(column.padding_width())
}

/// A value as a reader would write it.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "–".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(values) if !values.is_empty() && values.iter().all(Value::is_string) => {
            values.iter().map(plain).collect::<Vec<_>>().join(", ")
        }
        Value::Array(values) => format!("[{}]", values.iter().map(plain).collect::<Vec<_>>().join(", ")),
        Value::Object(entries) => match (entries.get("kind").map(plain), entries.len()) {
            (Some(kind), 1) => kind,
            (kind, _) => {
                let rest = entries.iter().filter(|(key, _)| *key != "kind");
                let rest: Vec<_> = rest.map(|(key, value)| format!("{key} {}", plain(value))).collect();
                format!("{}({})", kind.unwrap_or_default(), rest.join(", "))
            }
        },
        other => other.to_string(),
    }
}
