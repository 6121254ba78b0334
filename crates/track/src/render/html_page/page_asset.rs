//! The script and the style sheet of a page, and the document around them.
//!
//! `uplot.js` and `uplot.css` are the charts' library as its package has them; `scripts/page` fetched them and compares them
//! again. The other files are of this crate. A build needs no node.

use base64::prelude::{BASE64_STANDARD as STANDARD, Engine};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

/// The library's licence, which stands in every page.
pub(super) const LICENSE: &str = include_str!("asset/uplot.LICENSE");

/// The whole script: the library, then the parts of the page in the order in which they need each other.
const SCRIPT: &str = concat!(
    include_str!("asset/uplot.js"),
    "\n\"use strict\";\n(() => {\n",
    include_str!("asset/text.js"),
    include_str!("asset/state.js"),
    include_str!("asset/drawing.js"),
    include_str!("asset/manual.js"),
    include_str!("asset/machine.js"),
    include_str!("asset/table.js"),
    include_str!("asset/detail.js"),
    include_str!("asset/curve.js"),
    include_str!("asset/paper.js"),
    include_str!("asset/comparison.js"),
    include_str!("asset/choice.js"),
    include_str!("asset/history.js"),
    include_str!("asset/history_table.js"),
    include_str!("asset/start.js"),
    "})();\n"
);

const STYLE: &str = concat!(include_str!("asset/uplot.css"), "\n", include_str!("asset/page.css"));

/// What a browser may do with the page: run this script, take this style, show pictures that are in it.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; img-src data: blob:; base-uri 'none'; \
         form-action 'none'",
        hash(SCRIPT),
        hash(STYLE)
    )
});

/// The page with these data.
pub(super) fn html_document(json: &str) -> String {
    let license = LICENSE.trim().replace("--", "- -");
    let data = escape_json(json);
    format!(
        "<!doctype html>\n<html lang=\"en\" dir=\"ltr\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>syscost</title>\n\
         <!-- Charts by uPlot:\n{license}\n-->\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <noscript><p>This page draws itself by a script of its own, which this browser does not run. The numbers are in \
         its source, as JSON.</p></noscript>\n\
         <script type=\"application/json\" id=\"data\">{data}</script>\n<script>{SCRIPT}</script>\n</body>\n</html>\n",
        *POLICY
    )
}

/// JSON in which nothing can end a block of script. `<` stands in its strings only.
fn escape_json(json: &str) -> String {
    json.replace('<', "\\u003c")
}

/// The SHA-256 of a text as a policy writes it, in base 64.
pub(super) fn hash(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_asset_can_end_its_block() {
        assert!(!SCRIPT.contains("</script") && !SCRIPT.contains("<!--"));
        assert!(!STYLE.contains("</style"));
    }
}
