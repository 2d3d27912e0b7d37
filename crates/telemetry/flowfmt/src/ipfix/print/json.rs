//! One JSON object on a line of its own: a record, or a template.
//!
//! Fields have IANA's names. Integers are JSON numbers, times are text of RFC 3339, addresses text; an entry of a
//! label stack is "label-class-bottom" as nfdump writes it; octets are hexadecimal digits. A name that
//! comes a second time in a record has `#2` behind it.

use std::collections::HashMap;
use std::fmt::{self, Display, Write as _};
use std::io::{self, Write};

use super::super::decode::{Header, Record};
use super::super::elements::Value;
use super::super::template::{Field, Space, Template, VARIABLE};
use super::Moment;

pub(super) fn record(to: &mut dyn Write, record: &Record<'_>) -> io::Result<()> {
    let kind = if record.template.is_options() {
        "options"
    } else {
        "flow"
    };
    begin(to, kind, record.header, record.template)?;
    let scopes = usize::from(record.template.scopes);
    let mut names = Names::default();
    let mut place = 0;
    if scopes > 0 {
        to.write_all(b",\"scope\":{")?;
    }
    for (field, value) in record.fields() {
        if place == scopes {
            to.write_all(if scopes > 0 {
                b"},\"fields\":{"
            } else {
                b",\"fields\":{"
            })?;
        } else if place > 0 {
            to.write_all(b",")?;
        }
        names.write(to, &field)?;
        write!(to, "{}", Json(&field, &value))?;
        place += 1;
    }
    // Of an options template that has nothing but scopes, "fields" were not begun.
    to.write_all(if place == scopes {
        b"},\"fields\":{}}\n"
    } else {
        b"}}\n"
    })
}

pub(super) fn template(to: &mut dyn Write, header: &Header, template: &Template) -> io::Result<()> {
    begin(
        to,
        if template.is_options() {
            "options-template"
        } else {
            "template"
        },
        header,
        template,
    )?;
    write!(to, ",\"scopes\":{},\"fields\":[", template.scopes)?;
    for (place, field) in template.fields.iter().enumerate() {
        let comma = if place == 0 { "" } else { "," };
        write!(
            to,
            "{comma}{{\"name\":\"{}\",\"number\":{}",
            field.name(),
            field.number
        )?;
        if let Space::Enterprise(enterprise) = field.space {
            write!(to, ",\"enterprise\":{enterprise}")?;
        }
        match field.length {
            VARIABLE => to.write_all(b",\"length\":\"variable\"}")?,
            length => write!(to, ",\"length\":{length}}}")?,
        }
    }
    to.write_all(b"]}\n")
}

fn begin(to: &mut dyn Write, kind: &str, header: &Header, template: &Template) -> io::Result<()> {
    write!(
        to,
        "{{\"kind\":\"{kind}\",\"version\":{},\"exporter\":\"{}\",\"exporterPort\":{},\"domain\":{},\"sequence\":{},\"exportTime\":\"{}",
        header.version.number(),
        header.exporter.ip(),
        header.exporter.port(),
        header.domain,
        header.sequence,
        Moment {
            time: header.time,
            between: 'T',
            digits: 3
        },
    )?;
    to.write_all(b"Z\"")?;
    if let Some(uptime) = header.uptime {
        write!(to, ",\"uptimeMilliseconds\":{uptime}")?;
    }
    if let Some(sampling) = header.sampling {
        write!(
            to,
            ",\"samplingMode\":{},\"samplingInterval\":{}",
            sampling >> 14,
            sampling & 0x3fff
        )?;
    }
    write!(to, ",\"template\":{}", template.id)
}

/// How often each name came.
#[derive(Default)]
struct Names(HashMap<(Space, u16), u32>);

impl Names {
    fn write(&mut self, to: &mut dyn Write, field: &Field) -> io::Result<()> {
        let times = self.0.entry((field.space, field.number)).or_insert(0);
        *times += 1;
        match *times {
            1 => write!(to, "\"{}\":", field.name()),
            times => write!(to, "\"{}#{times}\":", field.name()),
        }
    }
}

/// A value in JSON.
struct Json<'a>(&'a Field, &'a Value<'a>);

impl Display for Json<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self.1 {
            Value::Unsigned(number) => write!(to, "{number}"),
            Value::Signed(number) => write!(to, "{number}"),
            // JSON has no word for what is no number.
            Value::Float(number) if number.is_finite() => write!(to, "{number}"),
            Value::Float(number) => write!(to, "\"{number}\""),
            Value::Bool(value) => write!(to, "{value}"),
            Value::Mac(mac) => write!(to, "\"{}\"", Mac(mac)),
            Value::Text(octets) => text(to, octets),
            Value::Time(time) => write!(
                to,
                "\"{}Z\"",
                Moment {
                    time,
                    between: 'T',
                    digits: 9
                }
            ),
            Value::V4(address) => write!(to, "\"{address}\""),
            Value::V6(address) => write!(to, "\"{address}\""),
            Value::Octets(&[high, middle, low])
                if self.0.space == Space::Iana && (70..80).contains(&self.0.number) =>
            {
                write!(
                    to,
                    "\"{}\"",
                    Label(u32::from_be_bytes([0, high, middle, low]))
                )
            }
            Value::Octets(octets) => {
                to.write_char('"')?;
                octets
                    .iter()
                    .try_for_each(|octet| write!(to, "{octet:02x}"))?;
                to.write_char('"')
            }
        }
    }
}

/// A string, without the zeros that pad it in fields of a fixed length (RFC 8259, section 7).
fn text(to: &mut fmt::Formatter<'_>, octets: &[u8]) -> fmt::Result {
    let end = octets
        .iter()
        .rposition(|octet| *octet != 0)
        .map_or(0, |last| last + 1);
    to.write_char('"')?;
    for letter in String::from_utf8_lossy(octets.get(..end).unwrap_or(octets)).chars() {
        match letter {
            '"' | '\\' => write!(to, "\\{letter}")?,
            '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' => write!(to, "\\u{:04x}", u32::from(letter))?,
            _ => to.write_char(letter)?,
        }
    }
    to.write_char('"')
}

/// A MAC address with colons.
pub(super) struct Mac(pub(super) [u8; 6]);

impl Display for Mac {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, f] = self.0;
        write!(to, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
    }
}

/// The 24 bits of a stack section (RFC 3032, 2.1 without TTL) as nfdump writes them.
pub(super) struct Label(pub(super) u32);

impl Display for Label {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}-{}-{}", self.0 >> 4, self.0 >> 1 & 7, self.0 & 1)
    }
}
