package careful

import (
	"slices"
	"strconv"
	"strings"
)

// accounts are /etc/group and /etc/passwd, as far as they can be read.
type accounts struct{ groups, users string }

// writtenByOthers reports whether others than root and a user may write a file of
// this mode and group. A group is none of others if it is that user's private one: with
// the user's name, or where names are not available, number; root's; and if nobody else is in it.
func writtenByOthers(mode uint32, gid, uid int, a accounts) bool {
	const group, all = 0o020, 0o002
	switch {
	case mode&all != 0:
		return true
	case mode&group == 0:
		return false
	}
	me, known := "", false
	for fields := range records(a.users, 4) { // name:password:uid:gid
		switch {
		case fields[2] == strconv.Itoa(uid):
			me, known = fields[0], true
		case fields[2] != "0" && fields[3] == strconv.Itoa(gid):
			return true
		}
	}
	for fields := range records(a.groups, 4) { // name:password:gid:members
		if fields[2] != strconv.Itoa(gid) {
			continue
		}
		others := func(name string) bool { return name != "" && name != "root" && name != me }
		if slices.ContainsFunc(strings.Split(fields[3], ","), others) {
			return true
		}
		if known && gid != 0 {
			return fields[0] != me
		}
	}
	return gid != 0 && gid != uid
}

// records yields the lines of a file of accounts, as fields.
func records(text string, least int) func(yield func([]string) bool) {
	return func(yield func([]string) bool) {
		for line := range strings.Lines(text) {
			fields := strings.Split(strings.TrimSpace(line), ":")
			if len(fields) >= least && !strings.HasPrefix(line, "#") && !yield(fields) {
				return
			}
		}
	}
}
