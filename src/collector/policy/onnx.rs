//! Policies in ONNX format.

use std::path::Path;
use std::sync::Arc;

use tract_onnx::prelude::*;
use tract_onnx::tract_hir::infer::Factoid;
use tract_onnx::tract_hir::internal::DimLike;

use super::{Policy, PolicyError};

/// Name of the input that is fed, if the model has one of this name; else it is the first.
const INPUT: &str = "obs";

/// Name of the output that is used, if the model has one of this name; else it is the first.
const OUTPUT: &str = "actions";

/// A policy network in ONNX format.
///
/// It takes the first observation group, as single-precision numbers of shape (batch, width), and gives actions of shape
/// (batch, action width). A batch of any size, or of as many rows as there are, is run at once; a model for a batch of
/// one is run row by row. It runs on the calling thread.
#[derive(Debug)]
pub struct OnnxPolicy {
    path: String,
    plan: Arc<TypedRunnableModel>,
    output: usize,
    batch: usize,
    observation_width: usize,
    action_width: usize,
}

impl OnnxPolicy {
    /// Loads a model and checks that it fits `rows` rows of the given widths.
    ///
    /// # Errors
    /// The file is no model that can be run, or it takes or gives something else.
    pub fn load(
        path: impl AsRef<Path>,
        rows: usize,
        observation_width: usize,
        action_width: usize,
    ) -> Result<Self, PolicyError> {
        let name = path.as_ref().display().to_string();
        let failed = |error: TractError| PolicyError::Load { path: name.clone(), message: format!("{error:#}") };
        let mismatch = |what: String, expected: String| PolicyError::Mismatch { path: name.clone(), what, expected };

        let mut model = tract_onnx::onnx().model_for_path(&path).map_err(failed)?;
        let inputs = model.input_outlets().map_err(failed)?.to_vec();
        let named = inputs.iter().position(|outlet| model.node(outlet.node).name == INPUT);
        let Some(&input) = named.map_or(inputs.first(), |index| inputs.get(index)) else {
            return Err(mismatch("has no input".to_owned(), format!("{observation_width} observations")));
        };
        if inputs.len() > 1 {
            let names: Vec<&str> = inputs.iter().map(|outlet| model.node(outlet.node).name.as_str()).collect();
            let what = format!("has {} inputs ({})", names.len(), names.join(", "));
            return Err(mismatch(what, format!("one, of {observation_width} observations")));
        }

        let fact = model.outlet_fact(input).map_err(failed)?;
        if let Some(kind) = fact.datum_type.concretize().filter(|kind| *kind != f32::datum_type()) {
            return Err(mismatch(format!("takes values of type {kind:?}"), "values of type F32".to_owned()));
        }
        let dims: Vec<Option<usize>> =
            fact.shape.dims().map(|dim| dim.concretize().and_then(|dim| dim.to_usize().ok())).collect();
        let shape = fact.shape.clone();
        let expected = || format!("{rows} rows of {observation_width} observations");
        let batch = match dims[..] {
            [batch, width] if width.is_none_or(|width| width == observation_width) => batch.unwrap_or(rows),
            [] if shape.is_open() => rows,
            _ => return Err(mismatch(format!("takes an input of shape {shape:?}"), expected())),
        };
        if batch != rows && batch != 1 {
            return Err(mismatch(format!("takes a batch of {batch}"), expected()));
        }
        model
            .set_input_fact(0, InferenceFact::dt_shape(f32::datum_type(), [batch, observation_width]))
            .map_err(failed)?;

        let outputs = model.output_outlets().map_err(failed)?;
        let named =
            |outlet: &OutletId| model.outlet_label(*outlet) == Some(OUTPUT) || model.node(outlet.node).name == OUTPUT;
        let output = outputs.iter().position(named).unwrap_or(0);
        let model = model.into_optimized().map_err(failed)?;
        let fact = model.output_fact(output).map_err(failed)?;
        let expected_output = || format!("actions of shape ({batch}, {action_width}) and type F32");
        let gives = fact.shape.as_concrete();
        if gives != Some(&[batch, action_width][..]) || fact.datum_type != f32::datum_type() {
            return Err(mismatch(format!("gives an output of {fact:?}"), expected_output()));
        }
        let plan = model.into_runnable().map_err(failed)?;
        Ok(Self { path: name, plan, output, batch, observation_width, action_width })
    }

    fn run(&self, observations: &[f32], actions: &mut [f32]) -> TractResult<()> {
        let input = Tensor::from_shape(&[self.batch, self.observation_width], observations)?;
        let outputs = self.plan.run(tvec!(input.into()))?;
        actions.copy_from_slice(outputs[self.output].try_as_plain_ram()?.as_slice::<f32>()?);
        Ok(())
    }
}

impl Policy for OnnxPolicy {
    fn act(&mut self, observations: &[f32], actions: &mut [f32]) -> Result<(), PolicyError> {
        let inputs = observations.chunks_exact(self.batch * self.observation_width);
        let outputs = actions.chunks_exact_mut(self.batch * self.action_width);
        for (observations, actions) in inputs.zip(outputs) {
            self.run(observations, actions)
                .map_err(|error| PolicyError::Run(format!("{} failed: {error:#}", self.path)))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(name: &str, rows: usize, observations: usize, actions: usize) -> Result<OnnxPolicy, PolicyError> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/policies");
        OnnxPolicy::load(folder.join(name), rows, observations, actions)
    }

    /// What the models compute: observations · [[1 2] [3 4] [5 6]] + [0.5 −0.5].
    const OBSERVATIONS: [f32; 6] = [1.0, 0.0, 0.0, 1.0, 1.0, 1.0];
    const ACTIONS: [f32; 4] = [1.5, 1.5, 9.5, 11.5];

    #[test]
    fn models_for_any_batch_and_for_one_row_give_the_same_actions() {
        for name in ["any_batch.onnx", "batch_of_one.onnx"] {
            let mut actions = [0.0; 4];
            load(name, 2, 3, 2).unwrap().act(&OBSERVATIONS, &mut actions).unwrap();
            assert_eq!(actions, ACTIONS, "{name}");
        }
    }

    #[test]
    fn models_that_do_not_fit_are_refused_before_they_run() {
        let refused = |name, rows, observations, actions| {
            load(name, rows, observations, actions).map(|_| ()).unwrap_err().to_string()
        };
        let text = refused("any_batch.onnx", 2, 49, 2);
        assert!(text.contains("any_batch.onnx takes an input") && text.contains("2 rows of 49 observations"), "{text}");
        let text = refused("one_action.onnx", 2, 3, 2);
        assert!(text.contains("gives an output") && text.contains("shape (2, 2)"), "{text}");
        let text = refused("batch_of_seven.onnx", 2, 3, 2);
        assert!(text.contains("takes a batch of 7"), "{text}");
        assert!(load("batch_of_seven.onnx", 7, 3, 2).is_ok());
        let text = refused("double.onnx", 2, 3, 2);
        assert!(text.contains("F64"), "{text}");
        let text = refused("make.py", 2, 3, 2);
        assert!(text.contains("cannot load the policy"), "{text}");
        let text = refused("missing.onnx", 2, 3, 2);
        assert!(text.contains("missing.onnx"), "{text}");
    }
}
