#!/usr/bin/env bash
# Lays the command out below a directory, as it is installed: bin, lib/fairwave (what `fairwave run` loads into programs),
# manual pages, completions, units, licences.
# usage: packaging/stage.sh FAIRWAVE PRELOAD TREE PREFIX      (TREE will be PREFIX on the machine: /usr, /usr/local ...)
set -euo pipefail
. "$(dirname "$0")/words.sh"
fairwave=$(realpath "$1") preload=$2 to=$3 prefix=$4

install -D -m 755 "$fairwave" "$to/bin/fairwave"
if [ -n "$preload" ]; then install -D -m 644 "$preload" "$to/lib/fairwave/libfairwave_preload.so"; fi

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
