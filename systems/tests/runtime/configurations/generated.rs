//! Environments made at random, every manager with every option, as proptest strategies.

use manege_systems::config::{Entry, EnvironmentConfig, PerColumn, PerName, PhysicsConfig, TerminationEntry};
use manege_systems::managers::action::{ActionOptions, ActionTerm, JointPositionAction, RelativeJointPositionAction};
use manege_systems::managers::command::{CommandOptions, UniformVelocityCommand};
use manege_systems::managers::curriculum::{
    CurriculumOptions, CurriculumTerm, PenaltyScaling, RangeSchedule, RangeStage, RewardWeightSchedule, WeightStage,
};
use manege_systems::managers::event::{EventMode, EventOptions, EventTerm};
use manege_systems::managers::metrics::{MetricOptions, MetricTerm, Reduce, metric, state_metric};
use manege_systems::managers::observation::{
    Delay, GroupConfig, GroupOptions, NanPolicy, Noise, NoiseOperation, ObservationOptions, ObservationTerm,
    observation,
};
use manege_systems::managers::reward::{RewardOptions, RewardTerm};
use manege_systems::managers::termination::TerminationOptions;
use manege_systems::runtime::RuntimeOptions;
use manege_systems::step::AutoReset;
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;

use crate::observations::clock;
use crate::terms::{
    Push, ScaleMass, Scatter, Sensor, joints, made, nothing, observation_of, reward_of, root, termination_of, twist,
};

/// An environment, with what is known about it beforehand.
#[derive(Debug, Clone)]
pub struct Generated {
    pub config: EnvironmentConfig,
    pub options: RuntimeOptions,
    /// Width of every term of every observation group.
    pub widths: Vec<Vec<usize>>,
    /// What the terms of the first group, which are all [`clock`]s, go through.
    pub traced: Vec<Traced>,
}

/// An observation term of which everything is known.
#[derive(Debug, Clone, Copy)]
pub struct Traced {
    pub clip: [f32; 2],
    pub scale: f32,
    pub lag: usize,
    /// Frames, after the group's own length has taken its place; 0 for the current one alone.
    pub history: usize,
}

fn runtime_options() -> impl Strategy<Value = RuntimeOptions> {
    let auto_reset = select(vec![AutoReset::SameStep, AutoReset::NextStep, AutoReset::Disabled]);
    (1..=5usize, any::<u64>(), auto_reset, any::<[bool; 3]>()).prop_map(|(rows, seed, auto_reset, flags)| {
        let [corruption, randomization, stagger_episodes] = flags;
        RuntimeOptions { seed, auto_reset, corruption, randomization, stagger_episodes, ..RuntimeOptions::new(rows) }
    })
}

fn entries<O, T: ?Sized>(prefix: &str, listed: Vec<Entry<O, T>>) -> indexmap::IndexMap<String, Entry<O, T>> {
    listed.into_iter().enumerate().map(|(i, entry)| (format!("{prefix}_{i}"), entry)).collect()
}

fn position_action() -> impl Strategy<Value = JointPositionAction> {
    (0.0..1.0f32, of(0.1..1.0f32), any::<bool>()).prop_map(|(scale, clip, use_default_offset)| JointPositionAction {
        clip: clip.map(|limit| PerName::All([-limit, limit])),
        use_default_offset,
        ..JointPositionAction::around_default_pose(scale)
    })
}

/// Holds the left arm where the action says, looking at its state in every physics step.
fn feedback_action() -> crate::terms::Made<dyn ActionTerm> {
    struct Follow;
    impl ActionTerm for Follow {
        fn width(&self) -> usize {
            1
        }
        fn process(&self, raw: &[f32], _state: manege_systems::backend::SubstepState<'_>, processed: &mut [f32]) {
            processed[0] = raw[0].clamp(-1.0, 1.0);
        }
        fn write_controls(
            &self,
            processed: &[f32],
            state: manege_systems::backend::SubstepState<'_>,
            ctrl: &mut [f64],
        ) {
            ctrl[1] = 0.5 * (state.qpos[7] + f64::from(processed[0]));
        }
        fn needs_substep_feedback(&self) -> bool {
            true
        }
    }
    made(|_| Ok(Box::new(Follow) as Box<dyn ActionTerm>))
}

type Actions = Vec<Entry<ActionOptions, dyn ActionTerm>>;

