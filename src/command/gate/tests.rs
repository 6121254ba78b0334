use clap::Parser;

#[test]
fn the_gate_command_of_the_workflow_fixture_parses() {
    let workflow = include_str!("../../../fixtures/workflow.yml");
    let line = workflow.lines().find_map(|line| line.trim().strip_prefix("- run: syscost gate"));
    let line = line.expect("a gate").replace("${{ github.base_ref }}", "main");
    let line = format!("syscost gate{line}");
    let words = line.split_whitespace().map(|word| word.trim_matches('"'));
    assert!(super::super::Line::try_parse_from(words).is_ok(), "{line}");
}

#[test]
fn workflows_grant_write_permission_per_job_and_take_no_pull_request_number_from_an_artifact() {
    let workflows = [
        include_str!("../../../fixtures/workflow.yml"),
        include_str!("../../../fixtures/workflow-comment.yml"),
        include_str!("../../../fixtures/workflow-kernel.yml"),
        include_str!("../../../fixtures/nightly.yml"),
    ];
    for text in workflows {
        let (head, jobs) = text.split_once("\njobs:\n").expect("jobs");
        let (_, rights) = head.split_once("\npermissions:").expect("rights of the workflow");
        assert!(!rights.contains(": write"), "{rights}");
        assert!(
            !jobs.contains("syscost-gate/number"),
            "a fork writes the artifact, and could name any pull request"
        );
    }
    let comment = workflows[1];
    for fact in ["workflow_run.head_sha", "workflow_run.head_repository.full_name"] {
        assert!(comment.contains(fact), "{fact}");
    }
}
