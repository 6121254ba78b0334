//! Predictions by a reader, which replace those of the cases in the observation table.

mod prediction_file;

use crate::record::{Outcome, Predicted, Record};
use std::collections::BTreeMap;

/// Predictions by case id.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides(pub BTreeMap<String, Override>);

/// One prediction. A part that is not given stays as the case predicted it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Override {
    /// The part that the hardware charges, ns.
    pub hardware_ns: Option<f64>,
    /// The part that the software adds, ns.
    pub software_ns: Option<f64>,
    /// Why.
    pub why: Option<String>,
}

impl Override {
    fn apply_to(&self, predicted: &mut Predicted) {
        predicted.hardware = self.hardware_ns.unwrap_or(predicted.hardware);
        predicted.software = self.software_ns.unwrap_or(predicted.software);
        predicted.why = self.why.clone().unwrap_or_else(|| std::mem::take(&mut predicted.why));
    }
}

/// Puts the predictions into the record. Returns the ids that no case has, which are probably misspelt.
pub fn apply_overrides(overrides: &Overrides, record: &mut Record) -> Vec<String> {
    for case in record.groups.iter_mut().flat_map(|g| &mut g.cases) {
        if let (Some(given), Outcome::Measured(measured)) = (overrides.0.get(&case.id), &mut case.outcome) {
            given.apply_to(measured.predicted.get_or_insert_default());
        }
    }
    let known = |id: &&String| !record.cases().any(|(_, case)| case.id == **id);
    overrides.0.keys().filter(known).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture_run;

    fn overrides(id: &str, given: Override) -> Overrides {
        Overrides(BTreeMap::from([(id.to_owned(), given)]))
    }

    fn predicted(record: &Record, id: &str) -> Predicted {
        let (_, case) = record.cases().find(|(_, case)| case.id == id).unwrap();
        case.measured().unwrap().predicted.clone().unwrap()
    }

    #[test]
    fn what_is_not_given_stays() {
        let mut record = fixture_run::fixture_record();
        let before = predicted(&record, "call/u64/3");
        let given = Override { hardware_ns: Some(9.5), ..Override::default() };
        assert!(apply_overrides(&overrides("call/u64/3", given), &mut record).is_empty());
        assert_eq!(predicted(&record, "call/u64/3"), Predicted { hardware: 9.5, ..before });
    }

    #[test]
    fn a_case_without_a_prediction_gets_one() {
        let mut record = fixture_run::fixture_record();
        let given = Override { software_ns: Some(3.0), why: Some("a guess".into()), ..Override::default() };
        apply_overrides(&overrides("known_work/chain-1000", given), &mut record);
        let wanted = Predicted { hardware: 0.0, software: 3.0, why: "a guess".into(), whole: false };
        assert_eq!(predicted(&record, "known_work/chain-1000"), wanted);
    }

    #[test]
    fn an_unknown_id_is_told_and_a_skipped_case_is_not() {
        let mut record = fixture_run::fixture_record();
        assert_eq!(
            apply_overrides(&overrides("call/u65/3", Override::default()), &mut record),
            ["call/u65/3"]
        );
        assert!(
            apply_overrides(&overrides("clock_read/cntvct", Override::default()), &mut record).is_empty()
        );
    }
}