fn actions() -> impl Strategy<Value = Actions> {
    let on = |joint: &str, action: JointPositionAction| {
        Entry::new(ActionOptions::default(), JointPositionAction { joints: vec![joint.to_owned()], ..action })
    };
    let late =
        (0..3u32, 0..3u32, 0..3u32, 0..6u32).prop_map(|(steps, more_steps, substeps, more_substeps)| ActionOptions {
            delay_control_steps: [steps, steps + more_steps],
            delay_substeps: [substeps, substeps + more_substeps],
            ..ActionOptions::default()
        });
    prop_oneof![
        Just(Vec::new()),
        position_action().prop_map(move |action| vec![on(".*", action)]),
        (position_action(), late.clone()).prop_map(|(action, late)| vec![Entry::new(late, action)]),
        (0.0..1.0f32, late)
            .prop_map(|(scale, late)| vec![Entry::new(late, RelativeJointPositionAction::scaled(scale))]),
        (position_action(), position_action()).prop_map(move |(a, b)| vec![on("right", a), on("left", b)]),
        position_action().prop_map(move |action| {
            vec![on("right", action), Entry::new(ActionOptions::default(), feedback_action())]
        }),
    ]
}

fn noise() -> impl Strategy<Value = Noise> {
    let operation = || select(vec![NoiseOperation::Add, NoiseOperation::Scale, NoiseOperation::Abs]);
    prop_oneof![
        (-1.0..1.0f32, operation()).prop_map(|(value, operation)| Noise::Constant { value, operation }),
        (0.0..1.0f32, operation()).prop_map(|(limit, operation)| Noise::Uniform { min: -limit, max: limit, operation }),
        (0.0..1.0f32, operation()).prop_map(|(std, operation)| Noise::Gaussian { mean: 0.1, std, operation }),
        (0.0..1.0f32).prop_map(|limit| Noise::UniformBias { min: -limit, max: limit }),
    ]
}

fn delay() -> impl Strategy<Value = Delay> {
    (0..3u32, 0..3u32, any::<[bool; 2]>(), 0.0..=1.0, 1..4u32).prop_map(
        |(min, more, [per_row, phase], hold_probability, update_period)| Delay {
            per_row,
            hold_probability,
            update_period,
            per_row_phase: phase && per_row,
            ..Delay::steps(min, min + more)
        },
    )
}

fn observation_options() -> impl Strategy<Value = ObservationOptions> {
    (of(noise()), of(0.0..2.0f32), -2.0..2.0f32, of(delay()), 0..4u32).prop_map(
        |(noise, clip, scale, delay, history_length)| ObservationOptions {
            noise,
            clip: clip.map(|limit| [-limit, limit]),
            scale: PerColumn::All(scale),
            delay,
            history_length,
            ..ObservationOptions::default()
        },
    )
}

fn nan_policy() -> impl Strategy<Value = NanPolicy> {
    select(vec![NanPolicy::Error, NanPolicy::Warn, NanPolicy::Sanitize, NanPolicy::Off])
}

/// A term of one of six kinds, with its width. What needs a command or a watched group is left to the others.
fn observation_term(
    kind: usize,
    options: ObservationOptions,
    action_width: usize,
    commanded: bool,
    watched: bool,
) -> (Entry<ObservationOptions, dyn ObservationTerm>, usize) {
    match kind {
        0 => (Entry::new(options, Sensor::new("gyro")), 3),
        1 => {
            let moving = observation_of(4, joints, |row, (position, velocity), out| {
                let values = row.state(position).iter().chain(row.state(velocity));
                out.iter_mut().zip(values).for_each(|(out, value)| *out = *value as f32);
            });
            (Entry::new(options, moving), 4)
        }
        2 if action_width > 0 => {
            let last = made(|context| {
                let width = context.action_width();
                Ok(observation(width, |row, out| out.copy_from_slice(row.action())))
            });
            (Entry::new(options, last), action_width)
        }
        3 if commanded => {
            let command = observation_of(3, twist, |row, twist, out| out.copy_from_slice(row.command(twist)));
            (Entry::new(options, command), 3)
        }
        4 if watched => {
            let sick = observation_of(2, nothing, |row, (), out| {
                let bad = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1.0][row.clock().step as usize % 4];
                out.copy_from_slice(&[1.0, bad]);
            });
            (Entry::new(options, sick), 2)
        }
        _ => (Entry::new(options, clock()), 2),
    }
}

type Group = (GroupConfig, Vec<usize>);

