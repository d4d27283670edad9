package gitobject_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/gitobject"
)

// The IDs are those that git prints for the empty file, the empty directory and "text\n".
func TestID(t *testing.T) {
	t.Parallel()
	for want, id := range map[protocol.Tree]protocol.Tree{
		"sha1:e69de29bb2d1d6434b8b29ae775ad8c2e48c5391":                           gitobject.ID(gitobject.File, nil, "sha1"),
		"sha1:4b825dc642cb6eb9a060e54bf8d69288fbee4904":                           gitobject.ID(gitobject.Directory, nil, "sha1"),
		"sha1:8e27be7d6154a1f68ea9160ef0e18691d20560dc":                           gitobject.ID(gitobject.File, []byte("text\n"), "sha1"),
		"sha256:473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813": gitobject.ID(gitobject.File, nil, "sha256"),
	} {
		require.Equal(t, want, id)
		binary, err := gitobject.AppendID([]byte("x"), id)
		require.NoError(t, err)
		got, rest, ok := gitobject.CutID(append(binary[1:], "rest"...))
		require.True(t, ok)
		require.Equal(t, id, got)
		require.Equal(t, "rest", string(rest))
		_, _, ok = gitobject.CutID(binary[1 : len(binary)-1])
		require.False(t, ok)
	}
	_, err := gitobject.AppendID(nil, "sha1:00")
	require.Error(t, err)
	_, _, ok := gitobject.CutID(append([]byte{21}, make([]byte, 40)...))
	require.False(t, ok)
}

func TestParse(t *testing.T) {
	t.Parallel()
	sum := strings.Repeat("\x01", 20)
	id := protocol.Tree("sha1:" + strings.Repeat("01", 20))
	good := "100644 a\x00" + sum + "40000 b\x00" + sum + "160000 c\x00" + sum
	entries, err := gitobject.Entries(id, []byte(good))
	require.NoError(t, err)
	require.Equal(t, []gitobject.Entry{{Mode: "100644", Name: "a", ID: id}, {Mode: gitobject.ModeDir, Name: "b", ID: id}}, entries)
	for name, content := range map[string]string{
		"cut": good[:len(good)-1], "mode": "100600 a\x00" + sum, "order": "100644 b\x00" + sum + "100644 a\x00" + sum,
		"twice": "100644 a\x00" + sum + "40000 a\x00" + sum, "up": "40000 ..\x00" + sum, "git": "40000 .GIT \x00" + sum, "path": "100644 a/b\x00" + sum,
	} {
		_, err := gitobject.Parse(id, []byte(content))
		require.Error(t, err, name)
	}
}
