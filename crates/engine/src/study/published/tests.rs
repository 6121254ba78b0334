use super::*;
#[test]
fn every_published_value_is_a_positive_number_in_one_unit() {
    for (name, _) in FILES {
        for value in &load_published(name).unwrap().rows {
            let numbers = [value.ns, value.value, value.sd, value.sd_times, value.predicted_ns, value.times];
            assert!(numbers.into_iter().flatten().all(|n| n.is_finite() && n > 0.0), "{name}: {value:?}");
            assert_eq!(value.ns.is_some(), value.value.is_none(), "{name}: {value:?}");
            assert_eq!(value.value.is_some(), value.unit.is_some(), "{name}: {value:?}");
            assert!(!value.what.is_empty(), "{name}: {value:?}");
            let limit =
                value.hardware.as_ref().and_then(|text| text.strip_suffix(" MB/s")?.parse::<f64>().ok());
            let is_limit = limit.zip(value.value).is_some_and(|(limit, value)| limit == 1e3 * value);
            assert_eq!(is_limit, value.below, "{name}: a limit is no measurement: {value:?}");
        }
    }
}

#[test]
fn both_machines_are_found_in_the_order_asked() {
    let found = find("cse221, csc501").unwrap();
    assert_eq!([&found[0].name, &found[1].name], ["cse221", "csc501"]);
    assert_eq!(found[0].values_ns()["syscall/getpid"], 3.44);
    assert!(!found[1].values_ns().contains_key("call/u32/0"), "it is net, and the column shows costs");
}

#[test]
fn notes_name_the_source_and_the_values_of_another_operation() {
    let mut record = crate::record::fixture_run::fixture_record();
    record.groups[0].cases[0].id = "syscall/getpid".into();
    let [cse221] = &find("cse221").unwrap()[..] else { panic!("one was asked for") };
    let notes = cse221.notes(&record);
    assert!(notes[0].starts_with("cse221: ") && notes[0].contains("i7-3770K"), "{notes:?}");
    assert!(notes[1..].iter().any(|line| line.starts_with("cse221 syscall/getpid: ")), "{notes:?}");
    assert!(notes.iter().all(|line| !line.contains("call/u32")), "{notes:?}");
    record.unit = "page-faults".into();
    assert!(cse221.notes(&record).is_empty());
}

#[test]
fn the_error_on_an_unknown_name_lists_the_known_ones() {
    let message = find("csc501,vax").unwrap_err().to_string();
    assert!(message.contains("`vax`") && message.contains("csc501, cse221"), "{message}");
}
