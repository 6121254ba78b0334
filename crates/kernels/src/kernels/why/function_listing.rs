//! The executed instructions of one function, with how often an iteration executes each.

use super::CaseDifference;
use crate::executed::execution_log::ExecutionLog;
use crate::executed::function_table::Naming;

/// The listing of this function in A and in B.
pub fn listing(
    difference: &CaseDifference,
    logs: &[ExecutionLog; 2],
    naming: &Naming<'_>,
    function: &str,
) -> String {
    let mut said = String::new();
    for (side, (log, label)) in logs.iter().zip(["A", "B"]).enumerate() {
        let Some(case) = log.case(&difference.id) else { continue };
        said += &format!("{label}: {function}\n");
        let differences = case.differences();
        let of_function = differences.iter().filter(|(address, _)| {
            **address != 0 && naming.name(side, log.symbols.start(**address)) == function
        });
        let mut is_empty = true;
        for (address, [count, _]) in of_function {
            let text = case.batches.iter().find_map(|batch| batch.sites.get(address)).map(|site| &site.text);
            let count = *count as f64 / difference.iterations as f64;
            said += &format!("{count:10.2}  {address:x}  {}\n", text.map_or("", String::as_str));
            is_empty = false;
        }
        if is_empty {
            said += "            it executes no instruction of this function\n";
        }
    }
    said
}
