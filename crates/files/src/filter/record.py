#!/usr/bin/env python3
"""Records what rsync's patterns match: crates/files/src/filter/record.py > vectors.tsv

Each path is judged by itself: with --files-from, the directories above it are copied whatever the rules say.
"""

import os
import subprocess
import sys
import tempfile

FILES = r"""
a b f foo foo.o a.o foo.c a/b/c x/foo foo/x x/foo/y x/y/foo a/foo/b/bar foo/bar a/foo/bar foo/a/bar foo/a/b/bar
x/foo.o x/y/z.o *  a* [a] ] - ! ^a .hidden x/.hidden 1 7x A Ab aXb a-b a\\b \\*  x\\/y é x/é/y ab/cd abc/d/e x/abc
d/e/f/g/h a+b $x (x) {a,b} x\ty x\ny \xff\xfe dir1/f dir2/sub/f sub/dir2/f a/dir/x dir.d/x tmp/keep tmp/a/b/keep
""".replace("\n", " ").split(" ")
DIRECTORIES = "D fooD x/dir dir/sub dir/dir e/foo e/tmp e/a.o build/build e/*d p/q/r/s e/[d]".split(" ")
PATTERNS = r"""
foo /foo foo/ /foo/ *.o *.[oc] /*.o x/foo foo/bar /foo/bar foo/*/bar foo/**/bar foo/** foo/*** /foo/*** **/foo **/foo/ **foo **foo/
foo** a**r /a**r ** **/ *** /** /*** * */ /* /*/ /*/* /*/*/ */* ? ?? a? [ab] [a-c] [!a] [^a] [a!] [a^] []] [!]] []a] [a-] [-a] [--0] [a-c-e]
[[:alpha:]] [[:digit:]]* [[:upper:]][[:lower:]] [![:alnum:]] [[:punct:]] [[:space:]] [[:nope:]] [[:alpha:] [[:alpha [a [ a[ [a\]]
[\a] [\]] [a-\c] [[] [[a] [[:] [z-a] \a \* \foo fo\o f\?o foo\ *\ a\\b a\b a?b a[\]b *\\* é ? x/?/y x/??/y [!x] x/[!a]foo x[/]foo x?foo x*foo x**foo
*foo* foo.* .* **.o /**/*.o **/*.o x/**/*.o dir/ dir/* dir/** dir/*** /dir/*** dir/sub dir*/ dir*/sub dir[12]/f dir[12]/ */f */*/f dir?/**/f
tmp/ tmp/* tmp/** /tmp tmp tmp/*** +b a+b $x (x) {a,b} x\ty a/ b/ a//b a// // / /a/ ///a **/**/f **/**/ a/**b **b/c a/b/** a/*/c build build/ build/build /build
**/build/*** e/*** e/**/ e/* [e]/* e/tmp/ e/tmp/*** dir/dir/ *r/*r *r/*r/ p/**/s p/**s p/*/s p/*/*/s /p/q/ q/r r/s p/q/*** [a-]* [!-]* ![a] !a ^a
[!a-z]* [!./]* [*] [?] [**] [**]oo \** **\*  *** foo*** x/*** x/foo*** **/*** /**/ \xff* \xff\xfe ? *\xfe [\xf0-\xff]* [!\x01-\x7f]* D* /D fooD/
""".replace("\n", " ").split(" ")


def raw(text):
    """The bytes of a word: \\xNN and \\t, \\n of this list as such."""
    out, at = bytearray(), 0
    data = text.encode()
    while at < len(data):
        if data[at : at + 2] == b"\\x" and len(data) >= at + 4:
            try:
                out.append(int(data[at + 2 : at + 4], 16))
                at += 4
                continue
            except ValueError:
                pass
        out.append(data[at])
        at += 1
    return bytes(out)


def shown(data):
    keep = lambda byte: 32 < byte < 127 and byte != 92 or byte == 32
    return "".join(chr(byte) if keep(byte) else f"\\x{byte:02x}" for byte in data)


def trees(place):
    """Trees of which each path is in one, none of them above another."""
    groups = []
    for words, slash in ((FILES, b""), (DIRECTORIES, b"/")):
        for path in dict.fromkeys(raw(word) for word in words if word):
            above = lambda one, other: (other.rstrip(b"/") + b"/").startswith(one.rstrip(b"/") + b"/")
            fits = lambda group: not any(above(path, other) or above(other, path) for other in group)
            group = next(filter(fits, groups), None)
            if group is None:
                groups.append(group := [])
            group.append(path + slash)
    for number, group in enumerate(groups):
        source = os.path.join(place.encode(), b"%d" % number)
        for path in group:
            at = os.path.join(source, path)
            os.makedirs(at if path.endswith(b"/") else os.path.dirname(at), exist_ok=True)
            if not path.endswith(b"/"):
                open(at, "x").close()
        yield source, group


def main():
    version = subprocess.run(["rsync", "--version"], capture_output=True, text=True, check=True).stdout.split("\n")[0]
    print(f"# Recorded by record.py from {version}. The first row has all paths, with a slash behind directories;")
    print("# each other one a pattern, and the paths that it matches.")
    with tempfile.TemporaryDirectory() as place:
        groups = list(trees(place))
        target = os.path.join(place, "target")
        os.mkdir(target)
        print("", *(shown(path) for _, group in groups for path in group), sep="\t")
        for pattern in dict.fromkeys(raw(word) for word in PATTERNS if word):
            matched = []
            for source, group in groups:
                call = ["rsync", "-n", "--dirs", "-8", "--from0", "--files-from=-", "--out-format=%n"]
                listed = b"\0".join(b"./" + path.rstrip(b"/") for path in group)
                call += [b"--exclude=" + pattern, source, target]
                copied = subprocess.run(call, input=listed, capture_output=True, check=True).stdout.split(b"\n")
                matched += [path for path in group if path not in copied]
            print(shown(pattern), *map(shown, matched), sep="\t")


if __name__ == "__main__":
    sys.exit(main())
