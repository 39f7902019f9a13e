//! Lets the tests and examples of this crate find the library where gpushare-sys found it.

fn main() {
    if let Ok(folder) = std::env::var("DEP_GPUSHARE_LIBDIR") {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{folder}");
    }
}
