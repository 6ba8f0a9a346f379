//! Tables as Parquet, compressed with Zstandard.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use super::columns::Columns;

/// Writes a table with the columns of `head`, whose values do not count: a row group for each of `groups`, which have as many
/// rows as is said with them and the same columns.
pub(super) fn write<'a>(
    name: &str,
    head: &Columns<'_>,
    groups: impl Iterator<Item = (usize, Columns<'a>)>,
    to: impl Write + Send,
) -> io::Result<()> {
    write_table(name, head, groups, to).map_err(|error| match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    })
}

fn write_table<'a>(
    name: &str,
    head: &Columns<'_>,
    groups: impl Iterator<Item = (usize, Columns<'a>)>,
    to: impl Write + Send,
) -> Result<(), ParquetError> {
    let fields = head.iter().map(|(name, column)| column.schema(name)).collect::<Result<_, _>>()?;
    let schema = Arc::new(Type::group_type_builder(name).with_fields(fields).build()?);
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default()));
    let mut writer = SerializedFileWriter::new(to, schema, Arc::new(properties.build()))?;
    for (rows, columns) in groups.filter(|(rows, _)| *rows > 0) {
        let mut group = writer.next_row_group()?;
        for (name, values) in columns {
            let mut column = group.next_column()?.ok_or_else(|| ParquetError::General(format!("no column {name}")))?;
            values.write(rows, &mut column)?;
            column.close()?;
        }
        group.close()?;
    }
    writer.close()?;
    Ok(())
}
