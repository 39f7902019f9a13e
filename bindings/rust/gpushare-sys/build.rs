//! Finds libgpushare.so: under GPUSHARE_PREFIX, where `cmake --install` or a package put it, else by pkg-config.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=GPUSHARE_PREFIX");
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    match library_folder() {
        Ok(folder) => {
            println!("cargo:rustc-link-search=native={}", folder.display());
            println!("cargo:rustc-link-lib=dylib=gpushare");
            // Build scripts of crates that depend on this one read it as DEP_GPUSHARE_LIBDIR.
            println!("cargo:libdir={}", folder.display());
        }
        Err(reason) => {
            eprintln!("{reason}");
            std::process::exit(1);
        }
    }
}

fn library_folder() -> Result<PathBuf, String> {
    if let Some(prefix) = std::env::var_os("GPUSHARE_PREFIX") {
        let multiarch = format!("lib/{}-linux-gnu", std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default());
        return ["lib", "lib64", multiarch.as_str()]
            .iter()
            .map(|name| Path::new(&prefix).join(name))
            .find(|folder| folder.join("libgpushare.so").exists())
            .ok_or_else(|| format!("GPUSHARE_PREFIX is {prefix:?}, and no libgpushare.so is in its lib folder."));
    }
    let output = Command::new("pkg-config").args(["--variable=libdir", "gpushare"]).output();
    let found = output.ok().filter(|output| output.status.success());
    let text = found.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    if text.is_empty() {
        return Err("pkg-config does not find gpushare. Set GPUSHARE_PREFIX to the folder that \
                    `cmake --install` filled, or PKG_CONFIG_PATH to its lib/pkgconfig."
            .to_owned());
    }
    Ok(PathBuf::from(text))
}
