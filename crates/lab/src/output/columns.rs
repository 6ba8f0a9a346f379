//! A table by columns, which CSV and Parquet are written from.

use std::borrow::Cow;
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedColumnWriter;
use parquet::schema::types::{Type, TypePtr};

/// A column's values; an optional one that is empty has no value in any row.
#[derive(Clone, Debug)]
pub(super) enum Column<'a> {
    /// One text, which every row has.
    Name(&'a str),
    Texts(Vec<&'a str>),
    OptionalTexts(Vec<Option<&'a str>>),
    Counts(Cow<'a, [u64]>),
    /// Numbers that may take all 64 bits, such as seeds.
    Words(Vec<u64>),
    Rates(&'a [f64]),
    OptionalCounts(Cow<'a, [Option<u64>]>),
    OptionalRates(Cow<'a, [Option<f64>]>),
    Truths(Vec<bool>),
}

/// A table's columns with their names, in order.
pub(super) type Columns<'a> = Vec<(String, Column<'a>)>;

impl Column<'_> {
    /// A row's value as CSV has it; empty where there is none.
    pub(super) fn cell(&self, row: usize) -> String {
        fn shown(value: Option<&Option<impl ToString>>) -> String {
            value.and_then(Option::as_ref).map_or_else(String::new, ToString::to_string)
        }
        match self {
            Column::Name(name) => super::csv_field(name),
            Column::Texts(texts) => super::csv_field(texts[row]),
            Column::OptionalTexts(texts) => texts[row].map_or_else(String::new, super::csv_field),
            Column::Counts(counts) => counts[row].to_string(),
            Column::Words(words) => words[row].to_string(),
            Column::Rates(rates) => rates[row].to_string(),
            Column::OptionalCounts(counts) => shown(counts.get(row)),
            Column::OptionalRates(rates) => shown(rates.get(row)),
            Column::Truths(truths) => truths[row].to_string(),
        }
    }

    /// Turns a column of texts that are all numbers into one of numbers; others stay.
    pub(super) fn typed(self) -> Self {
        let Column::OptionalTexts(texts) = &self else { return self };
        // Parquet's counts have a sign.
        let count = |text: &str| text.parse::<u64>().ok().filter(|&count| i64::try_from(count).is_ok());
        if let Some(counts) = each(texts, count) {
            return Column::OptionalCounts(Cow::Owned(counts));
        }
        let rate = |text: &str| text.parse::<f64>().ok().filter(|rate| rate.is_finite());
        match each(texts, rate) {
            Some(rates) => Column::OptionalRates(Cow::Owned(rates)),
            None => self,
        }
    }

    pub(super) fn schema(&self, name: &str) -> Result<TypePtr, ParquetError> {
        let (physical, repetition) = match self {
            Column::Name(_) | Column::Texts(_) => (PhysicalType::BYTE_ARRAY, Repetition::REQUIRED),
            Column::OptionalTexts(_) => (PhysicalType::BYTE_ARRAY, Repetition::OPTIONAL),
            Column::Counts(_) | Column::Words(_) => (PhysicalType::INT64, Repetition::REQUIRED),
            Column::Rates(_) => (PhysicalType::DOUBLE, Repetition::REQUIRED),
            Column::OptionalCounts(_) => (PhysicalType::INT64, Repetition::OPTIONAL),
            Column::OptionalRates(_) => (PhysicalType::DOUBLE, Repetition::OPTIONAL),
            Column::Truths(_) => (PhysicalType::BOOLEAN, Repetition::REQUIRED),
        };
        let logical = match self {
            Column::Name(_) | Column::Texts(_) | Column::OptionalTexts(_) => Some(LogicalType::String),
            Column::Words(_) => Some(LogicalType::integer(64, false)),
            _ => None,
        };
        let built = Type::primitive_type_builder(name, physical).with_repetition(repetition).with_logical_type(logical);
        built.build().map(Arc::new)
    }

    /// Writes the values of so many rows.
    pub(super) fn write(&self, rows: usize, to: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        match self {
            Column::Name(name) => {
                to.typed::<ByteArrayType>().write_batch(&vec![ByteArray::from(*name); rows], None, None)?;
            }
            Column::Texts(texts) => {
                let texts: Vec<ByteArray> = texts.iter().map(|&text| ByteArray::from(text)).collect();
                to.typed::<ByteArrayType>().write_batch(&texts, None, None)?;
            }
            Column::OptionalTexts(texts) => {
                let present = presence(texts, rows);
                let texts: Vec<ByteArray> = texts.iter().flatten().map(|&text| ByteArray::from(text)).collect();
                to.typed::<ByteArrayType>().write_batch(&texts, Some(&present), None)?;
            }
            Column::Counts(counts) => {
                let counts: Vec<i64> = counts.iter().copied().map(signed).collect();
                to.typed::<Int64Type>().write_batch(&counts, None, None)?;
            }
            Column::Words(words) => {
                let words: Vec<i64> = words.iter().map(|word| word.cast_signed()).collect();
                to.typed::<Int64Type>().write_batch(&words, None, None)?;
            }
            Column::Rates(rates) => {
                to.typed::<DoubleType>().write_batch(rates, None, None)?;
            }
            Column::OptionalCounts(counts) => {
                let present = presence(counts, rows);
                let counts: Vec<i64> = counts.iter().flatten().copied().map(signed).collect();
                to.typed::<Int64Type>().write_batch(&counts, Some(&present), None)?;
            }
            Column::OptionalRates(rates) => {
                let present = presence(rates, rows);
                let rates: Vec<f64> = rates.iter().flatten().copied().collect();
                to.typed::<DoubleType>().write_batch(&rates, Some(&present), None)?;
            }
            Column::Truths(truths) => {
                to.typed::<BoolType>().write_batch(truths, None, None)?;
            }
        }
        Ok(())
    }
}

/// Every text as `read` reads it, unless there is none, or one that it does not read.
fn each<T>(texts: &[Option<&str>], read: impl Fn(&str) -> Option<T>) -> Option<Vec<Option<T>>> {
    if texts.iter().all(Option::is_none) {
        return None;
    }
    texts.iter().map(|text| text.map_or(Some(None), |text| read(text).map(Some))).collect()
}

/// Which rows have a value.
fn presence<T>(values: &[Option<T>], rows: usize) -> Vec<i16> {
    if values.is_empty() {
        return vec![0; rows];
    }
    values.iter().map(|value| i16::from(value.is_some())).collect()
}

/// Parquet has no unsigned counts; none comes near the sign bit.
fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_are_all_numbers_are_numbers() {
        let typed = |texts: &[Option<&'static str>]| format!("{:?}", Column::OptionalTexts(texts.to_vec()).typed());
        assert_eq!(typed(&[Some("7"), None, Some("64")]), "OptionalCounts([Some(7), None, Some(64)])");
        assert_eq!(typed(&[Some("7"), Some("0.5")]), "OptionalRates([Some(7.0), Some(0.5)])");
        for words in [["7%", "14%"], ["greedy", "7"], ["inf", "1"], ["1", "NaN"], ["16k", "4"]] {
            let texts: Vec<Option<&str>> = words.into_iter().map(Some).collect();
            assert!(matches!(Column::OptionalTexts(texts).typed(), Column::OptionalTexts(_)), "{words:?}");
        }
        assert_eq!(typed(&[None, None]), "OptionalTexts([None, None])");
        // What has no place in a signed count is a number still.
        assert_eq!(typed(&[Some("18446744073709551615")]), "OptionalRates([Some(1.8446744073709552e19)])");
    }

    #[test]
    fn a_cell_is_quoted_where_it_must_be_and_empty_without_a_value() {
        assert_eq!(Column::Name("a,b").cell(3), "\"a,b\"");
        assert_eq!(Column::OptionalTexts(vec![None, Some("x")]).cell(0), "");
        assert_eq!(Column::OptionalRates(Cow::Borrowed(&[])).cell(0), "");
        assert_eq!(Column::OptionalRates(Cow::Borrowed(&[Some(0.25)])).cell(0), "0.25");
        assert_eq!(Column::Truths(vec![true]).cell(0), "true");
        assert_eq!(Column::Words(vec![u64::MAX]).cell(0), "18446744073709551615");
    }
}
