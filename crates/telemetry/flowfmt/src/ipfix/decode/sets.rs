//! What is in a set: templates (RFC 7011 3.4; RFC 3954 5.2 and 6.1), or records.

use std::sync::Arc;

use super::super::template::{Field, Space, Template};
use super::super::{FIRST_DATA_SET, Version};
use super::message::{long, word};
use super::{Collector, Header, Item, MOST_EMPTY_FIELDS, Problem, Record, Session};

/// Octets that align a set to eight.
const MOST_PADDING: usize = 7;

/// Reads field specifiers one after the other.
struct Specifiers<'a> {
    octets: &'a [u8],
    at: usize,
}

impl Specifiers<'_> {
    fn word(&mut self) -> Option<u16> {
        let value = word(self.octets, self.at)?;
        self.at += 2;
        Some(value)
    }

    fn field(&mut self, version: Version, scope: bool) -> Option<Field> {
        let (number, length) = (self.word()?, self.word()?);
        let space = match version {
            Version::NetFlow9 if scope => Space::Scope9,
            Version::Ipfix if number & 0x8000 != 0 => {
                let enterprise = long(self.octets, self.at)?;
                self.at += 4;
                Space::Enterprise(enterprise)
            }
            _ => Space::Iana,
        };
        let number = if matches!(space, Space::Enterprise(_)) {
            number & 0x7fff
        } else {
            number
        };
        Some(Field {
            space,
            number,
            length,
        })
    }

    fn fields(&mut self, version: Version, scopes: u16, count: u16) -> Option<Vec<Field>> {
        // Grows with what is really there, not with what the count says.
        let mut fields = Vec::new();
        for place in 0..count {
            fields.push(self.field(version, place < scopes)?);
        }
        Some(fields)
    }
}

/// What stands before the fields.
struct Counts {
    id: u16,
    scopes: u16,
    fields: u16,
}

impl Counts {
    fn read(specifiers: &mut Specifiers<'_>, version: Version, options: bool) -> Option<Counts> {
        let (id, second) = (specifiers.word()?, specifiers.word()?);
        Some(match (options, version) {
            (false, _) => Counts {
                id,
                scopes: 0,
                fields: second,
            },
            // A withdrawal ends with the count of fields (RFC 7011, 8.1).
            (true, Version::Ipfix) if second == 0 => Counts {
                id,
                scopes: 0,
                fields: 0,
            },
            (true, Version::Ipfix) => Counts {
                id,
                scopes: specifiers.word()?,
                fields: second,
            },
            // RFC 3954, 6.1: octets of the specifiers, four for each.
            (true, _) => {
                let (scopes, others) = (second / 4, specifiers.word()? / 4);
                Counts {
                    id,
                    scopes,
                    fields: scopes.saturating_add(others),
                }
            }
        })
    }
}