fn group(action_width: usize, commanded: bool) -> impl Strategy<Value = Group> {
    let options = (any::<bool>(), of(1..4u32), nan_policy());
    (options, vec((0..6usize, observation_options()), 0..4)).prop_map(move |(options, listed)| {
        let (corruption, history_length, nan_policy) = options;
        let watched = matches!(nan_policy, NanPolicy::Warn | NanPolicy::Sanitize);
        let mut widths = Vec::new();
        let terms = listed.into_iter().map(|(kind, options)| {
            let frames = history_length.unwrap_or(options.history_length).max(1) as usize;
            let (entry, width) = observation_term(kind, options, action_width, commanded, watched);
            widths.push(width * frames);
            entry
        });
        let terms = entries("seen", terms.collect());
        (GroupConfig { options: GroupOptions { corruption, history_length, nan_policy }, terms }, widths)
    })
}

/// A group of clocks without noise and with fixed lags.
fn traced_group() -> impl Strategy<Value = (Group, Vec<Traced>)> {
    let term = (of(0..5usize), 0..5usize, of(10.0..3000.0f32), 0.5..2.0f32);
    (vec(term, 1..4), of(1..4u32)).prop_map(|(terms, history_length)| {
        let mut traced = Vec::new();
        let terms = terms.into_iter().map(|(lag, own, clip, scale)| {
            let options = ObservationOptions {
                clip: clip.map(|limit| [-limit, limit]),
                scale: PerColumn::All(scale),
                delay: lag.map(|lag| Delay::steps(lag as u32, lag as u32)),
                history_length: own as u32,
                ..ObservationOptions::default()
            };
            traced.push(Traced {
                clip: options.clip.unwrap_or([f32::NEG_INFINITY, f32::INFINITY]),
                scale,
                lag: lag.unwrap_or(0),
                history: history_length.map_or(own, |length| length as usize),
            });
            Entry::new(options, clock())
        });
        let terms = entries("traced", terms.collect());
        let widths = traced.iter().map(|term| 2 * term.history.max(1)).collect();
        let options = GroupOptions { corruption: true, history_length, ..GroupOptions::default() };
        ((GroupConfig { options, terms }, widths), traced)
    })
}

fn reward() -> impl Strategy<Value = Entry<RewardOptions, dyn RewardTerm>> {
    (prop_oneof![Just(0.0), Just(-0.0), -2.0..2.0f32], any::<bool>()).prop_map(|(weight, height)| {
        let term = if height {
            reward_of(root, |row, root| row.vec3(root).z as f32)
        } else {
            reward_of(nothing, |row, ()| row.action().iter().map(|value| value * value).sum())
        };
        Entry::new(RewardOptions::weight(weight), term)
    })
}

fn termination() -> impl Strategy<Value = TerminationEntry> {
    (0..3usize, any::<bool>()).prop_map(|(kind, time_out)| {
        let options = if time_out { TerminationOptions::time_out() } else { TerminationOptions::failure() };
        let term = match kind {
            0 => termination_of(|context| Ok(context.max_episode_steps()), |row, limit| row.clock().step >= limit),
            1 => termination_of(root, |row, root| row.vec3(root).y.abs() > 0.2),
            _ => termination_of(nothing, |row, ()| (7 * row.clock().step + row.row().0) % 13 == 0),
        };
        Entry::new(options, term)
    })
}

fn event() -> impl Strategy<Value = Entry<EventOptions, dyn EventTerm>> {
    let mode = prop_oneof![
        Just(EventMode::Startup),
        (0..9u64).prop_map(|min_steps_between| EventMode::Reset { min_steps_between }),
        Just(EventMode::Step),
        (0.001..0.1f32, 0.0..0.1f32, any::<bool>(), any::<bool>()).prop_map(|(low, more, global, keep_over_resets)| {
            EventMode::Interval { seconds: [low, low + more], global, keep_over_resets }
        }),
    ];
    (mode, 0..3usize, 0.0..0.4f64).prop_map(|(mode, kind, size)| {
        let options = EventOptions { mode, ..EventOptions::reset() };
        match kind {
            0 => Entry::new(options, Scatter { spread: size }),
            1 => Entry::new(options, Push { limit: size }),
            _ => Entry::new(options, ScaleMass { range: [1.0 - size, 1.0 + size] }),
        }
    })
}

fn metric_term() -> impl Strategy<Value = Entry<MetricOptions, dyn MetricTerm>> {
    let reduce = select(vec![Reduce::Mean, Reduce::Last, Reduce::Max, Reduce::Sum]);
    (reduce, any::<[bool; 2]>()).prop_map(|(reduce, [of_state, per_substep])| {
        if of_state {
            let term = made(|context| state_metric(context, |state| (state.qpos[2] * state.qvel[2]) as f32));
            Entry::new(MetricOptions { per_substep, ..MetricOptions::reduce(reduce) }, term)
        } else {
            let term = made(|_| Ok(metric(|row| row.action().iter().sum())));
            Entry::new(MetricOptions::reduce(reduce), term)
        }
    })
}

