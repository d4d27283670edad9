package heads_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
)

func TestRedactedAnd(t *testing.T) {
	t.Parallel()
	tree := func(n int) protocol.Tree { return protocol.Tree(fmt.Sprintf("sha1:%040x", n)) }
	a := &heads.Redacted{Paths: []string{"key"}, Contents: []protocol.Tree{tree(2)}}
	b := &heads.Redacted{
		Paths: []string{"key", "a"}, Contents: []protocol.Tree{tree(1), tree(2)},
		Instead: map[protocol.Tree]protocol.Tree{tree(3): tree(4)},
	}
	var none *heads.Redacted
	require.Nil(t, none.And(nil))
	require.Equal(t, a, a.And(nil))
	require.Equal(t, a, none.And(a))
	require.Equal(t, &heads.Redacted{
		Paths: []string{"a", "key"}, Contents: []protocol.Tree{tree(1), tree(2)}, Instead: b.Instead,
	}, a.And(b))
	require.Equal(t, a.And(b), b.And(a))

	many := &heads.Redacted{Instead: map[protocol.Tree]protocol.Tree{}}
	for n := range heads.MaxRedacted + 1 {
		many.Contents = append(many.Contents, tree(n))
		many.Instead[tree(n)] = tree(n + 1)
	}
	all := a.And(many)
	require.Len(t, all.Contents, heads.MaxRedacted)
	require.Len(t, all.Instead, heads.MaxRedacted)
}