impl Collector {
    pub(super) fn template_set(
        &mut self,
        header: &Header,
        options: bool,
        offset: usize,
        body: &[u8],
        sink: &mut dyn FnMut(Item<'_>),
    ) {
        let mut at = 0;
        // What is shorter than the header of a template is padding.
        while let Some(rest) = body.get(at..).filter(|rest| rest.len() >= 4) {
            if rest.iter().all(|octet| *octet == 0) {
                return;
            }
            match self.template(header, options, rest, sink) {
                Ok(octets) => at += octets,
                Err((octets, why)) => {
                    let passed = octets.unwrap_or(rest.len());
                    self.say(header, offset + at, passed, why, sink);
                    at += passed;
                }
            }
        }
    }

    /// One template: its octets, or what is wrong with it (and its octets, when the next one can be found).
    fn template(
        &mut self,
        header: &Header,
        options: bool,
        octets: &[u8],
        sink: &mut dyn FnMut(Item<'_>),
    ) -> Result<usize, (Option<usize>, Problem)> {
        let mut specifiers = Specifiers { octets, at: 0 };
        let id = word(octets, 0).unwrap_or(0);
        let short = (None, Problem::ShortTemplate(id));
        let counts = Counts::read(&mut specifiers, header.version, options).ok_or(short)?;
        if counts.fields == 0 && header.version == Version::Ipfix {
            return self
                .withdraw(header, options, id, sink)
                .map(|()| specifiers.at)
                .map_err(|why| (Some(specifiers.at), why));
        }
        let fields = specifiers
            .fields(header.version, counts.scopes, counts.fields)
            .ok_or(short)?;
        let template = Template {
            id: counts.id,
            scopes: counts.scopes,
            fields,
        };
        check(&template, options, counts.fields).map_err(|why| (Some(specifiers.at), why))?;
        self.totals.templates += 1;
        sink(Item::Template(header, &template));
        let (session, template) = (Session::of(header), Arc::new(template));
        // A number is of one kind at a time.
        self.templates.remove(&(session.clone(), !options, id));
        self.templates.insert(
            (session.clone(), options, id),
            template.clone(),
            1 + template.fields.len(),
        );
        self.release(&session, &template, sink);
        Ok(specifiers.at)
    }

    fn withdraw(
        &mut self,
        header: &Header,
        options: bool,
        id: u16,
        sink: &mut dyn FnMut(Item<'_>),
    ) -> Result<(), Problem> {
        let session = Session::of(header);
        let all = if options {
            super::super::OPTIONS_TEMPLATE_SET
        } else {
            super::super::TEMPLATE_SET
        };
        match id {
            FIRST_DATA_SET.. => {
                let kinds = [false, true];
                kinds
                    .into_iter()
                    .for_each(|kind| _ = self.templates.remove(&(session.clone(), kind, id)));
            }
            // RFC 7011, 8.1: the set's own number stands for all of its kind.
            _ if id == all => self
                .templates
                .remove_range((session.clone(), options, 0)..=(session, options, u16::MAX)),
            _ => return Err(Problem::TemplateNumber(id)),
        }
        sink(Item::Withdrawn(header, id));
        Ok(())
    }

    /// All records of a set; how many, if they could be counted to the end.
    pub(super) fn records(
        &mut self,
        header: &Header,
        template: &Template,
        offset: usize,
        body: &[u8],
        sink: &mut dyn FnMut(Item<'_>),
    ) -> Option<u32> {
        // A set's octets pay for the look at its template: there may be many short sets of one that is long.
        let least = template.least_up_to(body.len()).max(1);
        let (mut rest, mut count) = (body, 0_u32);
        while rest.len() >= least
            && let Some(behind) = template.split(rest).behind()
        {
            let octets = rest.get(..rest.len() - behind.len()).unwrap_or(rest);
            sink(Item::Record(Record {
                header,
                template,
                octets,
            }));
            (rest, count) = (behind, count.wrapping_add(1));
        }
        let counter = if template.is_options() {
            &mut self.totals.options_records
        } else {
            &mut self.totals.records
        };
        *counter += u64::from(count);
        // RFC 7011, 3.3.1: padding is shorter than any record, and should be zero. Some exporters leave what was in their buffer, up
        // to the next four or eight octets. More than that is what a template does not say.
        let (left, id) = (rest.len(), template.id);
        let cut = left >= least;
        if cut || left > MOST_PADDING && rest.iter().any(|octet| *octet != 0) {
            let why = if cut {
                Problem::ShortRecord { template: id, left }
            } else {
                Problem::Padding { template: id, left }
            };
            self.say(header, offset + (body.len() - left), left, why, sink);
        }
        (!cut).then_some(count)
    }
}

fn check(template: &Template, options: bool, count: u16) -> Result<(), Problem> {
    let (id, scopes) = (template.id, template.scopes);
    if id < FIRST_DATA_SET {
        return Err(Problem::TemplateNumber(id));
    }
    if options && (scopes == 0 || scopes > count) {
        return Err(Problem::Scopes(id, scopes, count));
    }
    if template.least() == 0 {
        return Err(Problem::EmptyRecords(id));
    }
    let empty = template
        .fields
        .iter()
        .filter(|field| field.length == 0)
        .count();
    if empty > MOST_EMPTY_FIELDS {
        Err(Problem::EmptyFields(id, empty))
    } else {
        Ok(())
    }
}
