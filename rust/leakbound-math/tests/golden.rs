//! Every function against values computed at 60 digits, each row with its own tolerance.
//!
//! The files, their format and the scripts that write them are described in `tests/golden/README.md`.
#![allow(clippy::unwrap_used, clippy::panic)]

use leakbound_math::binomial::{Binomial, RELATIVE_ERROR};
use leakbound_math::clopper_pearson::lower_limit;
use leakbound_math::probability::Probability;
use leakbound_math::{deviance, logistic, normal};

/// One line of a golden file, by column name.
struct Row<'a> {
    names: Vec<&'a str>,
    cells: Vec<&'a str>,
}

impl Row<'_> {
    fn text(&self, name: &str) -> &str {
        let column = self.names.iter().position(|n| *n == name);
        self.cells[column.unwrap_or_else(|| panic!("no column {name}"))]
    }

    fn float(&self, name: &str) -> f64 {
        self.text(name).parse().unwrap()
    }

    fn count(&self, name: &str) -> u64 {
        self.text(name).parse().unwrap()
    }

    /// The probability in columns p and q, of which the smaller is exact.
    fn probability(&self) -> Probability {
        let (p, q) = (self.float("p"), self.float("q"));
        if p <= q {
            Probability::new(p).unwrap()
        } else {
            Probability::from_complement(q).unwrap()
        }
    }
}

/// Applies `check` to every row, then fails with all its complaints at once.
fn for_each_row(file: &str, at_least: usize, check: impl Fn(&Row) -> Result<(), String>) {
    let path = format!("{}/../../tests/golden/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let mut lines = text.lines();
    let names: Vec<_> = lines.next().unwrap().split(',').collect();
    let rows: Vec<_> = lines
        .map(|line| Row {
            names: names.clone(),
            cells: line.split(',').collect(),
        })
        .collect();
    assert!(
        rows.len() >= at_least,
        "{file} has only {} rows",
        rows.len()
    );
    let complaints: Vec<_> = rows
        .iter()
        .filter_map(|row| {
            check(row)
                .err()
                .map(|e| format!("{}: {e}", row.cells.join(",")))
        })
        .collect();
    assert!(
        complaints.is_empty(),
        "{file}, {} rows:\n{}",
        complaints.len(),
        complaints.join("\n")
    );
}

/// Is `got` within `rtol` of `expected`, relatively? Below the normal doubles, within two steps.
fn close(what: &str, got: f64, expected: f64, rtol: f64) -> Result<(), String> {
    let error = (got - expected).abs();
    let coarse = if expected.abs() < 1e-307 { 1e-323 } else { 0.0 };
    if got == expected || error <= rtol * expected.abs() || error <= coarse {
        Ok(())
    } else {
        Err(format!(
            "{what} gave {got:e}, off by {:e}",
            error / expected.abs()
        ))
    }
}

#[test]
fn the_normal_distribution() {
    for_each_row("normal.csv", 700, |row| {
        let (x, value, rtol) = (row.float("x"), row.float("value"), row.float("rtol"));
        let check = |what: &str, got: f64| close(what, got, value, rtol);
        match row.text("function") {
            "sf" => check("sf", normal::sf(x)).and(check("cdf", normal::cdf(-x))),
            "ln_sf" => check("ln_sf", normal::ln_sf(x)).and(check("ln_cdf", normal::ln_cdf(-x))),
            "mills_ratio" => check("mills_ratio", normal::mills_ratio(x)),
            "quantile" => {
                let p = Probability::new(x).unwrap();
                let mirrored = -normal::quantile(p.complement());
                check("quantile", normal::quantile(p)).and(check("its mirror image", mirrored))
            }
            other => Err(format!("no function {other}")),
        }
    });
}

#[test]
fn elementary_functions() {
    for_each_row("elementary.csv", 640, |row| {
        let (x, y, z) = (row.float("x"), row.float("y"), row.float("z"));
        let p = Probability::new(z).unwrap();
        let got = match row.text("function") {
            "expit" => logistic::expit(x),
            "logit" => logistic::logit(x),
            "log_expit" => logistic::log_expit(x),
            "softplus" => logistic::softplus(x),
            "binomial_divergence" => deviance::binomial_divergence(x, y, p),
            "binomial_divergence_q" => deviance::binomial_divergence(x, y, p.complement()),
            "stirling_error" => deviance::stirling_error(x as u64),
            other => return Err(format!("no function {other}")),
        };
        close("it", got, row.float("value"), row.float("rtol"))
    });
}

#[test]
fn binomial_points_and_tails() {
    for_each_row("binomial.csv", 2000, |row| {
        let law = Binomial::new(row.count("trials"), row.probability());
        let v = row.count("successes");
        let (got, ln) = match row.text("function") {
            "pmf" => (law.pmf(v), law.ln_pmf(v)),
            "upper_tail" => (law.upper_tail(v), law.ln_upper_tail(v)),
            "lower_tail" => (law.lower_tail(v), law.ln_lower_tail(v)),
            other => return Err(format!("no function {other}")),
        };
        let (value, ln_value) = (row.float("value"), row.float("ln_value"));
        close("the logarithm", ln, ln_value, row.float("ln_rtol"))?;
        if value >= 1e-300 {
            assert!(row.float("rtol") <= RELATIVE_ERROR);
            return close("the value", got, value, row.float("rtol"));
        }
        if got <= 1e-300 {
            Ok(())
        } else {
            Err(format!("the value gave {got:e}"))
        }
    });
}

#[test]
fn clopper_pearson_limits() {
    for_each_row("clopper_pearson.csv", 250, |row| {
        let (v, n, beta) = (
            row.count("successes"),
            row.count("trials"),
            row.float("beta"),
        );
        let (p, q, rtol) = (row.float("p"), row.float("q"), row.float("rtol"));
        let low = lower_limit(v, n, beta).map_err(|e| e.to_string())?;
        close("p", low.p(), p, rtol)?;
        close("q", low.q(), q, rtol)?;
        if v > 0 && (low.p() > p || low.q() < q || (low.p() == p && low.q() == q)) {
            return Err(format!("{low:?} is not below the exact limit"));
        }
        Ok(())
    });
}
