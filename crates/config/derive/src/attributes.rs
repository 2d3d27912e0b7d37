//! What `#[key(…)]` and `#[section(…)]` say, and documentation comments as text.

use proc_macro2::{TokenStream, TokenTree};
use syn::parse::ParseStream;
use syn::{Attribute, Token};

/// What `#[key(…)]` says of a field or a variant.
#[derive(Default)]
pub(crate) struct KeyAttributes {
    pub(crate) name: Option<String>,
    pub(crate) example: Option<String>,
    pub(crate) item: Option<String>,
    pub(crate) kind: Option<TokenStream>,
    pub(crate) default: Option<TokenStream>,
    pub(crate) items: Option<TokenStream>,
    pub(crate) names: Option<TokenStream>,
    pub(crate) list: Option<TokenStream>,
    pub(crate) on: Option<TokenStream>,
    pub(crate) scope: Option<String>,
    pub(crate) required: bool,
    pub(crate) flatten: bool,
    pub(crate) unread: bool,
    pub(crate) skip: bool,
    pub(crate) omit_default: bool,
}

impl KeyAttributes {
    pub(crate) fn of(attributes: &[Attribute]) -> syn::Result<Self> {
        let mut key = Self::default();
        for attribute in attributes.iter().filter(|it| it.path().is_ident("key")) {
            attribute.parse_nested_meta(|meta| {
                let name = meta.path.require_ident()?.to_string();
                match name.as_str() {
                    "required" => key.required = true,
                    "flatten" => key.flatten = true,
                    "unread" => key.unread = true,
                    "skip" => key.skip = true,
                    "omit_default" => key.omit_default = true,
                    "name" => key.name = Some(text(meta.value()?)?),
                    "example" => key.example = Some(text(meta.value()?)?),
                    "item" => key.item = Some(text(meta.value()?)?),
                    "scope" => key.scope = Some(text(meta.value()?)?),
                    "kind" => key.kind = Some(tokens(meta.value()?)?),
                    "default" => key.default = Some(tokens(meta.value()?)?),
                    "items" => key.items = Some(tokens(meta.value()?)?),
                    "names" => key.names = Some(tokens(meta.value()?)?),
                    "list" => key.list = Some(tokens(meta.value()?)?),
                    "on" => key.on = Some(tokens(meta.value()?)?),
                    _ => return Err(meta.error("not an attribute of a key")),
                }
                Ok(())
            })?;
        }
        Ok(key)
    }
}

/// What `#[section(…)]` says of a type.
#[derive(Default)]
pub(crate) struct SectionAttributes {
    pub(crate) example: String,
    pub(crate) no_default: bool,
    /// Of an enum: the key that selects the variant, its documentation and an example.
    pub(crate) tag: String,
    pub(crate) tag_about: String,
    pub(crate) tag_example: String,
}

impl SectionAttributes {
    pub(crate) fn of(attributes: &[Attribute]) -> syn::Result<Self> {
        let mut section = Self::default();
        for attribute in attributes.iter().filter(|it| it.path().is_ident("section")) {
            attribute.parse_nested_meta(|meta| {
                let name = meta.path.require_ident()?.to_string();
                match name.as_str() {
                    "no_default" => section.no_default = true,
                    "example" => section.example = text(meta.value()?)?,
                    "tag" => section.tag = text(meta.value()?)?,
                    "tag_about" => section.tag_about = text(meta.value()?)?,
                    "tag_example" => section.tag_example = text(meta.value()?)?,
                    _ => return Err(meta.error("not an attribute of a section")),
                }
                Ok(())
            })?;
        }
        Ok(section)
    }
}

fn text(input: ParseStream<'_>) -> syn::Result<String> {
    Ok(input.parse::<syn::LitStr>()?.value())
}

/// Everything up to the next comma that stands in no bracket.
fn tokens(input: ParseStream<'_>) -> syn::Result<TokenStream> {
    let mut tokens = TokenStream::new();
    while !input.is_empty() && !input.peek(Token![,]) {
        tokens.extend([input.parse::<TokenTree>()?]);
    }
    Ok(tokens)
}

/// The documentation comment, its lines joined by spaces.
pub(crate) fn documentation(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| {
        let syn::Meta::NameValue(pair) = &attribute.meta else {
            return None;
        };
        let syn::Expr::Lit(syn::ExprLit {
            lit: syn::Lit::Str(line),
            ..
        }) = &pair.value
        else {
            return None;
        };
        pair.path
            .is_ident("doc")
            .then(|| line.value().trim().to_owned())
    });
    lines.collect::<Vec<_>>().join(" ").trim().to_owned()
}

/// `kebab-case` of `snake_case` or `UpperCamelCase`, as serde spells it.
pub(crate) fn kebab(name: &str) -> String {
    let mut kebab = String::new();
    for (index, letter) in name.trim_start_matches("r#").char_indices() {
        match letter {
            '_' => kebab.push('-'),
            letter if letter.is_uppercase() => {
                if index > 0 {
                    kebab.push('-');
                }
                kebab.extend(letter.to_lowercase());
            }
            letter => kebab.push(letter),
        }
    }
    kebab
}
