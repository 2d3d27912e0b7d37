//! Derive macros for the configuration model (`weir-config`): a key is declared once, as the field
//! of a struct, and everything else follows from that field.
//!
//! `#[derive(Section)]` on a struct (or on an enum that is tagged by one key) gives it:
//!
//! - its rows of the key table: path, kind, default, documentation and example of each key. The
//!   reference page, the JSON Schema, the checks of values and the error texts come from there;
//! - `read`: the value of a section of a file;
//! - `write`: the value as JSON, with or without what is at its default, from which dumps, diffs,
//!   the texts of plans and `GET /v1/config` are made;
//! - `Default`, unless a key is required or `#[section(no_default)]` is given.
//!
//! `#[derive(Words)]` on an enum of unit variants gives its words in kebab case, `word()`,
//! `Display` and `FromStr`.
//!
//! The documentation comment of a field is its text in the reference. `#[key(…)]` takes:
//!
//! | attribute | meaning |
//! |---|---|
//! | `example = "…"` | a valid value, as a file writes it |
//! | `kind = Whole(0, 9)` | a variant of `Kind`; needed where the type does not determine it |
//! | `default = 5` | the default; that of the type when absent |
//! | `required` | the key must be present; with `default`, the model has a default all the same |
//! | `name = "osIndex"` | the name in the file; the field's name in kebab case when absent |
//! | `items = (0, 16)` | the least and the largest number of items of a list |
//! | `item = "…"` | documentation of an item of a list of scalars |
//! | `names = Interface` | a variant of `Names`: what the names of a map stand for |
//! | `list = Entry` | the file has a list of `Entry`, the model a map made of it |
//! | `flatten` | the keys of the field's section stand in this section |
//! | `on = ["loopback"]` | the key exists where the section is read for one of these purposes |
//! | `scope = "loopback"` | the purpose of the sections below; that of this section when absent |
//! | `unread` | `read` leaves the default; the caller reads it |
//! | `omit_default` | not written at its default, also where defaults are shown |
//! | `skip` | no key: `read` leaves the default, `write` omits it |
//!
//! `#[derive(Kinds)]` on any enum gives `kind()`, the name of a variant in kebab case.
//!
//! This crate runs in the compiler only.

#![forbid(unsafe_code)]

mod attributes;
mod section;
mod words;

use proc_macro::TokenStream;

/// Derives the rows, the reader, the writer and `Default` of a section. See the crate's page.
#[proc_macro_derive(Section, attributes(key, section))]
pub fn section(input: TokenStream) -> TokenStream {
    expand(input, section::derive)
}

/// Derives the words of an enum. See the crate's page.
#[proc_macro_derive(Words)]
pub fn words(input: TokenStream) -> TokenStream {
    expand(input, words::derive)
}

/// Derives `kind()` of an enum: the name of the variant in kebab case.
#[proc_macro_derive(Kinds)]
pub fn kinds(input: TokenStream) -> TokenStream {
    expand(input, words::derive_kinds)
}

fn expand(
    input: TokenStream,
    derive: impl Fn(syn::DeriveInput) -> syn::Result<proc_macro2::TokenStream>,
) -> TokenStream {
    syn::parse(input)
        .and_then(derive)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
