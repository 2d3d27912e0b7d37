//! `#[derive(Section)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Field, Fields, Ident, Type};

use crate::attributes::{KeyAttributes, SectionAttributes, documentation, kebab};

pub(crate) fn derive(input: DeriveInput) -> syn::Result<TokenStream> {
    match &input.data {
        Data::Struct(data) => of_struct(&input, &data.fields),
        Data::Enum(data) => of_enum(&input, data),
        Data::Union(_) => Err(syn::Error::new_spanned(&input.ident, "not for unions")),
    }
}

/// One key of a section.
struct Key<'a> {
    ident: &'a Ident,
    ty: &'a Type,
    about: String,
    attributes: KeyAttributes,
}

impl<'a> Key<'a> {
    fn of(field: &'a Field) -> syn::Result<Self> {
        let Some(ident) = &field.ident else {
            return Err(syn::Error::new_spanned(field, "a key has a name"));
        };
        Ok(Self {
            ident,
            ty: &field.ty,
            about: documentation(&field.attrs),
            attributes: KeyAttributes::of(&field.attrs)?,
        })
    }

    fn name(&self) -> String {
        let own = || kebab(&self.ident.to_string());
        self.attributes.name.clone().unwrap_or_else(own)
    }

    /// The type as the file has it.
    fn written(&self) -> TokenStream {
        let ty = self.ty;
        match &self.attributes.list {
            Some(entry) => quote!(::std::vec::Vec<#entry>),
            None => quote!(#ty),
        }
    }

    fn default(&self) -> TokenStream {
        let ty = self.ty;
        match &self.attributes.default {
            Some(value) => value.clone(),
            None => quote!(<#ty as ::std::default::Default>::default()),
        }
    }

    /// Whether there is no section without this key.
    fn is_needed(&self) -> bool {
        (self.attributes.required || self.attributes.flatten) && self.attributes.default.is_none()
    }

    /// The purpose for which the sections below are read and written.
    fn scope(&self) -> TokenStream {
        match &self.attributes.scope {
            Some(scope) => quote!(#scope),
            None => quote!(scope),
        }
    }

    fn kind(&self) -> TokenStream {
        match &self.attributes.kind {
            Some(kind) => quote!(::std::option::Option::Some(crate::keys::Kind::#kind)),
            None => quote!(::std::option::Option::None),
        }
    }

    /// The statement that adds the rows of the key.
    fn rows(&self) -> TokenStream {
        let (ty, kind, name) = (self.written(), self.kind(), self.name());
        let attributes = &self.attributes;
        if attributes.skip {
            return TokenStream::new();
        }
        let scope = self.scope();
        let rows = if attributes.flatten {
            quote!(<#ty as crate::section::Section>::key_rows(path, #scope, rows);)
        } else {
            let optional = |value: &Option<TokenStream>| match value {
                Some(value) => quote!(::std::option::Option::Some(#value)),
                None => quote!(::std::option::Option::None),
            };
            let names = attributes
                .names
                .as_ref()
                .map(|names| quote!(crate::keys::Names::#names));
            let (items, names) = (optional(&attributes.items), optional(&names));
            let default = if attributes.required {
                quote!(::std::option::Option::None)
            } else {
                let value = self.default();
                let (own, written) = (self.ty, self.write(quote!(default)));
                quote!({
                    let default: #own = #value;
                    ::std::option::Option::Some(#written)
                })
            };
            let about = &self.about;
            let example = attributes.example.clone().unwrap_or_default();
            let item = attributes.item.clone().unwrap_or_default();
            quote! {
                <#ty as crate::section::Value>::rows(
                    &crate::section::Declared {
                        parent: path,
                        name: #name,
                        about: #about,
                        example: #example,
                        item: #item,
                        kind: #kind,
                        items: #items,
                        names: #names,
                        default: { let full = false; #default },
                        scope: #scope,
                    },
                    rows,
                );
            }
        };
        match &attributes.on {
            Some(on) => quote!(if #on.contains(&scope) { #rows }),
            None => rows,
        }
    }

    /// The expression that reads the key.
    fn read(&self) -> TokenStream {
        let (ty, kind, name) = (self.written(), self.kind(), self.name());
        let attributes = &self.attributes;
        if attributes.skip || attributes.unread {
            return self.default();
        }
        if attributes.flatten {
            let scope = self.scope();
            return quote!(<#ty as crate::section::Section>::read_keys(node, #scope)?);
        }
        let into = attributes.list.as_ref().map(
            |_| quote!(.map(|list| list.into_iter().map(::std::convert::Into::into).collect())),
        );
        let on = attributes
            .on
            .as_ref()
            .map(|on| quote!(.filter(|_| scope.is_empty() || #on.contains(&scope))));
        let value = quote! {
            node.value(#name)
                #on
                .and_then(|node| <#ty as crate::section::Value>::read(node, #kind))
                #into
        };
        if self.is_needed() {
            return quote!(#value?);
        }
        let default = self.default();
        quote!(#value.unwrap_or_else(|| #default))
    }

    /// A value of the key as JSON.
    fn write(&self, value: TokenStream) -> TokenStream {
        match &self.attributes.list {
            Some(entry) => quote! {
                crate::section::Value::write(
                    &#value.iter().map(<#entry>::from).collect::<::std::vec::Vec<_>>(),
                    full,
                )
            },
            None => quote!(crate::section::Value::write(&#value, full)),
        }
    }

    /// The statement that writes the key, whose value is `value`, to `map`.
    fn write_to_map(&self, value: TokenStream) -> TokenStream {
        let (ty, name) = (self.ty, self.name());
        if self.attributes.skip {
            return TokenStream::new();
        }
        if self.attributes.flatten {
            let scope = self.scope();
            return quote! {
                <#ty as crate::section::Section>::write_keys(&#value, full, #scope, map);
            };
        }
        let written = self.write(quote!(#value));
        let insert = quote!(crate::section::insert(map, #name, #written););
        let mut write = if self.attributes.required {
            insert
        } else {
            let default = self.default();
            let full = (!self.attributes.omit_default).then(|| quote!(full ||));
            quote! {
                let default: #ty = #default;
                if #full #value != default {
                    #insert
                }
            }
        };
        if let Some(on) = &self.attributes.on {
            write = quote!(if scope.is_empty() || #on.contains(&scope) { #write });
        }
        write
    }
}

fn keys(fields: &Fields) -> syn::Result<Vec<Key<'_>>> {
    fields.iter().map(Key::of).collect()
}

fn of_struct(input: &DeriveInput, fields: &Fields) -> syn::Result<TokenStream> {
    let (name, keys) = (&input.ident, keys(fields)?);
    let section = SectionAttributes::of(&input.attrs)?;
    let rows = keys.iter().map(Key::rows);
    let idents: Vec<_> = keys.iter().map(|key| key.ident).collect();
    let read = keys.iter().map(Key::read);
    let write = keys.iter().map(|key| {
        let ident = key.ident;
        key.write_to_map(quote!(self.#ident))
    });
    let default = (!section.no_default && !keys.iter().any(Key::is_needed)).then(|| {
        let defaults = keys.iter().map(Key::default);
        quote! {
            impl ::std::default::Default for #name {
                fn default() -> Self {
                    Self { #(#idents: #defaults,)* }
                }
            }
        }
    });
    let body = Body {
        rows: quote!(#(#rows)*),
        read: quote!(::std::option::Option::Some(Self { #(#idents: #read,)* })),
        write: quote!(#(#write)*),
    };
    let section = implementation(input, &section, &body);
    Ok(quote!(#default #section))
}

/// The bodies of the three functions.
struct Body {
    rows: TokenStream,
    read: TokenStream,
    write: TokenStream,
}

fn implementation(input: &DeriveInput, section: &SectionAttributes, body: &Body) -> TokenStream {
    let (name, about) = (&input.ident, documentation(&input.attrs));
    let example = &section.example;
    let Body { rows, read, write } = body;
    quote! {
        impl crate::section::Section for #name {
            const ABOUT: &'static str = #about;
            const EXAMPLE: &'static str = #example;

            fn key_rows(
                path: &str,
                scope: &'static str,
                rows: &mut ::std::vec::Vec<crate::keys::Key>,
            ) {
                let _ = (path, scope, &rows);
                #rows
            }

            fn read_keys(
                node: &crate::tree::Node<'_>,
                scope: &str,
            ) -> ::std::option::Option<Self> {
                let _ = (node, scope);
                #read
            }

            fn write_keys(
                &self,
                full: bool,
                scope: &str,
                map: &mut ::serde_json::Map<::std::string::String, ::serde_json::Value>,
            ) {
                let _ = (full, scope, &map);
                #write
            }
        }

        impl ::serde::Serialize for #name {
            fn serialize<S: ::serde::Serializer>(
                &self,
                serializer: S,
            ) -> ::std::result::Result<S::Ok, S::Error> {
                ::serde::Serialize::serialize(&crate::section::to_json(self, true), serializer)
            }
        }
    }
}

/// An enum whose variant is selected by a key: each variant has its own keys, which may be shared
/// with others. A variant of one unnamed field has the keys of that section.
fn of_enum(input: &DeriveInput, data: &syn::DataEnum) -> syn::Result<TokenStream> {
    let section = SectionAttributes::of(&input.attrs)?;
    let (tag, tag_about, tag_example) = (&section.tag, &section.tag_about, &section.tag_example);
    let (mut words, mut rows, mut read, mut write) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for variant in &data.variants {
        let ident = &variant.ident;
        if KeyAttributes::of(&variant.attrs)?.skip {
            write.push(quote!(Self::#ident { .. } => {}));
            continue;
        }
        let word = kebab(&ident.to_string());
        let tagged = quote!(map.insert(#tag.into(), #word.into()););
        match &variant.fields {
            Fields::Unit => {
                read.push(quote!(#word => ::std::option::Option::Some(Self::#ident),));
                write.push(quote!(Self::#ident => { #tagged }));
            }
            Fields::Unnamed(fields) => {
                let Some(ty) = fields.unnamed.first().map(|field| &field.ty) else {
                    return Err(syn::Error::new_spanned(variant, "a section is missing"));
                };
                rows.push(quote! {
                    crate::section::merge(rows, path, #word, |rows| {
                        <#ty as crate::section::Section>::key_rows(path, scope, rows);
                    });
                });
                read.push(quote! {
                    #word => <#ty as crate::section::Section>::read_keys(node, scope).map(Self::#ident),
                });
                write.push(quote!(Self::#ident(section) => {
                    #tagged
                    crate::section::Section::write_keys(section, full, scope, map);
                }));
            }
            Fields::Named(_) => {
                let keys = keys(&variant.fields)?;
                let key_rows = keys.iter().map(Key::rows);
                rows.push(quote! {
                    crate::section::merge(rows, path, #word, |rows| { #(#key_rows)* });
                });
                let idents: Vec<_> = keys.iter().map(|key| key.ident).collect();
                let key_reads = keys.iter().map(Key::read);
                read.push(quote! {
                    #word => ::std::option::Option::Some(Self::#ident { #(#idents: #key_reads,)* }),
                });
                let key_writes = keys.iter().map(|key| {
                    let ident = key.ident;
                    key.write_to_map(quote!(*#ident))
                });
                write.push(quote!(Self::#ident { #(#idents,)* } => {
                    #tagged
                    #(#key_writes)*
                }));
            }
        }
        words.push(word);
    }
    let name = &input.ident;
    let body = Body {
        rows: quote! {
            rows.push(crate::section::tag_row(path, #tag, Self::WORDS, #tag_about, #tag_example));
            #(#rows)*
        },
        read: quote! {
            match node.value(#tag)?.text()? {
                #(#read)*
                _ => ::std::option::Option::None,
            }
        },
        write: quote!(match self { #(#write)* }),
    };
    let implementation = implementation(input, &section, &body);
    Ok(quote! {
        impl #name {
            /// The words that select a variant, in the order of the variants.
            pub(crate) const WORDS: &'static [&'static str] = &[#(#words),*];
        }
        #implementation
    })
}
