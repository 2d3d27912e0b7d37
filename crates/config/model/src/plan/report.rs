//! A plan as a value to be shown: to people as text in its three groups, to programs as fields.
//!
//! Beside its steps it says what they disturb that was not asked for, such as an interface that
//! is taken away and made anew because its device changes, and which interfaces have nothing
//! behind them.

use std::fmt;

use super::plan;
use crate::model::{Config, NeighborKey};
use crate::step::{Phase, Step};

/// The way from one configuration to another, ready to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The steps, in the order prune, create, sync.
    pub steps: Vec<PlannedStep>,
    /// Interfaces of the goal that have nothing behind them.
    pub without_device: Vec<String>,
}

/// One step, and what there is to say about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedStep {
    /// The group it belongs to.
    pub group: Phase,
    /// What sort of step it is, as `add-route`.
    pub kind: String,
    /// What it is about, as `interface xe0` or `route 10.0.0.0/8`.
    pub object: String,
    /// The step in one line.
    pub text: String,
    /// What it disturbs that was not asked for; absent when it disturbs nothing.
    pub disturbs: Option<String>,
    /// The step in full.
    pub step: Step,
}

impl Plan {
    /// The plan that leads from `running` to `wanted`.
    #[must_use]
    pub fn between(running: &Config, wanted: &Config) -> Self {
        let shown = |step: Step| PlannedStep {
            group: step.phase(),
            kind: step.kind().to_owned(),
            object: step.object(),
            text: step.to_string(),
            disturbs: disturbs(&step, running, wanted).map(str::to_owned),
            step,
        };
        Self {
            steps: plan(running, wanted).into_iter().map(shown).collect(),
            without_device: wanted.without_device().map(str::to_owned).collect(),
        }
    }

    /// There is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The sections of the file whose change waits for a restart.
    pub fn needs_restart(&self) -> impl Iterator<Item = &'static str> {
        self.steps.iter().filter_map(|planned| match &planned.step {
            Step::NeedsRestart { change } => Some(change.section()),
            _ => None,
        })
    }
}

/// What a step takes away that the goal has, too.
fn disturbs(step: &Step, running: &Config, wanted: &Config) -> Option<&'static str> {
    let stays = |name: &str| {
        running.interfaces.get(name).is_some_and(|it| {
            wanted
                .interfaces
                .get(name)
                .is_some_and(|to| to.device == it.device)
        })
    };
    match step {
        Step::DeleteInterface { name, .. } if wanted.interfaces.contains_key(name) => {
            Some("its device changes, so it is made anew; what it carries stops meanwhile")
        }
        Step::RemoveRoute { key, .. } if wanted.routes.contains_key(key) => Some(
            "the subnet of its next hop changes; the route is missing until that is there again",
        ),
        Step::RemoveLabel { label, .. } if wanted.mpls.labels.contains_key(label) => {
            Some("what it leads to is made anew; the label is missing until that is there again")
        }
        Step::RemovePseudowire { name, .. } if wanted.pseudowires.contains_key(name) => {
            Some("what carries it, or its label, changes; nothing passes until it is there again")
        }
        Step::RemoveNeighbor {
            interface, address, ..
        } if wanted.neighbors.contains_key(&NeighborKey {
            interface: interface.clone(),
            address: *address,
        }) =>
        {
            Some("its subnet changes; the entry is missing until that is there again")
        }
        Step::SetL2xc {
            interface,
            to: None,
            ..
        } if stays(interface)
            && wanted
                .interfaces
                .get(interface)
                .is_some_and(|it| it.l2xc.is_some()) =>
        {
            Some("the other end is made anew; nothing passes meanwhile")
        }
        Step::LeaveBridge {
            bridge,
            interface,
            role,
        } if wanted.bridges.get(bridge).is_some_and(|it| {
            it.role_of(interface)
                .is_some_and(|to| to == *role || stays(interface))
        }) =>
        {
            Some("it joins again; the stations behind it are forgotten")
        }
        Step::SetBond {
            interface,
            to: None,
            ..
        } if stays(interface)
            && wanted
                .interfaces
                .get(interface)
                .is_some_and(|it| it.bond.is_some()) =>
        {
            Some("its bond is another one or made anew; it carries nothing meanwhile")
        }
        Step::SetPlacement { interface, .. } if stays(interface) => {
            Some("its queues are opened anew; packets under way are lost")
        }
        Step::NeedsRestart { .. } => Some("it takes effect when the router is started again"),
        _ => None,
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            writeln!(f, "nothing to do")?;
        }
        for group in self.steps.chunk_by(|one, other| one.group == other.group) {
            let Some(first) = group.first() else { continue };
            writeln!(f, "{}", first.group)?;
            for step in group {
                writeln!(f, "  {}", step.text)?;
                if let Some(disturbs) = &step.disturbs {
                    writeln!(f, "    ! {disturbs}")?;
                }
            }
        }
        if !self.without_device.is_empty() {
            writeln!(f, "without a device: {}", self.without_device.join(", "))?;
        }
        Ok(())
    }
}
