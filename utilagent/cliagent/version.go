package cliagent

import (
	"cmp"
	"strconv"

	"github.com/united-workforce/uwf/util/lazyregexp"
)

// Version is a program's version. The zero value is an unknown one.
type Version struct {
	Major, Minor, Patch int
	Text                string // as the program says it, for people
}

var versionPattern = lazyregexp.New(`(\d+)\.(\d+)(?:\.(\d+))?[0-9A-Za-z.+-]*`)

// ParseVersion finds the first version in a text, such as "codex-cli 0.169.0".
func ParseVersion(text string) Version {
	m := versionPattern().FindStringSubmatch(text)
	if m == nil {
		return Version{}
	}
	v := Version{Text: m[0]}
	for i, part := range []*int{&v.Major, &v.Minor, &v.Patch} {
		n, err := strconv.Atoi(m[i+1])
		if err != nil && m[i+1] != "" {
			return Version{} // too large to be a version
		}
		*part = n
	}
	return v
}

// V returns a version.
func V(major, minor, patch int) Version { return Version{Major: major, Minor: minor, Patch: patch} }

// Known tells a version from none.
func (v Version) Known() bool { return v.Major+v.Minor+v.Patch > 0 }

// AtLeast reports whether v is w or later. One that is not known is not.
func (v Version) AtLeast(w Version) bool { return v.Known() && v.compare(w) >= 0 }

// Before reports whether v is known and earlier than w.
func (v Version) Before(w Version) bool { return v.Known() && v.compare(w) < 0 }

func (v Version) compare(w Version) int {
	return cmp.Or(cmp.Compare(v.Major, w.Major), cmp.Compare(v.Minor, w.Minor), cmp.Compare(v.Patch, w.Patch))
}

// String is the version as people write it.
func (v Version) String() string {
	if v.Text != "" || !v.Known() {
		return v.Text
	}
	return strconv.Itoa(v.Major) + "." + strconv.Itoa(v.Minor) + "." + strconv.Itoa(v.Patch)
}
