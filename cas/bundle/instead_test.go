package bundle_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/bundle"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

// A bundle contains only the substitute of a redacted tree.
func TestInstead(t *testing.T) {
	t.Parallel()
	w, g, trees := withFiles(t)
	gone := protocol.Tree("sha1:" + strings.Repeat("2", 40)) // as referenced by a step
	by := g.dir("100644 a", g.file("less"))
	m, err := bundle.Collect(t.Context(), w.store, w.index, nil)
	require.NoError(t, err)
	missing, err := m.AddTrees(t.Context(), w.store, func(_ string, tree protocol.Tree) (protocol.Tree, error) {
		if tree == gone {
			return by, nil
		}
		return tree, nil
	})
	require.NoError(t, err)
	require.Zero(t, missing)
	require.Equal(t, []bundle.Instead{{Tree: gone, By: by}}, m.Instead)
	write := func(m bundle.Manifest) ([]byte, error) {
		var out bytes.Buffer
		_, err := bundle.Write(t.Context(), &out, w.store, m, g)
		return out.Bytes(), err
	}
	data, err := write(m)
	require.NoError(t, err)
	require.True(t, bytes.HasPrefix(data, []byte("uwf bundle 3\n")))
	f, err := received(t, data)
	require.NoError(t, err)
	_, err = f.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, by, f.Manifest.Substitute(gone))
	require.Equal(t, trees[0], f.Manifest.Substitute(trees[0]))
	require.Empty(t, f.Manifest.Substitute("sha1:"+protocol.Tree(strings.Repeat("3", 40))))

	_, err = received(t, bytes.Replace(data, []byte("bundle 3"), []byte("bundle 4"), 1))
	prosetest.Error(t, err)

	unknown := protocol.Tree("sha1:" + strings.Repeat("3", 40))
	for want, instead := range map[string][]bundle.Instead{
		"which replaces " + string(gone) + ", is missing": {{Tree: gone, By: unknown}},
		"is present, but another one replaces it":         {{Tree: gone, By: trees[0]}, {Tree: trees[0], By: gone}},
		"two trees replace " + string(gone):               {{Tree: gone, By: by}, {Tree: gone, By: trees[0]}},
		"cannot replace":                                  {{Tree: protocol.Tree("sha256:" + strings.Repeat("2", 64)), By: by}},
	} {
		wrong := m
		wrong.Instead = instead
		_, err := write(wrong)
		require.ErrorContains(t, err, want)
	}
	m.Instead = append(m.Instead, bundle.Instead{Tree: unknown, By: by})
	data, err = write(m)
	require.NoError(t, err)
	f, err = received(t, data)
	require.NoError(t, err)
	_, err = f.Check(t.Context())
	prosetest.Error(t, err)
}
