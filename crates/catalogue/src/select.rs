//! Selection of experiments by the words of a call.

use thiserror::Error;

use crate::experiment::{Experiment, list};

/// A word that is neither a paper nor an experiment.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown experiment \"{id}\"\nhint: {hint}")]
pub struct UnknownExperiment {
    /// The word.
    pub id: String,
    /// A similar id, if any.
    pub hint: String,
}

/// The selected experiments, in the order of the catalogue and each once: "all", a paper ("002") or an experiment
/// ("002/fig-vii-2a"). Those with real programs are selected only by their full names. Without words the list is empty.
pub fn select<S: AsRef<str>>(ids: &[S]) -> Result<Vec<&'static Experiment>, UnknownExperiment> {
    let mut chosen = vec![false; list().len()];
    for id in ids {
        let id = id.as_ref();
        let mut found = false;
        for (experiment, chosen) in list().iter().zip(&mut chosen) {
            let paper = experiment.id.split('/').next().unwrap_or_default();
            let is_meant = id == "all" || id == paper;
            if is_meant && experiment.wire.is_none() || id == experiment.id {
                *chosen = true;
                found = true;
            }
        }
        if !found {
            return Err(UnknownExperiment { id: id.to_owned(), hint: hint(id) });
        }
    }
    Ok(list().iter().zip(chosen).filter(|(_, chosen)| *chosen).map(|(experiment, _)| experiment).collect())
}

/// The nearest id if it is similar, otherwise how to list them all.
fn hint(id: &str) -> String {
    let near = list()
        .iter()
        .map(|experiment| (strsim::osa_distance(&experiment.id, id), experiment.id.as_str()))
        .min_by_key(|(distance, _)| *distance);
    match near {
        Some((distance, near)) if distance <= 3 => format!("did you mean \"{near}\"?"),
        _ => "`fairwave papers list` shows them all".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn select__by_all_paper_and_id() {
        let simulated = list().iter().filter(|experiment| experiment.wire.is_none());
        assert_eq!(select(&["all"]).unwrap().len(), simulated.count());
        let paper = select(&["002"]).unwrap();
        assert!(!paper.is_empty() && paper.iter().all(|experiment| experiment.id.starts_with("002/")));
        assert_eq!(select(&["002/fig-vii-3"]).unwrap()[0].id, "002/fig-vii-3");
        assert!(select::<&str>(&[]).unwrap().is_empty());
    }

    #[test]
    fn select__gives_each_once_in_the_order_of_the_catalogue() {
        let ids: Vec<_> = select(&["002/fig-vii-5", "002/fig-vii-3", "002/fig-vii-5"]).unwrap();
        assert_eq!(ids.iter().map(|e| e.id.as_str()).collect::<Vec<_>>(), ["002/fig-vii-3", "002/fig-vii-5"]);
    }

    #[test]
    fn select__suggests_ids_for_unknown_words() {
        let error = select(&["002/fig-vii-2e"]).unwrap_err();
        assert!(error.hint.contains("002/fig-vii-2"), "{error}");
        assert!(select(&["everything"]).unwrap_err().hint.contains("papers list"));
    }
}
