//! What a person sees of a session over reboots.

use crate::reboot::boot_kernel::BootKernel;
use crate::reboot::boot_loader::BootLoader;
use crate::reboot::boot_plan::BootPlan;
use syscost_command_line::page;
use syscost_engine::render::table::Layout;

/// The plan before it begins.
pub(super) fn render_plan(plan: &BootPlan, layout: Layout) -> String {
    let row = |kernel: &BootKernel| {
        [kernel.name.clone(), kernel.release.clone(), kernel.image.display().to_string()]
            .map(|cell| page::inert(&cell))
    };
    let rows: Vec<_> = plan.kernels.iter().map(row).collect();
    if page::is_piped() {
        return page::tabbed_rows(&rows);
    }
    let by = match plan.loader {
        BootLoader::Grub => "GRUB",
        BootLoader::Kexec => "kexec",
    };
    let restarts = plan.kernels.len() * plan.wanted as usize;
    let table = render_table(["kernel", "release", "image"], rows, layout);
    format!(
        "{table}\n{} by {by}, in turn: {} of each kernel; {} of `syscost record {}` in each boot, {} s after it.\n",
        page::count_with_noun(restarts, "restart", "restarts"),
        page::count_with_noun(plan.wanted as usize, "boot", "boots"),
        page::count_with_noun(plan.processes as usize, "process", "processes"),
        page::inert(&plan.record.join(" ")),
        plan.settle
    )
}

/// How far a session has come.
pub(super) fn render_progress(plan: &BootPlan, is_going_on: bool, layout: Layout) -> String {
    let row = |(at, kernel): (usize, &BootKernel)| {
        let boots = plan.boots.iter().filter(|boot| boot.kernel == at);
        [
            page::inert(&kernel.name),
            format!("{} of {}", plan.count_whole_boots(at), plan.wanted),
            boots.map(|boot| boot.records.len()).sum::<usize>().to_string(),
            page::inert(kernel.given_up.as_deref().unwrap_or_default()),
        ]
    };
    let rows: Vec<_> = plan.kernels.iter().enumerate().map(row).collect();
    if page::is_piped() {
        return page::tabbed_rows(&rows);
    }
    let table = render_table(["kernel", "boots", "records", "given up"], rows, layout);
    format!("{table}\n{}\n", next_step_sentence(plan, is_going_on))
}

fn next_step_sentence(plan: &BootPlan, is_going_on: bool) -> String {
    let has_all =
        |at: usize| plan.count_whole_boots(at) >= plan.wanted as usize || plan.kernels[at].given_up.is_some();
    let compare = format!("`syscost compare --by kernel {}` judges", plan.name);
    match (is_going_on, (0..plan.kernels.len()).all(has_all)) {
        (_, true) => format!("The session has ended: {compare}."),
        (true, false) => format!("It goes on at the next boot; {compare} what there is so far."),
        (false, false) => format!("It was stopped: `syscost kernels session resume {}` goes on.", plan.name),
    }
}

fn render_table<const N: usize>(head: [&str; N], mut rows: Vec<[String; N]>, layout: Layout) -> String {
    rows.insert(0, head.map(str::to_owned));
    page::columns_text(&rows, page::table_width(layout))
}
