//! Next-hop objects of FRR as next-hop groups.
//!
//! Each object is a group of its own, written in place when the object changes, so that one write moves all routes that name
//! it. Zebra may delete an object and send it again without sending its routes: a group stays while routes use it, and takes
//! the new content. Routes that name an unknown object wait here, bounded by [`MOST_PARKED`], until it comes.
//!
//! Part of the control side.

use std::collections::HashMap;
use std::sync::Arc;

use ipnet::IpNet;
use weir_control::{Route, RouteId, Target, UpdateError};

use crate::control::Control;

/// Routes that wait for objects, at most.
const MOST_PARKED: usize = 1 << 20;

/// What became of an object.
#[derive(Clone, Copy, Debug)]
enum State {
    /// It is this group. It holds the group itself while zebra has it.
    Group { number: u32, is_held: bool },
    /// It cannot be expressed.
    Refused(UpdateError),
}

/// Objects by number, and routes that wait for them.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    states: HashMap<u32, State>,
    by_group: HashMap<u32, u32>,
    parked: HashMap<u32, HashMap<(u32, IpNet, RouteId), Route>>,
    /// Where a parked route waits.
    waits: HashMap<(u32, IpNet, RouteId), u32>,
}

impl Objects {
    /// The number of routes that wait.
    pub(crate) fn parked(&self) -> usize {
        self.waits.len()
    }

    /// A group has no users any more.
    pub(crate) fn forget_group(&mut self, number: u32) {
        if let Some(id) = self.by_group.remove(&number) {
            self.states.remove(&id);
        }
    }

    /// A route is gone or has another target.
    pub(crate) fn forget_parked(&mut self, table: u32, prefix: IpNet, id: RouteId) {
        if self.waits.is_empty() {
            return;
        }
        if let Some(object) = self.waits.remove(&(table, prefix, id))
            && let Some(routes) = self.parked.get_mut(&object)
        {
            routes.remove(&(table, prefix, id));
            if routes.is_empty() {
                self.parked.remove(&object);
            }
        }
    }

    /// Forgets all routes that wait: the session that sent them is over.
    pub(crate) fn forget_all_parked(&mut self) {
        self.parked.clear();
        self.waits.clear();
    }

    fn park(&mut self, object: u32, route: &Route, id: RouteId) -> Result<(), UpdateError> {
        if self.waits.len() >= MOST_PARKED {
            return Err(UpdateError::NoObject(object));
        }
        let key = (route.table, route.prefix, id);
        self.waits.insert(key, object);
        let routes = self.parked.entry(object).or_default();
        routes.insert(key, route.clone());
        Ok(())
    }

    fn unpark(&mut self, object: u32) -> Vec<Route> {
        let Some(routes) = self.parked.remove(&object) else {
            return Vec::new();
        };
        for key in routes.keys() {
            self.waits.remove(key);
        }
        routes.into_values().collect()
    }
}

impl Control {
    /// The group of an object, with one user more; `None` when the route has been parked.
    pub(crate) fn group_of_object(
        &mut self,
        object: u32,
        route: &Route,
        id: RouteId,
    ) -> Result<Option<u32>, UpdateError> {
        match self.linux.objects.states.get(&object) {
            Some(State::Group { number, .. }) => {
                let number = *number;
                self.nexthops.acquire_again(number);
                Ok(Some(number))
            }
            Some(State::Refused(error)) => Err(*error),
            None => self.linux.objects.park(object, route, id).map(|()| None),
        }
    }

    /// The group of an object that the source has sent, with one user more.
    pub(crate) fn group_of_known_object(&mut self, object: u32) -> Result<u32, UpdateError> {
        match self.linux.objects.states.get(&object) {
            Some(State::Group { number, .. }) => {
                let number = *number;
                self.nexthops.acquire_again(number);
                Ok(number)
            }
            Some(State::Refused(error)) => Err(*error),
            None => Err(UpdateError::NoObject(object)),
        }
    }

    /// Carries out changes of objects.
    pub(crate) fn update_objects(&mut self, changes: &[(u32, Option<Arc<Target>>)]) {
        for (id, target) in changes {
            match target {
                Some(target) => self.set_object(*id, target),
                None => self.remove_object(*id),
            }
        }
        self.settle_or_log();
    }

    fn set_object(&mut self, id: u32, target: &Arc<Target>) {
        let known = self.linux.objects.states.get(&id).copied();
        let state = match known {
            Some(State::Group { number, is_held }) => {
                match self.replace_target(number, target) {
                    Ok(()) if is_held => return,
                    Ok(()) => {
                        self.nexthops.acquire_again(number);
                        State::Group {
                            number,
                            is_held: true,
                        }
                    }
                    // Its routes lead where they led; new ones are refused. The audit of zebra's next session cures it.
                    Err(error) => {
                        tracing::warn!(object = id, %error, "a next-hop object of zebra cannot be expressed");
                        return;
                    }
                }
            }
            Some(State::Refused(_)) | None => match self.group_of_own(target) {
                Ok(number) => {
                    self.linux.objects.by_group.insert(number, id);
                    State::Group {
                        number,
                        is_held: true,
                    }
                }
                Err(error) => State::Refused(error),
            },
        };
        self.linux.objects.states.insert(id, state);
        for route in self.linux.objects.unpark(id) {
            if let Err(error) = self.set_source_route(&route) {
                self.linux.refuse(route.prefix, error);
            }
        }
    }

    fn remove_object(&mut self, id: u32) {
        match self.linux.objects.states.get(&id).copied() {
            Some(State::Group {
                number,
                is_held: true,
            }) => {
                let state = State::Group {
                    number,
                    is_held: false,
                };
                self.linux.objects.states.insert(id, state);
                // Without routes the group goes, and with it the object.
                self.release_group(number);
            }
            Some(State::Refused(_)) => drop(self.linux.objects.states.remove(&id)),
            Some(State::Group { .. }) | None => {}
        }
    }
}