/// At most one term for each thing that curricula may change.
fn curriculum(
    rewarded: bool,
    commanded: bool,
) -> impl Strategy<Value = Vec<Entry<CurriculumOptions, dyn CurriculumTerm>>> {
    (0..3usize, any::<[bool; 2]>(), 1..20u64).prop_map(move |(weights, [ranges, every_step], step)| {
        let options = || CurriculumOptions { every_step, ..CurriculumOptions::at_resets() };
        let mut terms = Vec::new();
        if weights == 1 && rewarded {
            let stages = vec![WeightStage { step, weight: 0.5 }, WeightStage { step: step + 7, weight: 0.0 }];
            terms.push(Entry::new(options(), RewardWeightSchedule { reward: "reward_0".to_owned(), stages }));
        } else if weights == 2 {
            let scaling = PenaltyScaling { short: 5.0, long: 8.0, ..PenaltyScaling::default() };
            terms.push(Entry::new(CurriculumOptions::at_resets(), scaling));
        }
        if ranges && commanded {
            let stages = vec![RangeStage { step, range: [-3.0, 3.0] }];
            terms.push(Entry::new(options(), RangeSchedule { range: "commands.twist.lin_vel_x".to_owned(), stages }));
        }
        terms
    })
}

prop_compose! {
    /// What concerns all managers, and the managers that no other refers to.
    fn base()(
        substeps in 1..5u32,
        fresh in any::<bool>(),
        home in any::<bool>(),
        scale_rewards_by_dt in any::<bool>(),
        length in 3..40u32,
        twist in of((0.005..0.1f32, 0.0..0.1f32, 0.0..0.5f64, [0.0..=1.0, 0.0..=1.0, 0.0..=1.0, 0.0..=1.0])),
        terminations in vec(termination(), 0..3),
        events in vec(event(), 0..4),
        metrics in vec(metric_term(), 0..3),
        rewards in vec(reward(), 0..4),
    ) -> EnvironmentConfig {
        let period = 0.005 * f64::from(substeps);
        let physics = PhysicsConfig { fresh, ..PhysicsConfig::new(0.005, period) };
        let mut config = EnvironmentConfig::new(physics, f64::from(length) * period);
        config.keyframe = if home { "home" } else { "" }.to_owned();
        config.scale_rewards_by_dt = scale_rewards_by_dt;
        config.terminations = entries("termination", terminations);
        config.events = entries("event", events);
        config.metrics = entries("metric", metrics);
        config.rewards = entries("reward", rewards);
        if let Some((low, more, dead_band, [rel_heading, rel_standing, rel_world, rel_forward])) = twist {
            let options = CommandOptions { resampling_time: [low, low + more], ..CommandOptions::every(1.0) };
            let command = UniformVelocityCommand {
                lin_vel_x: [-1.0, 1.0],
                lin_vel_y: [-0.5, 0.5],
                ang_vel_z: [0.0, 0.0],
                dead_band,
                rel_heading,
                rel_standing,
                rel_world,
                rel_forward,
                ..UniformVelocityCommand::default()
            };
            config.commands = [("twist".to_owned(), Entry::new(options, command))].into();
        }
        config
    }
}

/// Any environment that makes sense.
pub fn environment() -> impl Strategy<Value = Generated> {
    let first = (base(), actions(), runtime_options());
    first.prop_flat_map(|(config, actions, options)| {
        let action_width = 2 * usize::from(!actions.is_empty());
        let (rewarded, commanded) = (!config.rewards.is_empty(), !config.commands.is_empty());
        let groups = (traced_group(), vec(group(action_width, commanded), 0..3));
        let (config, actions) = (Just(config), Just(actions));
        (config, actions, groups, curriculum(rewarded, commanded), Just(options)).prop_map(
            |(mut config, actions, ((traced_group, traced), groups), curriculum, options)| {
                config.actions = entries("action", actions);
                config.curriculum = entries("curriculum", curriculum);
                let groups: Vec<Group> = std::iter::once(traced_group).chain(groups).collect();
                let widths = groups.iter().map(|(_, widths)| widths.clone()).collect();
                let named = groups.into_iter().enumerate().map(|(i, (group, _))| (format!("group_{i}"), group));
                config.observations = named.collect();
                Generated { config, options, widths, traced }
            },
        )
    })
}
