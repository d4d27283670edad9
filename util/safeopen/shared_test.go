package safeopen

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWrittenByOthers(t *testing.T) {
	t.Parallel()
	local := accounts{
		users:  "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\nbob:x:1001:100::/:\nnobody:x:65534:65534::/:\ncy:x:1002:1005::/:\ndan:x:1003:1003::/:\neve:x:1004:1003::/:\n",
		groups: "root:x:0:\nann:x:1000:\nusers:x:100:\nnogroup:x:65534:\ncy:x:1005:cy\nstaff:x:50:ann\nbob:x:1001:ann\ndan:x:1003:\n",
	}
	wheel := accounts{groups: "wheel:*:0:root,ann\nstaff:*:20:root\n"}
	for _, c := range []struct {
		mode     uint32
		gid, uid int
		accounts accounts
		want     bool
	}{
		{0o755, 100, 1000, local, false},
		{0o757, 1000, 1000, local, true},
		{0o775, 1000, 1000, local, false},               // ann's own
		{0o775, 1005, 1002, local, false},               // different number, same name
		{0o775, 100, 1001, local, true},                 // users, bob's primary group
		{0o775, 50, 1000, local, true},                  // staff, with only ann: a shared group by its name
		{0o775, 65534, 65534, local, true},              // nogroup of nobody
		{0o775, 1001, 1001, local, true},                // bob's own, but ann is a member
		{0o775, 1003, 1003, local, true},                // dan's own, but eve's primary group
		{0o775, 0, 1000, local, false},                  // root's
		{0o775, 0, 501, wheel, true},                    // root's, with ann, who isn't known to be this user
		{0o775, 20, 501, wheel, true},                   // staff of macOS
		{0o775, 5000, 5000, accounts{}, false},          // a directory service: by number
		{0o775, 5001, 5000, accounts{}, true},           // a directory service
		{0o664, 1000, 1000, accounts{}, false},          // a directory service
		{0o775, 1000, 1001, accounts{}, true},           // a directory service
		{0o775, 1000, 1000, accounts{"x", "#:"}, false}, // rubbish
	} {
		require.Equal(t, c.want, writtenByOthers(c.mode, c.gid, c.uid, c.accounts), "%+v", c)
	}
}
