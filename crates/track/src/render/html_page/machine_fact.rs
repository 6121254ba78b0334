//! What a reader wants to know of a machine before its numbers.

use syscost_engine::environment::{Cache, Fingerprint, Smt};
use syscost_engine::record::quantity::format_size;

/// Name and value of what is known, the most telling first.
pub(super) fn machine_facts(fingerprint: &Fingerprint) -> Vec<[String; 2]> {
    let f = fingerprint;
    let text = |text: &Option<String>| text.clone();
    let all = [
        ("processor", text(&f.cpu_model)),
        ("CPUs", cpu_text(f)),
        ("kernel", text(&f.kernel_release)),
        ("kernel build", text(&f.kernel_version)),
        ("kernel command line", text(&f.kernel_command_line)),
        ("hypervisor", f.hypervisor.clone().or_else(|| Some("none visible".into()))),
        ("product", text(&f.product)),
        ("memory", f.memory_bytes.map(format_size)),
        ("NUMA nodes", f.numa_nodes.map(|nodes| nodes.to_string())),
        ("caches", cache_text(&f.caches)),
        ("CPU quota", f.cpu_quota.map(|quota| format!("{quota} CPUs"))),
        ("frequency governor", text(&f.governor)),
        ("turbo", f.turbo.map(|on| if on { "on" } else { "off" }.into())),
        ("microcode", text(&f.microcode)),
        ("clock source of the kernel", text(&f.clock_source)),
        ("huge pages", text(&f.huge_pages)),
        ("scratch file system", text(&f.scratch_filesystem)),
        ("compiler", text(&f.compiler)),
        ("target and profile", target_and_profile(f)),
        ("syscost", text(&f.crate_version)),
    ];
    all.into_iter().filter_map(|(name, value)| Some([name.into(), value?])).collect()
}

fn cpu_text(f: &Fingerprint) -> Option<String> {
    let threads = match f.smt {
        Smt::Active => ", several threads a core",
        Smt::Off => ", one thread a core",
        Smt::Unknown => "",
    };
    let allowed = f.cpus_allowed.as_ref().map_or(String::new(), |list| format!(", allowed {list}"));
    Some(format!("{}{threads}{allowed}", f.cpu_count?))
}

fn cache_text(caches: &[Cache]) -> Option<String> {
    let one = |cache: &Cache| {
        format!("L{} {} {}", cache.level, cache.kind.to_lowercase(), format_size(cache.bytes))
    };
    let all: Vec<_> = caches.iter().map(one).collect();
    (!all.is_empty()).then(|| all.join(" · "))
}

fn target_and_profile(f: &Fingerprint) -> Option<String> {
    Some(format!("{}, {}", f.target.as_ref()?, f.profile.as_deref().unwrap_or("unknown profile")))
}
