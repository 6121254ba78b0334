//! The microarchitecture of a processor, by the numbers that CPUID gives it.

use super::Fingerprint;

impl Fingerprint {
    /// Machines that this one is like: `Zen 3 guest`, `Ice Lake server`. `None` if the microarchitecture is not known.
    pub fn machine_kind(&self) -> Option<String> {
        let number = |text: &Option<String>| text.as_ref()?.trim().parse::<u32>().ok();
        let numbers = number(&self.cpu_family).zip(number(&self.cpu_model_number));
        let known = match (self.cpu_vendor.as_deref(), numbers) {
            (Some("AuthenticAMD"), Some((family, model))) => zen_name(family, model),
            (Some("GenuineIntel"), Some((6, model))) => intel_name(model),
            _ => None,
        };
        let place = if self.hypervisor.is_some() { "guest" } else { "machine" };
        Some(format!("{} {place}", known?))
    }
}

/// AMD's names by family and model (*Processor Programming References*).
fn zen_name(family: u32, model: u32) -> Option<&'static str> {
    Some(match (family, model) {
        (0x17, 0x00..=0x2f) => "Zen",
        (0x17, _) => "Zen 2",
        (0x19, 0x00..=0x0f | 0x20..=0x5f) => "Zen 3",
        (0x19, _) => "Zen 4",
        (0x1a, _) => "Zen 5",
        _ => return None,
    })
}

/// Intel's names by the model of family 6 (*Software Developer's Manual*, volume 4, table 2-1).
fn intel_name(model: u32) -> Option<&'static str> {
    Some(match model {
        0x2a | 0x2d => "Sandy Bridge",
        0x3a | 0x3e => "Ivy Bridge",
        0x3c | 0x3f | 0x45 | 0x46 => "Haswell",
        0x3d | 0x47 | 0x4f | 0x56 => "Broadwell",
        0x4e | 0x5e | 0x55 | 0x8e | 0x9e | 0xa5 | 0xa6 => "Skylake",
        0x6a | 0x6c | 0x7d | 0x7e => "Ice Lake",
        0x8c | 0x8d => "Tiger Lake",
        0x97 | 0x9a => "Alder Lake",
        0xb7 | 0xba | 0xbf => "Raptor Lake",
        0x8f => "Sapphire Rapids",
        0xcf => "Emerald Rapids",
        0xad | 0xae => "Granite Rapids",
        0xaf => "Sierra Forest",
        0xaa | 0xac => "Meteor Lake",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(vendor: &str, [family, model]: [u32; 2], hypervisor: Option<&str>) -> Option<String> {
        let known = Fingerprint {
            cpu_vendor: Some(vendor.into()),
            cpu_family: Some(family.to_string()),
            cpu_model_number: Some(model.to_string()),
            hypervisor: hypervisor.map(str::to_owned),
            ..Fingerprint::default()
        };
        known.machine_kind()
    }

    #[test]
    fn a_known_processor_has_its_name_and_another_has_none() {
        assert_eq!(kind("AuthenticAMD", [25, 1], Some("KVM")).as_deref(), Some("Zen 3 guest"));
        assert_eq!(kind("AuthenticAMD", [25, 17], None).as_deref(), Some("Zen 4 machine"));
        assert_eq!(kind("GenuineIntel", [6, 173], Some("KVM")).as_deref(), Some("Granite Rapids guest"));
        assert_eq!(kind("GenuineIntel", [6, 1], None), None);
        assert_eq!(kind("another", [25, 1], None), None);
        assert_eq!(Fingerprint::default().machine_kind(), None);
    }
}
