#!/usr/bin/env bash
# Lays the command for a machine out below a directory, as it is installed: bin, lib/fairwave (what `fairwave run` loads
# into programs), manual pages, completions, units, licences.
# usage: packaging/stage.sh MACHINE TREE PREFIX      (TREE will be PREFIX on the machine: /usr, /usr/local ...)
set -euo pipefail
. "$(dirname "$0")/words.sh"
machine=$1 to=$2 prefix=$3

install -D -m 755 "$(command_of "$machine")" "$to/bin/fairwave"
install -D -m 644 "$(preload_of "$machine")" "$to/lib/fairwave/libfairwave_preload.so"

# What the command prints about itself is the same on every machine.
fairwave=$(command_of "$arch")
mkdir -p "$to/share/man/man1"
"$fairwave" man --out "$to/share/man/man1"
gzip -9n "$to"/share/man/man1/*.1

complete() { mkdir -p "$to/share/$(dirname "$2")" && "$fairwave" completions "$1" > "$to/share/$2"; }
complete bash bash-completion/completions/fairwave
complete zsh zsh/site-functions/_fairwave
complete fish fish/vendor_completions.d/fairwave.fish

mkdir -p "$to/lib/systemd/system"
for unit in "$root"/etc/systemd/*.{service,socket}; do
  sed "s|/usr/bin/fairwave|$prefix/bin/fairwave|g" "$unit" > "$to/lib/systemd/system/$(basename "$unit")"
done
for file in "$root"/etc/{daemon.toml,grafana-dashboard.json}; do
  install -D -m 644 "$file" "$to/share/doc/fairwave/examples/$(basename "$file")"
done

for file in README.md CHANGELOG.md SECURITY.md LICENSE-APACHE LICENSE-MIT; do
  install -D -m 644 "$root/$file" "$to/share/doc/fairwave/$file"
done
chmod -R u=rwX,go=rX "$to"
