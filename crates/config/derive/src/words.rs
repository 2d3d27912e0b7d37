//! `#[derive(Words)]` and `#[derive(Kinds)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Fields};

use crate::attributes::kebab;

pub(crate) fn derive(input: DeriveInput) -> syn::Result<TokenStream> {
    let name = &input.ident;
    let Data::Enum(data) = &input.data else {
        return Err(syn::Error::new_spanned(name, "words are for enums"));
    };
    let mut variants = Vec::new();
    let mut words = Vec::new();
    for variant in &data.variants {
        if !matches!(variant.fields, Fields::Unit) {
            return Err(syn::Error::new_spanned(variant, "a word has no fields"));
        }
        variants.push(&variant.ident);
        words.push(kebab(&variant.ident.to_string()));
    }
    Ok(quote! {
        impl #name {
            /// All words, in the order of the variants.
            pub(crate) const WORDS: &'static [&'static str] = &[#(#words),*];

            /// The word in the file.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self {
                    #(Self::#variants => #words,)*
                }
            }
        }

        impl ::std::fmt::Display for #name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.word())
            }
        }

        impl ::std::str::FromStr for #name {
            type Err = crate::scalar::NotAValue;

            fn from_str(text: &str) -> ::std::result::Result<Self, Self::Err> {
                match text {
                    #(#words => Ok(Self::#variants),)*
                    _ => Err(crate::scalar::NotAValue("is not a value of this key")),
                }
            }
        }

        crate::section::text_values!(
            #name: ::std::option::Option::Some(crate::keys::Kind::Word(#name::WORDS))
        );

        impl ::serde::Serialize for #name {
            fn serialize<S: ::serde::Serializer>(
                &self,
                serializer: S,
            ) -> ::std::result::Result<S::Ok, S::Error> {
                serializer.serialize_str(self.word())
            }
        }
    })
}

pub(crate) fn derive_kinds(input: DeriveInput) -> syn::Result<TokenStream> {
    let name = &input.ident;
    let Data::Enum(data) = &input.data else {
        return Err(syn::Error::new_spanned(name, "kinds are for enums"));
    };
    let variants: Vec<_> = data.variants.iter().map(|variant| &variant.ident).collect();
    let words = variants.iter().map(|ident| kebab(&ident.to_string()));
    Ok(quote! {
        impl #name {
            /// The name of the variant in kebab case.
            #[must_use]
            pub const fn kind(&self) -> &'static str {
                match self {
                    #(Self::#variants { .. } => #words,)*
                }
            }
        }
    })
}
